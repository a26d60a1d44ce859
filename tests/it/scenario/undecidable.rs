//! What cannot be read without doubt is never allowed by default.

use bytes::Bytes;
use hookgate::testing::{Hook, Message, Policy, Reply, Ruling};
use http::Method;
use serde_json::json;

use super::stage::{Outcome, Setting, Stage, result_of, says, text};

/// Plays one turn with one call, a handler for PreToolUse, and a policy that passes whatever it is asked.
async fn turn(at: Setting, call: Message, hook: fn(&Policy) -> Hook) -> Result<(Stage, Reply), hookgate::BoxError> {
    let plan = at.model([call, says("msg_2", "Done.")]).hook(hook).limits(|limits| limits.max_gated_bytes = 2048);
    let stage = plan.start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    Ok((stage, reply))
}

fn closed(policy: &Policy) -> Hook {
    policy.hook("PreToolUse")
}

fn open(policy: &Policy) -> Hook {
    policy.hook("PreToolUse").open()
}

fn elsewhere(policy: &Policy) -> Hook {
    policy.hook("PreToolUse").matcher(["other"])
}

pub(super) async fn duplicate_keys_are_not_allowed(at: Setting) -> Outcome {
    for input in [r#"{"host":"ok.test","host":"evil.test"}"#, r#"{"a":{"host":1,"ho\u0073t":2}}"#] {
        let (stage, reply) = turn(at, Message::new("msg_1").tool("toolu_1", "a", input), closed).await?;
        assert!(reply.calls().is_empty());
        assert!(stage.policy.asked().is_empty(), "nobody is asked about what two readers read differently");
        assert_eq!(result_of(&stage.messages(1)[2], "toolu_1")["is_error"], true);
        stage.gateway.audited("PreToolUse", "malformed_input").await?;
    }
    Ok(())
}

pub(super) async fn duplicate_keys_pass_an_open_handler(at: Setting) -> Outcome {
    let input = r#"{"host":"ok.test","host":"evil.test"}"#;
    let (stage, reply) = turn(at, Message::new("msg_1").tool("toolu_1", "a", input), open).await?;
    assert_eq!(reply.calls().len(), 1);
    assert!(stage.policy.asked().is_empty());
    Ok(())
}

/// Streams only: a whole message is one JSON text, so its arguments are JSON.
pub(super) async fn arguments_that_are_not_json_are_not_allowed(at: Setting) -> Outcome {
    for fragments in [&["{\"x\":"][..], &["{\"x\":1}", "{\"x\":2}"], &["\"x\""], &["[]"], &["{\"x\":1"]] {
        let call = Message::new("msg_1").tool_in_fragments("toolu_1", "a", fragments);
        let (stage, reply) = turn(at, call, closed).await?;
        assert!(reply.calls().is_empty(), "{fragments:?}");
        assert!(!text(&reply.raw).contains("toolu_1"));
        assert!(stage.policy.asked().is_empty());
    }
    Ok(())
}

/// No arguments at all are an empty object.
pub(super) async fn no_arguments_are_an_empty_object(at: Setting) -> Outcome {
    let (stage, reply) = turn(at, Message::new("msg_1").tool_in_fragments("toolu_1", "a", &[""]), closed).await?;
    assert_eq!(reply.calls().len(), 1);
    assert_eq!(stage.policy.asked()[0].detail()["input"], json!({}));
    Ok(())
}

