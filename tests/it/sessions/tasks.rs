//! Background tasks on the control surface: what is answered.

use hookgate::limits::{MAX_ID_BYTES, MAX_SESSION_TASKS, MAX_TASK_TITLE_BYTES};

use super::stage::{Host, Outcome, Stage};

pub(crate) async fn a_task_begins_and_ends(host: Host) -> Outcome {
    let stage = Stage::with(host, []).await?;
    let begun = stage.control("POST sessions/s1/tasks", r#"{"title": "the build"}"#, 201).await?;
    let keys: Vec<&str> = begun.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["taskId", "turnId"]);
    assert_ne!(begun["taskId"], begun["turnId"]);
    assert_eq!(stage.listed("").await?, ["s1"], "the session begins with it");
    stage.stop_task("s1", begun["taskId"].as_str().unwrap(), "completed").await?;
    for (body, status) in
        [("", "failed"), ("{}", "cancelled"), (r#"{"title": null}"#, "interrupted"), (r#"{"title": " "}"#, "completed")]
    {
        let (task, _) = stage.start_task("s1", body).await?;
        stage.stop_task("s1", &task, status).await?;
    }
    Ok(())
}

pub(crate) async fn a_stop_can_be_repeated_and_not_changed(host: Host) -> Outcome {
    let stage = Stage::with(host, ["TaskStop"]).await?;
    let (task, _) = stage.start_task("s1", "").await?;
    for _ in 0..3 {
        stage.stop_task("s1", &task, "failed").await?;
    }
    let detail =
        stage.problem(&format!("POST sessions/s1/tasks/{task}/stop"), r#"{"status": "completed"}"#, 409).await?;
    assert!(detail.contains("failed"), "{detail}");
    // Of another task, so that all that is told of the first is there.
    let (other, _) = stage.start_task("s1", "").await?;
    stage.stop_task("s1", &other, "completed").await?;
    let told = stage.policy.at_least(2).await;
    let mut tasks: Vec<&str> = told.iter().map(|told| told.text("/taskId")).collect();
    tasks.sort_unstable();
    let mut expected = [&*task, &*other];
    expected.sort_unstable();
    assert_eq!(tasks, expected, "each is told once");
    Ok(())
}

pub(crate) async fn what_cannot_be_done_is_explained(host: Host) -> Outcome {
    let stage = Stage::with(host, []).await?;
    let (task, _) = stage.start_task("s1", "").await?;
    let stop = format!("POST sessions/s1/tasks/{task}/stop");
    let start = "POST sessions/s1/tasks";
    let long = format!(r#"{{"title": "{}"}}"#, "x".repeat(MAX_TASK_TITLE_BYTES + 1));
    for (request, body, expected) in [
        (start, "[]", "\"title\""),
        (start, r#"{"title": 1}"#, "\"title\""),
        (start, r#"{"name": "x"}"#, "\"title\""),
        (start, &*long, "1024 bytes"),
        ("POST sessions/s1/tasks?limit=1", "", "tenant"),
        ("POST sessions/%ff/tasks", "", "UTF-8"),
        (&*stop, "", "completed, failed, cancelled, interrupted"),
        (&*stop, "{}", "completed, failed, cancelled, interrupted"),
        (&*stop, r#"{"status": "done"}"#, "completed, failed, cancelled, interrupted"),
        (&*stop, r#"{"status": "failed", "why": "x"}"#, "\"status\""),
    ] {
        let detail = stage.problem(request, body, 400).await?;
        assert!(detail.contains(expected), "{request} {body}: {detail}");
    }
    let unknown =
        ["s1/tasks/other", &format!("s2/tasks/{task}"), &format!("s1/tasks/{task}/stop?tenant=x").replace("/stop", "")]
            .map(|path| match path.split_once('?') {
                Some((path, query)) => format!("POST sessions/{path}/stop?{query}"),
                None => format!("POST sessions/{path}/stop"),
            });
    for request in unknown {
        let detail = stage.problem(&request, r#"{"status": "failed"}"#, 404).await?;
        assert!(detail.contains("no such task"), "{detail}");
    }
    for request in ["GET sessions/s1/tasks", &stop.replace("POST", "DELETE")] {
        stage.problem(request, "", 405).await?;
    }
    let id = "x".repeat(MAX_ID_BYTES);
    stage.start_task(&id, "").await?;
    let detail = stage.problem(&format!("POST sessions/{id}x/tasks"), "", 400).await?;
    assert!(detail.contains("256"), "{detail}");
    assert_eq!(stage.listed("").await?, [id, "s1".into()], "what was refused began nothing");
    Ok(())
}

pub(crate) async fn only_so_many_tasks_run(host: Host) -> Outcome {
    let stage = Stage::with(host, []).await?;
    let (first, _) = stage.start_task("s1", "").await?;
    for _ in 1..MAX_SESSION_TASKS {
        stage.start_task("s1", "").await?;
    }
    let detail = stage.problem("POST sessions/s1/tasks", "", 429).await?;
    assert!(detail.contains("stop"), "{detail}");
    stage.start_task("s2", "").await?;
    stage.stop_task("s1", &first, "completed").await?;
    stage.start_task("s1", "").await?;
    stage.problem("POST sessions/s1/tasks", "", 429).await?;
    Ok(())
}
