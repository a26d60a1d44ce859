//! Model requests that are made for a background task.

use hookgate::testing::Envelope;

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
