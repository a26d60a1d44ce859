//! Deleting a session: who is told, and what is gone.

use futures_util::future::join_all;
use hookgate::testing::{Client, Envelope, Gate, Ruling};
use serde_json::json;

use super::stage::{Host, Outcome, Stage};

/// A policy that holds the end of a session.
fn holds(gate: &Gate) -> impl Fn(&Envelope) -> Ruling + Send + Sync + 'static {
    let gate = gate.clone();
    move |told| match told.event() {
        "SessionEnd" => Ruling::pass().after(&gate),
        _ => Ruling::pass(),
    }
}

pub(crate) async fn handlers_are_told_before_anything_is_deleted(host: Host) -> Outcome {
    let gate = Gate::default();
    let stage = Stage::deciding(host, ["SessionStart", "SessionEnd"], holds(&gate)).await?;
    stage.agent("s1").prompt("Hello.").await?;
    stage.control("POST sessions/s1/tmp-hooks", "", 201).await?;
    let delete = stage.control("DELETE sessions/s1", "", 204);
    tokio::pin!(delete);
    tokio::select! {
        answer = &mut delete => return Err(format!("it was not waited for: {answer:?}").into()),
        () = gate.reached() => {}
    }
    let record = stage.control("GET sessions/s1", "", 200).await?;
    assert_eq!((&record["turns"], &record["openCallbacks"]), (&json!(1), &json!(1)));
    assert_eq!(stage.audit("s1").await?.len(), 1, "SessionStart");
    let told = stage.policy.asked_of("SessionEnd");
    let about = ["sessionId", "turnId", "taskId", "plane", "route", "detail"].map(|name| &told[0].json()[name]);
    assert_eq!(json!(about), json!(["s1", null, null, "api", "api", {"reason": "deleted"}]));
    gate.open();
    delete.await?;
    stage.problem("GET sessions/s1", "", 404).await?;
    Ok(())
}

