//! A rewritten call is the one that the client runs and echoes.

use hookgate::testing::{Message, Ruling};
use serde_json::json;

use super::stage::{Outcome, Setting, parts, result_of, says, text};

fn two_calls() -> Message {
    Message::new("msg_1").text("Working.").tool("toolu_1", "a", r#"{"p": "x", "n": 1}"#).tool(
        "toolu_2",
        "b",
        r#"{"q":2}"#,
    )
}

pub(super) async fn arguments_are_replaced(at: Setting) -> Outcome {
    let stage = at
        .model([two_calls(), says("msg_2", "Done.")])
        .hooks(["PreToolUse"])
        .policy(|asked| match asked.tool() {
            "a" => Ruling::modify_raw(r#"{"p": "y", "n": 1.50}"#),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let replies = stage.agent().prompt("Go.").await?;
    let calls = replies[0].calls();
    assert_eq!(calls[0].input, json!({"p": "y", "n": 1.5}));
    assert_eq!(calls[1].input, json!({"q": 2}));
    assert!(text(&replies[0].raw).contains("1.50"), "number text is kept: {}", text(&replies[0].raw));
    assert_eq!(replies[0].stop_reason(), "tool_use");
    let messages = stage.messages(1);
    assert_eq!(parts(&messages[1], "tool_use")[0]["input"], json!({"p": "y", "n": 1.5}));
    assert_eq!(messages.len(), 3);
    assert_eq!(stage.gateway.audited("PreToolUse", "modify").await?["toolName"], "a");
    Ok(())
}

/// The frames of everything else are untouched.
pub(super) async fn a_rewrite_leaves_other_blocks_alone(at: Setting) -> Outcome {
    let first =
        Message::new("msg_1").thinking("hm", "c2ln").tool("toolu_1", "a", "{}").tool("toolu_2", "b", r#"{"q":  2}"#);
    let stage = at
        .model([first.clone(), says("msg_2", "Done.")])
        .hook(|policy| policy.hook("PreToolUse").matcher(["a"]))
        .policy(|_| Ruling::modify(json!({"new": true})))
        .start()
        .await?;
    let replies = stage.agent().prompt("Go.").await?;
    let expected = if at.stream { first.sse() } else { first.json() };
    let (got, expected) = (text(&replies[0].raw), text(&expected));
    let cut = |text: &str, mark: &str| text.find(mark).map(|at| text[..at].to_owned());
    // Up to the rewritten arguments, and from the next call on.
    let (start, end) = match at.stream {
        true => (
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1",
            "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2",
        ),
        false => (r#","input":{"#, r#"{"type":"tool_use","id":"toolu_2""#),
    };
    assert!(cut(&expected, start).is_some() && expected.contains(end));
    assert_eq!(cut(&got, start), cut(&expected, start));
    assert_eq!(got.split_once(end).map(|(_, rest)| rest), expected.split_once(end).map(|(_, rest)| rest));
    Ok(())
}

async fn unfit(
    at: Setting,
    open: bool,
) -> Result<(super::stage::Stage, Vec<hookgate::testing::Reply>), hookgate::BoxError> {
    let stage = at
        .model([Message::new("msg_1").tool("toolu_1", "typed", r#"{"path":"x"}"#), says("msg_2", "Done.")])
        .hook(move |policy| if open { policy.hook("PreToolUse").open() } else { policy.hook("PreToolUse") })
        .policy(|_| Ruling::modify(json!({"path": 1})))
        .start()
        .await?;
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let mut agent = stage.agent().tool_with("typed", schema, |input| Ok(input.to_string()));
    let replies = agent.prompt("Go.").await?;
    Ok((stage, replies))
}

pub(super) async fn a_replacement_must_fit_the_schema(at: Setting) -> Outcome {
    let (stage, replies) = unfit(at, false).await?;
    assert!(replies[0].calls().is_empty());
    let messages = stage.messages(1);
    assert_eq!(result_of(&messages[2], "toolu_1")["is_error"], true);
    assert_eq!(stage.gateway.audited("PreToolUse", "failed_closed").await?["failure"], "schema");
    Ok(())
}

pub(super) async fn a_replacement_that_does_not_fit_is_not_used(at: Setting) -> Outcome {
    let (stage, replies) = unfit(at, true).await?;
    assert_eq!(replies[0].calls()[0].input, json!({"path": "x"}));
    assert_eq!(stage.gateway.audited("PreToolUse", "failed_open").await?["failure"], "schema");
    Ok(())
}

pub(super) async fn replacements_are_chained(at: Setting) -> Outcome {
    let stage = at
        .model([Message::new("msg_1").tool("toolu_1", "a", r#"{"n":1}"#), says("msg_2", "Done.")])
        .hook(|policy| policy.hook("PreToolUse").id("one"))
        .hook(|policy| policy.hook("PreToolUse").id("two"))
        .hook(|policy| policy.hook("PreToolUse").id("three"))
        .policy(|asked| match asked.detail()["input"]["n"].as_u64() {
            Some(1) => Ruling::modify(json!({"n": 2})),
            Some(2) if asked.detail()["input"]["m"].is_null() => Ruling::modify(json!({"n": 2, "m": 3})),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let replies = stage.agent().prompt("Go.").await?;
    assert_eq!(replies[0].calls()[0].input, json!({"n": 2, "m": 3}));
    assert_eq!(stage.policy.asked().len(), 3);
    Ok(())
}

/// Context for the model stands after all results, once, and names the call.
pub(super) async fn context_stands_after_the_results(at: Setting) -> Outcome {
    let stage = at
        .model([two_calls(), says("msg_2", "Done."), says("msg_3", "Bye.")])
        .hook(|policy| policy.hook("PreToolUse").matcher(["a"]))
        .policy(|_| Ruling::pass().context("p is case-sensitive"))
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.prompt("Go.").await?;
    agent.prompt("Thanks.").await?;
    for number in [1, 2] {
        let message = &stage.messages(number)[2];
        let content = message["content"].as_array().cloned().unwrap_or_default();
        let kinds: Vec<_> = content.iter().map(|part| part["type"].as_str().unwrap_or_default()).collect();
        assert_eq!(kinds, ["tool_result", "tool_result", "text"], "request {number}");
        let context = content[2]["text"].as_str().unwrap_or_default();
        assert!(context.contains("p is case-sensitive") && context.contains("toolu_1"), "{context}");
    }
    Ok(())
}
