//! Delegation: the call that starts a sub-agent, its own thread, its end.

use hookgate::testing::{Agent, Answer, Envelope, Message, Received, Reply, Ruling};
use serde_json::{Value, json};

use super::stage::{Outcome, Setting, Stage, parts, result_of, says, text};

const DELEGATE: &str = r#"{"subagent_type":"researcher","prompt":"look it up","n":1.0}"#;

fn delegation() -> Message {
    Message::new("msg_1").text("Delegating.").tool("toolu_1", "Agent", DELEGATE)
}

/// Plays one turn in which the model delegates.
async fn delegate(
    at: Setting,
    decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static,
) -> Result<(Stage, Vec<Reply>), hookgate::BoxError> {
    let stage = at
        .model([delegation(), says("msg_2", "Done.")])
        .hooks(["PreToolUse", "SubagentStart", "SubagentStop", "PostToolUse"])
        .policy(decide)
        .start()
        .await?;
    let mut agent = stage.agent().tool("Agent", |input| Ok(format!("answer to {}", input["prompt"])));
    let replies = agent.prompt("Find out.").await?;
    Ok((stage, replies))
}

pub(super) async fn a_delegation_starts_and_stops_once(at: Setting) -> Outcome {
    let (stage, _) = delegate(at, |_| Ruling::pass()).await?;
    let started = stage.policy.asked_of("SubagentStart");
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].detail()["subagent"], "researcher");
    assert_eq!(started[0].detail()["prompt"], "look it up");
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 1, "PreToolUse comes first");
    let stopped = stage.policy.at_least_of("SubagentStop", 1).await;
    assert_eq!(stopped.len(), 1);
    assert_eq!(stopped[0].detail()["subagent"], "researcher");
    assert_eq!(stopped[0].detail()["ok"], true);
    assert!(stopped[0].detail()["response"].to_string().contains("answer to"));
    Ok(())
}

/// The sub-agent's own conversation ends, and its result comes back: that is one end, though nobody gates the call.
pub(super) async fn a_subagents_end_is_told_once_and_names_it(at: Setting) -> Outcome {
    let stage = at
        .answering(|_, request| match request.json()["messages"].as_array() {
            Some(messages) if messages[0].to_string().contains("look it up") => says("msg_sub", "Found.").into(),
            Some(messages) if messages.len() == 1 => delegation().into(),
            _ => says("msg_2", "Done.").into(),
        })
        .hooks(["SubagentStop"])
        .start()
        .await?;
    let mut agent = stage.agent().tool("Agent", |_| Ok("Found.".to_owned()));
    agent.say("Find out.");
    let reply = agent.request().await?;
    let mut sub = stage.agent().claude_code("session-1").header("x-claude-code-agent-id", "agent-7");
    assert_eq!(sub.prompt("look it up").await?[0].text(), "Found.");
    agent.take(&reply);
    agent.request().await?;
    let stopped = stage.policy.at_least_of("SubagentStop", 1).await;
    assert_eq!(stopped.len(), 1);
    assert_eq!((stopped[0].text("/agentId"), stopped[0].text("/toolCallId")), ("agent-7", "toolu_1"));
    assert_eq!(stopped[0].detail()["subagent"], "researcher");
    Ok(())
}

pub(super) async fn a_denied_delegation_is_a_denied_call(at: Setting) -> Outcome {
    let (stage, replies) = delegate(at, |asked| match asked.event() {
        "SubagentStart" => Ruling::deny("do it yourself"),
        _ => Ruling::pass(),
    })
    .await?;
    assert!(replies[0].calls().is_empty());
    let messages = stage.messages(1);
    assert!(result_of(&messages[2], "toolu_1")["content"].to_string().contains("do it yourself"));
    assert!(stage.policy.asked_of("SubagentStop").is_empty());
    Ok(())
}

pub(super) async fn a_delegated_prompt_can_be_replaced(at: Setting) -> Outcome {
    let (_stage, replies) = delegate(at, |asked| match asked.event() {
        "SubagentStart" => Ruling::modify("look it up offline").context("use the library"),
        _ => Ruling::pass(),
    })
    .await?;
    let input = &replies[0].calls()[0].input;
    let prompt = input["prompt"].as_str().unwrap_or_default();
    assert!(prompt.starts_with("look it up offline\n\n"), "{prompt}");
    assert!(prompt.contains("use the library"));
    assert_eq!(input["subagent_type"], "researcher");
    assert!(text(&replies[0].raw).contains("1.0"), "the rest keeps its text");
    Ok(())
}