pub(crate) async fn nothing_of_a_session_remains(host: Host) -> Outcome {
    let stage = Stage::with(host, ["SessionStart", "PreToolUse", "SessionEnd"]).await?;
    for session in ["s1", "s2"] {
        stage.agent(session).prompt("Hello.").await?;
    }
    let session = hookgate::id::SessionKey { tenant: "default".into(), session: "s1".into() };
    let path = |hook: &hookgate::callback::TmpHook| format!("/api/tmp-hooks/{}", hook.token);
    let client = Client::new(&stage.url);
    let delivered = stage.hooks.issue(&session, None, None).await?;
    assert_eq!(client.post(&path(&delivered), &[], "done").await?.status, 200);
    let open = stage.hooks.issue(&session, None, None).await?;
    assert_eq!(stage.control("GET sessions/s1/inbox", "", 200).await?["items"].as_array().map(Vec::len), Some(1));

    stage.control("DELETE sessions/s1", "", 204).await?;
    for part in ["hooks", "inbox", "tmp-hooks"] {
        let page = stage.control(&format!("GET sessions/s1/{part}"), "", 200).await?;
        assert_eq!(page["items"], json!([]), "{part}");
    }
    assert_eq!(stage.listed("").await?, ["s2"]);
    let audit = stage.control("GET audit", "", 200).await?;
    assert!(!audit.to_string().contains("\"s1\""), "{audit}");
    for hook in [open, delivered] {
        let answer = client.post(&path(&hook), &[], "late").await?;
        assert_eq!(
            (answer.status.as_u16(), answer.bytes().await?),
            (404, r#"{"received":false,"error":"unknown token"}"#.into())
        );
    }
    assert!(!stage.hooks.may_have_messages(&session));
    for request in ["DELETE sessions/s1", "GET sessions/s1", "POST sessions/s1/archive"] {
        stage.problem(request, "", 404).await?;
    }
    assert_eq!(stage.audit("s2").await?.len(), 1, "another session is not touched");
    Ok(())
}

pub(crate) async fn tasks_that_run_are_interrupted_first(host: Host) -> Outcome {
    let stage = Stage::with(host, ["TaskStart", "TaskStop", "SessionEnd"]).await?;
    let (ended, _) = stage.start_task("s1", "").await?;
    stage.stop_task("s1", &ended, "completed").await?;
    stage.policy.at_least_of("TaskStop", 1).await;
    let (one, turn) = stage.start_task("s1", "").await?;
    let (two, _) = stage.start_task("s1", "").await?;
    let before = stage.policy.asked().len();
    stage.control("DELETE sessions/s1", "", 204).await?;
    let told = stage.policy.asked().split_off(before);
    let events: Vec<&str> = told.iter().map(Envelope::event).collect();
    assert_eq!(events, ["TaskStop", "TaskStop", "SessionEnd"]);
    let mut tasks: Vec<&str> = told[..2].iter().map(|told| told.text("/taskId")).collect();
    tasks.sort_unstable();
    let mut expected = [&*one, &*two];
    expected.sort_unstable();
    assert_eq!(tasks, expected);
    assert!(told[..2].iter().all(|told| told.detail() == &json!({"status": "interrupted"})));
    assert!(told[..2].iter().any(|told| told.text("/turnId") == turn));
    stage.problem(&format!("POST sessions/s1/tasks/{one}/stop"), r#"{"status": "completed"}"#, 404).await?;
    assert_eq!(stage.audit("s1").await?, [json!(null); 0]);
    Ok(())
}

pub(crate) async fn a_session_that_is_deleted_begins_anew(host: Host) -> Outcome {
    let stage = Stage::with(host, ["SessionStart", "SessionEnd"]).await?;
    let mut agent = stage.agent("s1");
    agent.prompt("Hello.").await?;
    agent.prompt("Once more.").await?;
    stage.control("POST sessions/s1/archive", "", 204).await?;
    stage.control("DELETE sessions/s1", "", 204).await?;
    agent.prompt("And again.").await?;
    let told: Vec<_> =
        stage.policy.asked().iter().map(|told| (told.event().to_owned(), told.detail().clone())).collect();
    let expected = [
        ("SessionStart", json!({"source": "new"})),
        ("SessionEnd", json!({"reason": "deleted"})),
        ("SessionStart", json!({"source": "resume"})),
    ];
    assert_eq!(told, expected.map(|(event, detail)| (event.to_owned(), detail)));
    let record = stage.control("GET sessions/s1", "", 200).await?;
    assert_eq!((&record["turns"], &record["archived"]), (&json!(1), &json!(false)));
    stage.control("DELETE sessions/s1", "", 204).await?;
    assert_eq!(stage.policy.asked_of("SessionEnd").len(), 2);
    Ok(())
}

/// It was deleted while something of it was under way, whose record came after.
pub(crate) async fn a_session_of_which_there_are_only_records_is_deleted_too(host: Host) -> Outcome {
    let gate = Gate::default();
    let held = gate.clone();
    let decide = move |told: &Envelope| match told.event() {
        "UserPromptSubmit" => Ruling::pass().after(&held),
        _ => Ruling::pass(),
    };
    let stage = Stage::deciding(host, ["UserPromptSubmit", "Stop", "SessionEnd"], decide).await?;
    let mut agent = stage.agent("s1");
    let prompt = agent.prompt("Hello.");
    tokio::pin!(prompt);
    tokio::select! {
        _ = &mut prompt => return Err("it was not held".into()),
        () = gate.reached() => {}
    }
    stage.control("DELETE sessions/s1", "", 204).await?;
    gate.open();
    prompt.await?;
    let audit = stage.audit("s1").await?;
    let events: Vec<_> = audit.iter().map(|record| record["event"].clone()).collect();
    assert_eq!(events, ["Stop"], "what began before leaves no record");
    stage.problem("GET sessions/s1", "", 404).await?;
    stage.control("DELETE sessions/s1", "", 204).await?;
    assert_eq!(stage.audit("s1").await?, [json!(null); 0]);
    assert_eq!(stage.policy.asked_of("SessionEnd").len(), 2);
    Ok(())
}

pub(crate) async fn it_is_told_once_and_done_whoever_leaves(host: Host) -> Outcome {
    let gate = Gate::default();
    let stage = Stage::deciding(host, ["SessionEnd"], holds(&gate)).await?;
    stage.start_task("s1", "").await?;
    let first = Client::new(&stage.url);
    tokio::select! {
        _ = first.send(http::Method::DELETE, "/hookgate/v1/sessions/s1", &[], "".into()) => return Err("it was not waited for".into()),
        () = gate.reached() => {}
    }
    drop(first);
    let again = async { tokio::join!(stage.ask("DELETE sessions/s1", ""), stage.ask("DELETE sessions/s1", "")) };
    tokio::pin!(again);
    // They wait for the one that nobody waits for any more, as far as they are there before it ends.
    let early = futures_util::poll!(&mut again);
    assert!(early.is_pending());
    gate.open();
    let (one, two) = again.await;
    for (status, _) in [one?, two?] {
        assert!(matches!(status, 204 | 404), "{status}");
    }
    stage.is_gone("s1").await?;
    assert_eq!(stage.policy.asked().len(), 1, "told once");
    Ok(())
}

/// Whoever looks while the session is there, and comes when it was just deleted, deletes nothing anew.
pub(crate) async fn many_delete_it_and_it_is_told_once(host: Host) -> Outcome {
    let stage = Stage::deciding(host, ["SessionEnd"], |_| Ruling::pass()).await?;
    for round in 1..=30 {
        let session = format!("s{round}");
        stage.start_task(&session, "").await?;
        let delete = format!("DELETE sessions/{session}");
        for answer in join_all((0..12).map(|_| stage.ask(&delete, ""))).await {
            let (status, _) = answer?;
            assert!(matches!(status, 204 | 404), "{status}");
        }
        assert_eq!(stage.policy.asked().len(), round, "told once");
    }
    Ok(())
}

pub(crate) async fn handlers_that_fail_stop_no_deletion(host: Host) -> Outcome {
    let stage = Stage::deciding(host, ["SessionEnd"], |_| Ruling::raw(503, "no")).await?;
    stage.start_task("s1", "").await?;
    stage.control("DELETE sessions/s1", "", 204).await?;
    stage.problem("GET sessions/s1", "", 404).await?;
    assert_eq!(stage.policy.asked().len(), 1);
    Ok(())
}

pub(crate) async fn nothing_begins_while_it_is_deleted(host: Host) -> Outcome {
    let gate = Gate::default();
    let stage = Stage::deciding(host, ["TaskStart", "SessionEnd"], holds(&gate)).await?;
    stage.start_task("s1", "").await?;
    let delete = stage.control("DELETE sessions/s1", "", 204);
    tokio::pin!(delete);
    tokio::select! {
        _ = &mut delete => return Err("it was not waited for".into()),
        () = gate.reached() => {}
    }
    let detail = stage.problem("POST sessions/s1/tasks", "", 409).await?;
    assert!(detail.contains("being deleted"), "{detail}");
    gate.open();
    delete.await?;
    assert_eq!(stage.policy.asked_of("TaskStart").len(), 1);
    stage.start_task("s1", "").await?;
    Ok(())
}
