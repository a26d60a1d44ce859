//! Model requests that are made for a background task.

use hookgate::BoxError;
use hookgate::testing::{Answer, Client, Envelope, Model, Policy, Ruling};

use super::stage::{Host, Outcome, Stage};

fn turns(told: &[Envelope]) -> Vec<(String, String, String)> {
    let of =
        |told: &Envelope| (told.event().to_owned(), told.text("/turnId").to_owned(), told.text("/taskId").to_owned());
    told.iter().map(of).collect()
}

pub(crate) async fn what_a_task_does_is_told_with_its_turn(host: Host) -> Outcome {
    let stage = Stage::with(host, ["SessionStart", "TaskStart", "UserPromptSubmit", "Stop", "SessionEnd"]).await?;
    let (task, turn) = stage.start_task("s1", "").await?;
    let mut agent = stage.agent("s1").header("x-hookgate-task", &task);
    agent.prompt("Build it.").await?;
    agent.prompt("Test it.").await?;
    let own = |event: &str| (event.to_owned(), turn.clone(), task.clone());
    assert_eq!(
        turns(&stage.policy.asked()),
        ["TaskStart", "UserPromptSubmit", "Stop", "UserPromptSubmit", "Stop"].map(own),
        "and no session began"
    );
    assert!(!stage.model.requests()[0].headers.contains_key("x-hookgate-task"));
    let audit = stage.audit("s1").await?;
    assert!(audit.iter().all(|record| record["taskId"] == task && record["turnId"] == turn), "{audit:?}");
    let record = stage.control("GET sessions/s1", "", 200).await?;
    assert_eq!((&record["turns"], &record["model"]), (&0.into(), &serde_json::Value::Null), "{record}");

    // The conversation itself begins after it.
    stage.agent("s1").prompt("Hello.").await?;
    let told = turns(&stage.policy.asked()[5..]);
    let events: Vec<&str> = told.iter().map(|(event, ..)| event.as_str()).collect();
    assert_eq!(events, ["SessionStart", "UserPromptSubmit", "Stop"]);
    assert!(told.iter().all(|(_, of, task)| *of != turn && task.is_empty()), "{told:?}");

    // What comes late is still the task's.
    stage.stop_task("s1", &task, "completed").await?;
    agent.prompt("Was that all?").await?;
    assert_eq!(turns(&stage.policy.asked()[8..]), [own("UserPromptSubmit"), own("Stop")]);
    Ok(())
}

pub(crate) async fn a_task_that_is_unknown_is_none(host: Host) -> Outcome {
    let stage = Stage::with(host, ["SessionStart", "UserPromptSubmit"]).await?;
    let (task, _) = stage.start_task("s1", "").await?;
    // It is another session's.
    stage.agent("s2").header("x-hookgate-task", &task).prompt("Build it.").await?;
    let told = turns(&stage.policy.asked());
    let events: Vec<&str> = told.iter().map(|(event, ..)| event.as_str()).collect();
    assert_eq!(events, ["SessionStart", "UserPromptSubmit"]);
    assert!(told.iter().all(|(.., task)| task.is_empty()), "{told:?}");
    Ok(())
}

/// A session whose tools alone go through hookgate is one, too.
pub(crate) async fn calls_of_tools_are_of_a_session_and_a_task(host: Host) -> Outcome {
    let said = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"done"}]}}"#;
    let server = Model::answering(move |_, _| Answer::json(200, said)).await?;
    let policy = Policy::start(|_| Ruling::pass()).await?;
    let hooks = ["PreToolUse", "TaskStart", "SessionEnd"].map(|event| policy.hook(event));
    let stage = Stage::start(host, policy, &hooks, server).await?;
    let call = async |headers: &[(&str, &str)]| {
        let own = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-11-25")];
        let headers = [&own[..], headers].concat();
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{}}}"#;
        let answer = Client::new(&stage.url).post("/tools", &headers, call).await?;
        Ok::<_, BoxError>((answer.status.as_u16(), answer.bytes().await?))
    };
    assert_eq!(call(&[("x-hookgate-session", "s1")]).await?, (200, said.into()));
    assert_eq!(stage.listed("").await?, ["s1"]);
    let (task, turn) = stage.start_task("s1", "").await?;
    call(&[("x-hookgate-session", "s1"), ("x-hookgate-task", &task)]).await?;
    let told = stage.policy.asked_of("PreToolUse");
    let about = |told: &Envelope| {
        (told.text("/plane").to_owned(), told.text("/turnId").to_owned(), told.text("/taskId").to_owned())
    };
    assert_eq!(about(&told[0]), ("tool".into(), String::new(), String::new()));
    assert_eq!(about(&told[1]), ("tool".into(), turn, task));
    stage.control("DELETE sessions/s1", "", 204).await?;
    assert_eq!((stage.listed("").await?.len(), stage.audit("s1").await?.len()), (0, 0));
    Ok(())
}