pub(super) async fn a_call_that_is_denied_starts_nothing(at: Setting) -> Outcome {
    let (stage, _) = delegate(at, |asked| match asked.event() {
        "PreToolUse" => Ruling::deny("no"),
        _ => Ruling::pass(),
    })
    .await?;
    assert!(stage.policy.asked_of("SubagentStart").is_empty());
    Ok(())
}

pub(super) async fn a_failed_delegation_is_told_as_failed(at: Setting) -> Outcome {
    let stage =
        at.model([delegation(), says("msg_2", "Done.")]).hooks(["SubagentStart", "SubagentStop"]).start().await?;
    let mut agent = stage.agent().tool("Agent", |_| Err("it got lost".to_owned()));
    agent.prompt("Find out.").await?;
    let stopped = stage.policy.at_least_of("SubagentStop", 1).await;
    assert_eq!(stopped[0].detail()["ok"], false);
    assert!(stopped[0].detail()["error"].to_string().contains("it got lost"));
    Ok(())
}

fn by_prompt(request: &Received) -> Answer {
    let body = request.json();
    let first: Value = body["messages"][0].clone();
    let who = if first.to_string().contains("one") { "one" } else { "two" };
    let done = body["messages"].as_array().is_some_and(|messages| messages.len() > 1);
    match done {
        true => says(&format!("msg_{who}_2"), who).into(),
        // Both agents get the same call id: local models and gateways repeat them.
        false => Message::new(&format!("msg_{who}_1")).tool("toolu_1", "a", "{}").tool("toolu_2", "b", "{}").into(),
    }
}

/// Two sub-agents share a session id and run at once: what is decided for one is not the other's.
pub(super) async fn threads_of_one_session_are_apart(at: Setting) -> Outcome {
    let stage = at
        .answering(|_, request| by_prompt(request))
        .hooks(["UserPromptSubmit", "PreToolUse", "PostToolUse"])
        .policy(|asked| match (asked.event(), asked.tool(), asked.text("/agentId")) {
            ("PreToolUse", "b", "agent-one") => Ruling::deny("not for one"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let sub = |id: &str| -> Agent { stage.agent().claude_code("session-2").header("x-claude-code-agent-id", id) };
    let (mut one, mut two) = (sub("agent-one"), sub("agent-two"));
    let (first, second) = tokio::join!(one.prompt("task one"), two.prompt("task two"));
    let (first, second) = (first?, second?);
    assert_eq!((first[0].calls().len(), second[0].calls().len()), (1, 2));
    assert_eq!((first[1].text(), second[1].text()), ("one".to_owned(), "two".to_owned()));
    let asked = stage.policy.asked_of("UserPromptSubmit");
    assert!(asked.iter().all(|asked| asked.text("/sessionId") == "session-1"));
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 4);
    for request in stage.model.requests() {
        let body = request.json();
        let Some(results) = body["messages"].get(2) else { continue };
        assert_eq!(parts(results, "tool_result").len(), 2);
        let denied = body["messages"][0].to_string().contains("one");
        assert_eq!(result_of(results, "toolu_2")["is_error"] == true, denied, "{body}");
    }
    Ok(())
}

/// An agent that was started by another agent says so.
pub(super) async fn a_nested_agent_names_its_parent(at: Setting) -> Outcome {
    let stage = at.model([says("msg_1", "Done.")]).hooks(["UserPromptSubmit"]).start().await?;
    let agent = stage.agent().claude_code("session-2").header("x-claude-code-agent-id", "child");
    agent.header("x-claude-code-parent-agent-id", "parent").prompt("go").await?;
    let asked = &stage.policy.asked()[0];
    assert_eq!((asked.text("/agentId"), asked.text("/parentAgentId")), ("child", "parent"));
    assert_eq!(asked.json()["toolCallId"], json!(null));
    Ok(())
}
