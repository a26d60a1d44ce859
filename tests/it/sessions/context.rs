//! What `TaskStart` handlers add: the session's model reads it with the next request.

use hookgate::testing::{Answer, Envelope, Message, Model, Policy, Ruling};
use serde_json::json;

use super::stage::{Host, Outcome, Stage};

const ADDED: &str = "<hook-context event=\"TaskStart\" handler=\"policy-TaskStart\">\nThe build may touch nothing else.\n</hook-context>";

fn adds(told: &Envelope) -> Ruling {
    match told.event() {
        "TaskStart" => Ruling::pass().context("The build may touch nothing else."),
        _ => Ruling::pass(),
    }
}

pub(crate) async fn what_handlers_add_is_read_with_the_next_request(host: Host) -> Outcome {
    // Nobody judges what a handler added, least of all as a prompt of the user.
    let stage = Stage::deciding(host, ["TaskStart", "UserPromptSubmit"], adds).await?;
    let mut agent = stage.agent("s1");
    agent.prompt("Build it.").await?;
    let (task, _) = stage.start_task("s1", "").await?;
    stage.stop_task("s1", &task, "completed").await?;
    agent.prompt("And now?").await?;
    assert_eq!(stage.last_texts(1), ["And now?", ADDED]);
    let record = stage.audited("s1", "TaskStart").await?;
    assert_eq!(record["outcome"], "pass");

    // It stands in the same place from now on, once.
    agent.prompt("Well?").await?;
    assert_eq!(stage.last_texts(2), ["Well?"]);
    let (before, after) = (stage.request(1), stage.request(2));
    let marks = |sent: &str| sent.matches("<hook-context").count();
    assert_eq!((marks(&before), marks(&after)), (1, 1));
    assert!(after.starts_with(before.split("]}]").next().ok_or("no messages")?), "{after}");
    let prompts: Vec<String> =
        stage.policy.asked_of("UserPromptSubmit").iter().map(|told| told.text("/detail/prompt").to_owned()).collect();
    assert_eq!(prompts, ["Build it.", "And now?", "Well?"]);
    Ok(())
}

pub(crate) async fn only_the_agent_itself_reads_it(host: Host) -> Outcome {
    let stage = Stage::deciding(host, ["TaskStart"], adds).await?;
    // The session's model may not have asked anything yet.
    stage.start_task("s1", "").await?;
    stage.agent("s2").prompt("Another one.").await?;
    stage.agent("s1").claude_code("s1").header("x-claude-code-agent-id", "sub").prompt("Look.").await?;
    let title = json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
    stage.agent("s1").claude_code("s1").member("output_config", title).prompt("A title.").await?;
    for number in 0..3 {
        assert!(!stage.request(number).contains("TaskStart"), "{}", stage.request(number));
    }
    stage.agent("s1").prompt("Go on.").await?;
    assert_eq!(stage.last_texts(3), ["Go on.", ADDED]);
    Ok(())
}

/// A client that got no answer may go on with another history, which does not have it.
pub(crate) async fn what_was_not_answered_is_read_again(host: Host) -> Outcome {
    let model = Model::answering(|number, _| match number {
        0 => Answer::error(529, "overloaded_error", "later"),
        _ => Message::new(&format!("msg_{number}")).text("yes").into(),
    })
    .await?;
    let policy = Policy::start(adds).await?;
    let hooks = [policy.hook("TaskStart")];
    let stage = Stage::start(host, policy, &hooks, model).await?;
    stage.start_task("s1", "").await?;
    let mut agent = stage.agent("s1");
    assert!(agent.request_for("One.").await?.error_message().contains("later"));
    agent.history().clear();
    agent.prompt("Two.").await?;
    assert_eq!(
        (stage.last_texts(0), stage.last_texts(1)),
        (vec!["One.".into(), ADDED.into()], vec!["Two.".into(), ADDED.into()])
    );
    agent.prompt("Three.").await?;
    assert_eq!(stage.last_texts(2), ["Three."]);
    Ok(())
}
