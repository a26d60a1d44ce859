//! Background tasks: what handlers are told.

use std::sync::Arc;

use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::id::SessionKey;
use hookgate::testing::{Client, Envelope, Gate, Policy, Ruling, document};
use hookgate::{BoxError, Hookgate, HooksMode, TaskStatus};
use serde_json::{Value, json};

use super::stage::{Host, Outcome, Stage, says_its_number};

const EVERY: [&str; 12] = [
    "SessionStart",
    "TaskStart",
    "UserPromptSubmit",
    "SubagentStart",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStop",
    "TaskStop",
    "Stop",
    "StopFailure",
    "SessionEnd",
];

/// The members that say what an event is about.
fn about(told: &Envelope) -> Value {
    let names =
        ["event", "sessionId", "turnId", "taskId", "toolCallId", "agentId", "parentAgentId", "model", "plane", "route"];
    names.iter().map(|name| told.json()[*name].clone()).collect()
}

pub(crate) async fn a_task_is_told_from_its_begin_to_its_end(host: Host) -> Outcome {
    let stage = Stage::with(host, EVERY).await?;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let (status, begun) =
        stage.ask_with("POST sessions/s1/tasks", &[("traceparent", trace)], r#"{"title": " the build "}"#).await?;
    assert_eq!(status, 201);
    let (task, turn) = (begun["taskId"].as_str().unwrap(), begun["turnId"].as_str().unwrap());
    // It was waited for.
    let start = stage.policy.asked();
    assert_eq!(start.len(), 1);
    assert_eq!(about(&start[0]), json!(["TaskStart", "s1", turn, task, null, null, null, null, "api", "api"]));
    assert_eq!(start[0].detail(), &json!({"title": "the build"}));
    assert_eq!(start[0].headers["traceparent"], trace);

    stage.stop_task("s1", task, "cancelled").await?;
    let told = stage.policy.at_least(2).await;
    assert_eq!(about(&told[1]), json!(["TaskStop", "s1", turn, task, null, null, null, null, "api", "api"]));
    assert_eq!(told[1].detail(), &json!({"status": "cancelled"}));
    assert!(!told[1].headers.contains_key("traceparent"), "the second request had none");

    stage.audited("s1", "TaskStop").await?;
    let audit = stage.audit("s1").await?;
    let shown: Value = audit
        .iter()
        .map(|record| {
            let names = ["event", "handlerId", "turnId", "taskId", "plane", "route", "outcome", "failure"];
            names.iter().map(|name| record[*name].clone()).collect::<Value>()
        })
        .collect();
    assert_eq!(
        shown,
        json!([
            ["TaskStart", "policy-TaskStart", turn, task, "api", "api", "pass", null],
            ["TaskStop", "policy-TaskStop", turn, task, "api", "api", "pass", null],
        ])
    );
    let text = serde_json::to_string(&audit)?;
    assert!(!text.contains("the build"), "{text}");

    let (_, other) = stage.start_task("s1", "").await?;
    assert_ne!(other, turn);
    let told = stage.policy.asked_of("TaskStart");
    assert_eq!(told[1].detail(), &json!({}), "it has no title");
    assert_eq!(stage.policy.asked().len(), 3, "tasks are no beginning and no end of a session");
    Ok(())
}

pub(crate) async fn a_start_is_waited_for(host: Host) -> Outcome {
    let gate = Gate::default();
    let held = gate.clone();
    let decide = move |told: &Envelope| match told.text("/detail/title") {
        "slow" => Ruling::pass().after(&held),
        _ => Ruling::pass(),
    };
    let stage = Stage::deciding(host, ["TaskStart"], decide).await?;
    let slow = stage.start_task("s1", r#"{"title": "slow"}"#);
    tokio::pin!(slow);
    tokio::select! {
        _ = &mut slow => return Err("it was not waited for".into()),
        () = gate.reached() => {}
    }
    // Nobody else waits for it.
    stage.start_task("s1", r#"{"title": "quick"}"#).await?;
    gate.open();
    slow.await?;
    Ok(())
}

pub(crate) async fn handlers_that_fail_stop_no_task(host: Host) -> Outcome {
    let policy = Policy::start(|told| match told.event() {
        "TaskStart" => Ruling::raw(500, "no"),
        _ => Ruling::raw(200, r#"{"schemaVersion": 1, "outcome": "deny", "reason": "no"}"#),
    })
    .await?;
    let hooks = [policy.hook("TaskStart"), policy.hook("TaskStop")];
    let stage = Stage::start(host, policy, &hooks, says_its_number().await?).await?;
    let (task, _) = stage.start_task("s1", "").await?;
    let record = stage.audited("s1", "TaskStart").await?;
    assert_eq!((&record["outcome"], &record["failure"]), (&json!("failed_open"), &json!("status")));
    stage.stop_task("s1", &task, "completed").await?;
    let record = stage.audited("s1", "TaskStop").await?;
    assert_eq!((&record["outcome"], &record["failure"]), (&json!("failed_open"), &json!("outcome")));
    Ok(())
}

/// Whoever began it never learns its id, so nobody else could end it.
pub(crate) async fn a_task_whose_caller_left_is_interrupted(host: Host) -> Outcome {
    let gate = Gate::default();
    let held = gate.clone();
    let decide = move |told: &Envelope| match told.event() {
        "TaskStart" => Ruling::pass().after(&held),
        _ => Ruling::pass(),
    };
    let stage = Stage::deciding(host, ["TaskStart", "TaskStop"], decide).await?;
    let client = Client::new(&stage.url);
    tokio::select! {
        _ = client.post("/hookgate/v1/sessions/s1/tasks", &[], "") => return Err("it was not waited for".into()),
        () = gate.reached() => {}
    }
    let stopped = stage.policy.at_least_of("TaskStop", 1).await;
    let started = stage.policy.asked_of("TaskStart");
    assert_eq!(stopped[0].detail(), &json!({"status": "interrupted"}));
    for member in ["/taskId", "/turnId"] {
        assert_eq!(stopped[0].text(member), started[0].text(member));
    }
    assert_eq!(stage.audited("s1", "TaskStart").await?["outcome"], "cancelled");
    let stop = format!("POST sessions/s1/tasks/{}/stop", started[0].text("/taskId"));
    stage.problem(&stop, r#"{"status": "completed"}"#, 409).await?;
    Ok(())
}

/// A handler copies the header of its request to those that it makes itself.
pub(crate) async fn hooks_are_not_told_of_what_hooks_do(host: Host) -> Outcome {
    let stage = Stage::with(host, ["TaskStart", "TaskStop", "SessionEnd"]).await?;
    stage.start_task("s1", "").await?;
    let own = stage.policy.asked()[0].headers["x-hookgate-dispatch"].to_str()?.to_owned();
    let own = [("x-hookgate-dispatch", own.as_str())];
    let (status, begun) = stage.ask_with("POST sessions/s2/tasks", &own, "").await?;
    assert_eq!(status, 201);
    // Of a task whose start nobody was told of, the end is not told either.
    stage.stop_task("s2", begun["taskId"].as_str().unwrap(), "completed").await?;
    let (_, begun) = stage.ask_with("POST sessions/s2/tasks", &own, "").await?;
    let stop = format!("POST sessions/s2/tasks/{}/stop", begun["taskId"].as_str().unwrap());
    assert_eq!(stage.ask_with(&stop, &own, r#"{"status": "failed"}"#).await?.0, 204);
    assert_eq!(stage.ask_with("DELETE sessions/s2", &own, "").await?.0, 204);
    stage.problem("GET sessions/s2", "", 404).await?;
    // What is not one of ours counts for nothing.
    assert_eq!(stage.ask_with("DELETE sessions/s1", &[("x-hookgate-dispatch", "a.1.b")], "").await?.0, 204);
    let told: Vec<String> = stage.policy.asked().iter().map(|told| told.event().to_owned()).collect();
    assert_eq!(told, ["TaskStart", "TaskStop", "SessionEnd"], "those of the first session");
    assert!(stage.policy.asked().iter().all(|told| told.text("/sessionId") == "s1"));
    Ok(())
}

#[tokio::test]
async fn nobody_is_told_while_hooks_are_switched_off() -> Outcome {
    let policy = Policy::start(|_| Ruling::pass()).await?;
    let hooks = ["TaskStart", "TaskStop", "SessionEnd"].map(|event| policy.hook(event));
    let hooks = HookSet::builder()
        .document("hooks.json", &document(hooks))
        .allowed_hosts(["127.0.0.1"])
        .allow_insecure_loopback(true)
        .build()?;
    let run = async |mode: HooksMode| {
        let core = Hookgate::builder().hooks(hooks.clone()).hooks_mode(mode).transport(Arc::new(HyperTransport::new()));
        let core = core.build();
        let session = SessionKey { tenant: "default".into(), session: "s1".into() };
        let task = core.start_task(&session, None).await?;
        core.stop_task(&session, &task.task_id, TaskStatus::Completed)?;
        core.start_task(&session, None).await?;
        core.delete_session(&session).await?;
        Ok::<_, BoxError>(core.session(&session))
    };
    assert_eq!(run(HooksMode::Off).await?, None);
    assert_eq!(policy.asked().len(), 0);
    assert_eq!(run(HooksMode::On).await?, None);
    assert_eq!(policy.at_least(5).await.len(), 5);
    Ok(())
}
