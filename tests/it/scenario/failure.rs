//! What goes wrong upstream is never shown as a success, and StopFailure tells of it.

use hookgate::testing::{Answer, Message, Received, Ruling};

use super::stage::{Host, Outcome, Setting, says, text};
use crate::away::Away;

pub(super) async fn an_error_status_is_passed_on_and_told(at: Setting) -> Outcome {
    let body = r#"{"type":"error","error": {"type":"overloaded_error","message":"busy"}}"#;
    let answer = Answer::json(529, body).header("retry-after", "3").header("request-id", "req_1");
    let stage = at.model([answer]).hooks(["StopFailure", "Stop", "PreToolUse"]).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert_eq!(reply.status, 529);
    assert_eq!(text(&reply.raw), body);
    assert_eq!(reply.headers["retry-after"], "3");
    assert_eq!(reply.headers["request-id"], "req_1");
    let told = stage.policy.at_least_of("StopFailure", 1).await;
    assert_eq!(told[0].detail()["status"], 529);
    assert!(stage.policy.asked_of("Stop").is_empty());
    Ok(())
}

pub(super) async fn an_error_event_is_passed_on_and_told(at: Setting) -> Outcome {
    let broken = Message::new("msg_1").text("Starting.").error("overloaded_error", "busy");
    let stage = at.model([broken]).hooks(["StopFailure", "Stop", "PreToolUse"]).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert_eq!(reply.error_message(), "busy");
    assert!(!reply.complete);
    stage.policy.at_least_of("StopFailure", 1).await;
    assert!(stage.policy.asked_of("Stop").is_empty());
    Ok(())
}

/// The client gets the protocol's own error ending (or, of a whole answer, an error status), never a fake success.
pub(super) async fn a_cut_is_an_error(at: Setting) -> Outcome {
    let broken = Message::new("msg_1").text("Starting.").cut();
    let stage = at.model([broken]).hooks(["StopFailure", "Stop", "PreToolUse"]).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(!reply.complete);
    assert!(reply.error.is_some(), "{}", text(&reply.raw));
    stage.policy.at_least_of("StopFailure", 1).await;
    assert!(stage.policy.asked_of("Stop").is_empty());
    Ok(())
}

/// A call that was not decided when the stream broke is gone.
pub(super) async fn a_cut_inside_a_call_releases_nothing_of_it(at: Setting) -> Outcome {
    let broken =
        Message::new("msg_1").text("Starting.").tool_in_fragments("toolu_1", "a", &["{\"x\":", "1"]).unclosed().cut();
    let stage = at.model([broken]).hooks(["PreToolUse", "StopFailure"]).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(!reply.complete && reply.error.is_some());
    assert!(!text(&reply.raw).contains("toolu_1"));
    assert!(stage.policy.asked_of("PreToolUse").is_empty());
    stage.policy.at_least_of("StopFailure", 1).await;
    Ok(())
}

/// A call that was still being decided when the stream broke is gone too.
pub(super) async fn a_cut_while_a_call_is_decided_releases_nothing_of_it(at: Setting) -> Outcome {
    let gate = hookgate::testing::Gate::default();
    let broken = Message::new("msg_1").text("Starting.").tool("toolu_1", "a", "{}").cut();
    let held = gate.clone();
    let stage = at
        .model([broken])
        .hooks(["PreToolUse", "StopFailure"])
        .policy(move |asked| if asked.event() == "PreToolUse" { Ruling::pass().after(&held) } else { Ruling::pass() })
        .start()
        .await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(!reply.complete && reply.error.is_some());
    assert!(!text(&reply.raw).contains("toolu_1"));
    gate.open();
    Ok(())
}

/// A stream that ends without its end is broken as well.
pub(super) async fn an_early_end_is_no_success(at: Setting) -> Outcome {
    let whole = says("msg_1", "Starting.").sse();
    let stop = whole.windows(16).position(|at| at == b"event: message_d").ok_or("no end")?;
    let stage = at.model([Answer::events([whole.slice(..stop)])]).hooks(["StopFailure", "Stop"]).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(!reply.complete);
    stage.policy.at_least_of("StopFailure", 1).await;
    assert!(stage.policy.asked_of("Stop").is_empty());
    Ok(())
}