/// Escapes and characters may be cut anywhere by the stream.
pub(super) async fn fragments_are_joined_before_they_are_read(at: Setting) -> Outcome {
    let fragments = ["{\"n\":\"\\uD8", "3D\\uDE", "00\",\"m\":\"a\\", "\"b\"", "}"];
    let (stage, reply) = turn(at, Message::new("msg_1").tool_in_fragments("toolu_1", "a", &fragments), closed).await?;
    assert_eq!(reply.calls()[0].input, json!({"n": "😀", "m": "a\"b"}));
    assert!(text(&stage.policy.asked()[0].raw).contains(r#""input":{"n":"\uD83D\uDE00","m":"a\"b"}"#));
    Ok(())
}

/// A call that the token limit cut is not asked about and not released, however complete it looks.
pub(super) async fn a_truncated_call_is_withheld(at: Setting) -> Outcome {
    let complete =
        Message::new("msg_1").text("Writing.").tool("toolu_1", "a", r#"{"path":"a.txt"}"#).stop("max_tokens");
    let cut = Message::new("msg_1")
        .text("Writing.")
        .tool_in_fragments("toolu_1", "a", &["{\"path\":\"a.txt\",\"body\":\"half"])
        .stop("max_tokens");
    let messages = if at.stream { vec![complete, cut.clone(), cut.unclosed()] } else { vec![complete] };
    for message in messages {
        let (stage, reply) = turn(at, message, closed).await?;
        assert!(!text(&reply.raw).contains("toolu_1"), "{}", text(&reply.raw));
        assert_eq!(reply.stop_reason(), "max_tokens");
        assert!(stage.policy.asked().is_empty());
        assert_eq!(stage.model.requests().len(), 1);
        stage.gateway.audited("PreToolUse", "truncated").await?;
    }
    Ok(())
}

/// Nobody judges it: it is relayed as the truncated thing that it is.
pub(super) async fn a_truncated_call_of_no_concern_is_relayed(at: Setting) -> Outcome {
    let cut = Message::new("msg_1").text("Writing.").tool("toolu_1", "a", r#"{"path":"a.txt"}"#).stop("max_tokens");
    let expected = if at.stream { cut.sse() } else { cut.json() };
    let (_stage, reply) = turn(at, cut, elsewhere).await?;
    assert_eq!(text(&reply.raw), text(&expected));
    Ok(())
}

/// Padding does not hide an argument: too much to judge is undecidable.
pub(super) async fn an_input_too_large_to_judge_is_not_allowed(at: Setting) -> Outcome {
    let input = format!(r#"{{"x":"{}"}}"#, "x".repeat(4000));
    let (stage, reply) = turn(at, Message::new("msg_1").tool("toolu_1", "a", &input), closed).await?;
    assert!(reply.calls().is_empty());
    assert!(stage.policy.asked().is_empty());
    assert_eq!(stage.gateway.audited("PreToolUse", "failed_closed").await?["failure"], "too_large_input");
    Ok(())
}

pub(super) async fn a_prompt_too_large_to_judge_is_refused(at: Setting) -> Outcome {
    let plan = at.model([says("msg_1", "Hello.")]).hooks(["UserPromptSubmit"]);
    let stage = plan.limits(|limits| limits.max_gated_bytes = 2048).start().await?;
    let reply = stage.agent().request_for(&"x".repeat(4000)).await?;
    assert!(reply.text().contains("policy-UserPromptSubmit"), "{}", reply.text());
    assert!(stage.model.requests().is_empty());
    Ok(())
}

/// More than may be held back: the call is undecidable, and the rest of the answer still comes.
pub(super) async fn more_than_can_be_held_is_not_allowed(at: Setting) -> Outcome {
    let input = format!(r#"{{"x":"{}"}}"#, "x".repeat(200_000));
    let call = Message::new("msg_1").text("Writing.").tool("toolu_1", "a", &input);
    let plan = at.model([call, says("msg_2", "Done.")]).hooks(["PreToolUse"]);
    let stage = plan.limits(|limits| limits.max_held_bytes = 64 << 10).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(!text(&reply.raw).contains("toolu_1"));
    assert!(stage.policy.asked().is_empty());
    Ok(())
}

/// A request that cannot be read is refused while someone judges.
pub(super) async fn an_unreadable_request_is_refused(at: Setting) -> Outcome {
    let bodies = [
        "not json",
        "[]",
        r#"{"model":"m","messages":1}"#,
        r#"{"model":"m","messages":[],"messages":[{"role":"user","content":"hi"}]}"#,
        r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}"#,
        "{\"model\":\"\u{0}\"}",
    ];
    for hook in ["UserPromptSubmit", "PreToolUse"] {
        let stage = at.model([says("msg_1", "Hello.")]).hook(move |policy| policy.hook(hook)).start().await?;
        for body in bodies {
            let refused = stage.client().post("/v1/messages", &[], body).await?;
            assert_eq!(refused.status, 400, "{hook} {body}");
            let error: serde_json::Value = serde_json::from_slice(&refused.bytes().await?)?;
            assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
        }
        assert!(stage.model.requests().is_empty());
    }
    Ok(())
}

/// With nobody to judge it, it is the upstream's to refuse.
pub(super) async fn an_unreadable_request_passes_where_nobody_judges(at: Setting) -> Outcome {
    for observed in [false, true] {
        let mut plan = at.model([hookgate::testing::Answer::error(400, "invalid_request_error", "what is this?")]);
        if observed {
            plan = plan.hooks(["PostToolUse"]);
        }
        let stage = plan.start().await?;
        let answer = stage.client().post("/v1/messages", &[], "not json").await?;
        assert_eq!(answer.status, 400);
        assert!(text(&answer.bytes().await?).contains("what is this?"));
        assert_eq!(stage.body(0), "not json");
    }
    Ok(())
}

/// A body over the limit is refused in the protocol's shape, declared or not, and the next request is served.
pub(super) async fn a_body_over_the_limit_is_refused(at: Setting) -> Outcome {
    let plan = at.model([says("msg_1", "Hello.")]).hooks(["UserPromptSubmit"]);
    let stage = plan.limits(|limits| limits.max_request_bytes = 4096).start().await?;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(100_000)}]}).to_string();
    let client = stage.client();
    let refused = client.send(Method::POST, "/v1/messages", &[], Bytes::from(body)).await?;
    assert_eq!(refused.status, 413);
    let error: serde_json::Value = serde_json::from_slice(&refused.bytes().await?)?;
    assert_eq!(error["error"]["type"], "request_too_large");
    assert!(stage.model.requests().is_empty());
    let small = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let answer = client.post("/v1/messages", &[], small).await?;
    assert_eq!(answer.status, 200);
    Ok(())
}

/// A delta kind of the future inside a call: its arguments are not known.
pub(super) async fn unknown_deltas_in_a_call_are_not_allowed(at: Setting) -> Outcome {
    let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_delta_2099\",\"more\":1}}\n\n";
    let call = Message::new("msg_1").tool("toolu_1", "a", r#"{"x":1}"#).sse();
    let stop = b"event: content_block_stop";
    let end = call.windows(stop.len()).position(|at| at == stop).ok_or("no stop")?;
    let events = [call.slice(..end), delta.into(), call.slice(end..)];
    let stage = at.answering(move |number, _| match number {
        0 => hookgate::testing::Answer::events(events.clone()),
        _ => says("msg_2", "Done.").into(),
    });
    let stage = stage.hooks(["PreToolUse"]).policy(|_| Ruling::pass()).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(reply.calls().is_empty());
    assert!(!text(&reply.raw).contains("toolu_1"));
    Ok(())
}
