//! Results are told of once, by whether they succeeded.

use hookgate::testing::{Message, Ruling};
use serde_json::json;

use super::stage::{Outcome, Setting, says};

pub(super) async fn each_result_is_told_once(at: Setting) -> Outcome {
    let script = [
        Message::new("msg_1").tool("toolu_1", "a", r#"{"n":  1}"#).tool("toolu_2", "fails", "{}"),
        Message::new("msg_2").tool("toolu_3", "a", r#"{"n":3}"#),
        says("msg_3", "Done."),
        says("msg_4", "Bye."),
        says("msg_5", "Bye."),
    ];
    let stage = at.model(script).hooks(["PostToolUse", "PostToolUseFailure"]).start().await?;
    let mut agent = stage.agent().tool("fails", |_| Err("it broke".to_owned()));
    agent.prompt("Go.").await?;
    agent.say("Thanks.");
    agent.request().await?;
    agent.request().await?;
    let mut told = stage.policy.at_least_of("PostToolUse", 2).await;
    // Nobody waits for observers, so the two may come in any order.
    told.sort_by_key(|told| told.text("/toolCallId").to_owned());
    let failed = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert_eq!((told.len(), failed.len()), (2, 1));
    assert_eq!((told[0].text("/toolCallId"), told[1].text("/toolCallId")), ("toolu_1", "toolu_3"));
    assert_eq!(told[0].tool(), "a");
    assert_eq!(told[0].detail()["input"], json!({"n": 1}));
    assert!(told[0].detail()["result"].to_string().contains("a ran with"));
    assert_eq!(failed[0].text("/toolCallId"), "toolu_2");
    assert!(failed[0].detail()["error"].to_string().contains("it broke"));
    assert_eq!(told[0].text("/turnId"), told[1].text("/turnId"));
    assert_eq!(told[0].text("/plane"), "model");
    Ok(())
}

/// A result that hookgate supplied is nobody's tool run.
pub(super) async fn a_denied_call_has_no_result_to_tell_of(at: Setting) -> Outcome {
    let script = [
        Message::new("msg_1").tool("toolu_1", "a", "{}").tool("toolu_2", "b", "{}"),
        says("msg_2", "Done."),
        says("msg_3", "Bye."),
    ];
    let stage = at
        .model(script)
        .hooks(["PreToolUse", "PostToolUse", "PostToolUseFailure"])
        .policy(|asked| match (asked.event(), asked.tool()) {
            ("PreToolUse", "b") => Ruling::deny("no"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.prompt("Go.").await?;
    agent.prompt("Thanks.").await?;
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!(told.iter().map(|told| told.text("/toolCallId").to_owned()).collect::<Vec<_>>(), ["toolu_1"]);
    assert!(stage.policy.asked_of("PostToolUseFailure").is_empty());
    Ok(())
}

/// What was really run is what is told of.
pub(super) async fn a_rewritten_call_is_told_with_what_ran(at: Setting) -> Outcome {
    let script = [Message::new("msg_1").tool("toolu_1", "a", r#"{"n":1}"#), says("msg_2", "Done.")];
    let stage = at
        .model(script)
        .hooks(["PreToolUse", "PostToolUse"])
        .policy(|asked| if asked.event() == "PreToolUse" { Ruling::modify(json!({"n": 2})) } else { Ruling::pass() })
        .start()
        .await?;
    stage.agent().prompt("Go.").await?;
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!(told[0].detail()["input"], json!({"n": 2}));
    Ok(())
}

/// An observer that hangs delays nothing.
pub(super) async fn observers_delay_nothing(at: Setting) -> Outcome {
    let gate = hookgate::testing::Gate::default();
    let held = gate.clone();
    let script = [Message::new("msg_1").tool("toolu_1", "a", "{}"), says("msg_2", "Done.")];
    let stage = at
        .model(script)
        .hook(|policy| policy.hook("PostToolUse").timeout_ms(30_000))
        .policy(move |_| Ruling::pass().after(&held))
        .start()
        .await?;
    let replies = stage.agent().prompt("Go.").await?;
    assert_eq!(replies[1].text(), "Done.");
    stage.policy.at_least_of("PostToolUse", 1).await;
    gate.open();
    stage.gateway.audited("PostToolUse", "pass").await?;
    Ok(())
}