/// An event that was not finished is not delivered.
pub(super) async fn an_unfinished_event_is_not_passed_on(at: Setting) -> Outcome {
    let start = says("msg_1", "Starting.").sse();
    let event = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"del";
    let first = start.windows(2).position(|at| at == b"\n\n").ok_or("no event")? + 2;
    let stage = at.model([Answer::events([start.slice(..first), event.into()])]).hooks(["PreToolUse"]).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(!reply.complete);
    assert!(!text(&reply.raw).contains("\"del"), "{}", text(&reply.raw));
    Ok(())
}

async fn no_upstream(
    at: Setting,
    answer: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static,
    url: Option<&str>,
) -> Outcome {
    let mut plan = at.answering(answer).hooks(["StopFailure", "PreToolUse"]);
    if let Some(url) = url {
        plan = plan.upstream(url);
    }
    let stage = plan.start().await?;
    let reply = stage.agent().request_for("Go.").await;
    match at.host {
        // An error of the service behind the layer stays that service's own: here the connection ends with it.
        Host::Layer => assert!(reply.is_err()),
        Host::Proxy => {
            let reply = reply?;
            assert_eq!(reply.status, 502);
            assert!(reply.error.is_some(), "the protocol's own shape: {}", text(&reply.raw));
        }
    }
    stage.policy.at_least_of("StopFailure", 1).await;
    Ok(())
}

pub(super) async fn an_unreachable_upstream_is_a_bad_gateway(at: Setting) -> Outcome {
    let away = Away::new();
    no_upstream(at, |_, _| Answer::nothing(), Some(&format!("http://{}", away.address))).await
}

pub(super) async fn an_upstream_that_hangs_up_is_a_bad_gateway(at: Setting) -> Outcome {
    no_upstream(at, |_, _| Answer::nothing(), None).await
}

/// The decoder is chosen by what came, not by what was asked for.
pub(super) async fn an_answer_of_the_other_kind_is_inspected(at: Setting) -> Outcome {
    let message = Message::new("msg_1").text("Trying.").tool("toolu_1", "a", "{}");
    let other = match at.stream {
        true => Answer::json(200, message.json()),
        false => Answer::events([message.sse()]),
    };
    let stage = at.answering(move |number, _| match number {
        0 => other.clone(),
        _ => says("msg_2", "Without it.").into(),
    });
    let stage = stage.hooks(["PreToolUse"]).policy(|_| Ruling::deny("no")).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(!text(&reply.raw).contains("toolu_1"), "{}", text(&reply.raw));
    Ok(())
}

/// What cannot be decoded cannot be judged, so it does not pass while someone judges.
pub(super) async fn an_answer_that_cannot_be_decoded_does_not_pass(at: Setting) -> Outcome {
    for answer in [
        Answer::json(200, "not json"),
        Answer::json(200, Message::new("msg_1").tool("toolu_1", "a", "{}").json())
            .header("content-encoding", "x-unknown"),
    ] {
        let stage = at.model([answer]).hooks(["PreToolUse", "StopFailure"]).start().await?;
        let reply = stage.agent().request_for("Go.").await?;
        assert!(!reply.complete && reply.error.is_some(), "{}", text(&reply.raw));
        assert!(!text(&reply.raw).contains("toolu_1"));
    }
    Ok(())
}

/// While nobody judges, what cannot be decoded passes byte by byte.
pub(super) async fn an_answer_that_cannot_be_decoded_passes_while_nobody_judges(at: Setting) -> Outcome {
    let packed = "not what its coding says";
    let answer = match at.stream {
        true => Answer::events([packed]),
        false => Answer::json(200, packed),
    };
    let stage = at.model([answer.header("content-encoding", "x-unknown")]).hooks(["PostToolUse"]).start().await?;
    let body = r#"{"model":"m","messages":[{"role":"user","content":"Go."}]}"#;
    let incoming = stage.client().post("/v1/messages", &[], body).await?;
    assert_eq!(incoming.headers["content-encoding"], "x-unknown");
    assert_eq!(incoming.bytes().await?, packed);
    Ok(())
}
