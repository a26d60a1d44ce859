//! Streaming stays streaming: only what is to be decided is held, and while it is held the client hears something.

use std::time::Duration;

use hookgate::testing::{Answer, Envelope, Gate, Message, Reply, Ruling, SseEvent};

use super::stage::{Outcome, Setting, says, text};

fn is_text(event: &SseEvent) -> bool {
    event.json()["delta"]["type"] == "text_delta"
}

/// A policy whose rulings about tools wait for the gate of that tool.
fn gated(gates: &[(&'static str, Gate)]) -> impl Fn(&Envelope) -> Ruling + Send + Sync + 'static {
    let gates = gates.to_vec();
    move |asked| match gates.iter().find(|(tool, _)| *tool == asked.tool()) {
        Some((_, gate)) => Ruling::pass().after(gate),
        None => Ruling::pass(),
    }
}

pub(super) async fn text_comes_before_the_answer_ends(at: Setting) -> Outcome {
    let gate = Gate::default();
    let message = Message::new("msg_1").text("Hello.").wait(&gate).text("Bye.");
    let stage = at.model([message]).hooks(["PreToolUse", "Stop"]).start().await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let mut incoming = agent.send().await?;
    assert!(is_text(&incoming.event_where(is_text).await?));
    gate.open();
    let reply = Reply::read(incoming).await?;
    assert!(reply.complete);
    assert_eq!(reply.text(), "Hello.\nBye.");
    Ok(())
}

/// Clients run a tool when its block ends, so the decision comes before any of it. Whether the token limit cut a call is
/// known when the next event comes, so there must be one.
pub(super) async fn a_call_is_decided_before_its_block(at: Setting) -> Outcome {
    let (gate, end) = (Gate::default(), Gate::default());
    let message = Message::new("msg_1").text("Hello.").tool("toolu_1", "a", r#"{"x":1}"#).text("After.").wait(&end);
    let stage = at.model([message]).hooks(["PreToolUse"]).policy(gated(&[("a", gate.clone())])).start().await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let mut incoming = agent.send().await?;
    incoming.event_where(is_text).await?;
    stage.policy.at_least(1).await;
    assert!(!text(incoming.so_far()).contains("toolu_1"));
    gate.open();
    // The decision releases the block although the answer is not at its end.
    let block = incoming.event_where(|event| event.json()["content_block"]["type"] == "tool_use").await?;
    assert_eq!(block.json()["content_block"]["id"], "toolu_1");
    incoming.event_where(|event| event.name == "content_block_stop").await?;
    end.open();
    incoming.event_where(|event| event.name == "message_stop").await?;
    Ok(())
}

pub(super) async fn calls_are_decided_at_once_and_released_in_order(at: Setting) -> Outcome {
    let gates = [("a", Gate::default()), ("b", Gate::default())];
    let message = Message::new("msg_1").tool("toolu_1", "a", "{}").tool("toolu_2", "b", "{}").text("After.");
    let stage = at.model([message.clone()]).hooks(["PreToolUse"]).policy(gated(&gates)).start().await?;
    let mut agent = stage.agent();
    let reading = tokio::spawn(async move { agent.request_for("Go.").await });
    stage.policy.at_least(2).await;
    gates[1].1.open();
    gates[0].1.open();
    let reply = reading.await??;
    assert_eq!(text(&reply.raw), text(&message.sse()));
    Ok(())
}

pub(super) async fn what_follows_a_held_call_waits_behind_it(at: Setting) -> Outcome {
    let (gate, end) = (Gate::default(), Gate::default());
    let message = Message::new("msg_1")
        .text("Before.")
        .tool("toolu_1", "a", "{}")
        .text("After.")
        .tool("toolu_2", "b", "{}")
        .text("Last.")
        .wait(&end);
    let stage = at.model([message]).hooks(["PreToolUse"]).policy(gated(&[("a", gate.clone())])).start().await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let mut incoming = agent.send().await?;
    incoming.event_where(is_text).await?;
    // The second call is asked about, so the text before it has long been read here.
    stage.policy.at_least(2).await;
    assert!(!text(incoming.so_far()).contains("\"Aft\""));
    gate.open();
    end.open();
    incoming.event_where(|event| event.name == "message_stop").await?;
    let all = text(incoming.so_far());
    assert!(all.find("toolu_1") < all.find("\"Aft\"") && all.find("\"Aft\"") < all.find("toolu_2"), "{all}");
    Ok(())
}

pub(super) async fn a_held_client_hears_keep_alives(at: Setting) -> Outcome {
    let gate = Gate::default();
    let message = Message::new("msg_1").text("Hello.").tool("toolu_1", "a", "{}");
    let plan = at.model([message]).hook(|policy| policy.hook("PreToolUse").timeout_ms(30_000));
    let stage = plan
        .policy(gated(&[("a", gate.clone())]))
        .limits(|limits| limits.keepalive = Duration::from_millis(100))
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let mut incoming = agent.send().await?;
    incoming.event_where(is_text).await?;
    for _ in 0..3 {
        incoming.event_where(|event| event.name == "ping" || event.json()["delta"]["text"] == "").await?;
    }
    gate.open();
    incoming.event_where(|event| event.name == "message_stop").await?;
    Ok(())
}

/// Keep-alives and holds leave no trace in what the client echoes, nor in what the model reads.
pub(super) async fn keep_alives_do_not_reach_the_model(at: Setting) -> Outcome {
    let gate = Gate::default();
    let script = [Message::new("msg_1").tool("toolu_1", "a", "{}"), says("msg_2", "Done.")];
    let plan = at.model(script).hook(|policy| policy.hook("PreToolUse").timeout_ms(30_000));
    let stage = plan
        .policy(gated(&[("a", gate.clone())]))
        .limits(|limits| limits.keepalive = Duration::from_millis(100))
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let mut incoming = agent.send().await?;
    for _ in 0..4 {
        incoming.event_where(|event| event.name == "ping" || event.json()["delta"]["text"] == "").await?;
    }
    gate.open();
    let reply = Reply::read(incoming).await?;
    assert!(agent.take(&reply));
    agent.go_on().await?;
    let kinds: Vec<_> =
        stage.messages(1)[1]["content"].as_array().into_iter().flatten().map(|part| part["type"].clone()).collect();
    assert_eq!(kinds, ["tool_use"]);
    Ok(())
}

/// A reader that stalls does not stall what is decided, nor what is read from the upstream meanwhile.
pub(super) async fn a_stalled_reader_stalls_no_decision(at: Setting) -> Outcome {
    let gate = Gate::default();
    let message =
        Message::new("msg_1").tool("toolu_1", "a", "{}").text(&"words ".repeat(400_000)).tool("toolu_2", "b", "{}");
    let plan = at.model([message]).hook(|policy| policy.hook("PreToolUse").timeout_ms(30_000));
    let stage = plan.policy(gated(&[("a", gate.clone())])).start().await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let incoming = agent.send().await?;
    stage.policy.at_least(2).await;
    gate.open();
    let reply = Reply::read(incoming).await?;
    assert!(reply.complete);
    assert_eq!(reply.calls().len(), 2);
    Ok(())
}

/// An answer that is held for too long ends as undecided calls do, not as allowed ones.
pub(super) async fn a_hold_has_an_end(at: Setting) -> Outcome {
    let gate = Gate::default();
    let script = [Message::new("msg_1").text("Hello.").tool("toolu_1", "a", "{}"), says("msg_2", "Done.")];
    let plan = at.model(script).hook(|policy| policy.hook("PreToolUse").timeout_ms(30_000));
    let stage = plan
        .policy(gated(&[("a", gate.clone())]))
        .limits(|limits| limits.max_hold = Duration::from_secs(1))
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let mut incoming = agent.send().await?;
    incoming.event_where(|event| event.name == "message_stop").await?;
    // The end is an end: it does not wait for the handler that was given up.
    let reply = Reply::read(incoming).await?;
    assert!(!text(&reply.raw).contains("toolu_1"));
    gate.open();
    Ok(())
}

/// A handler that takes too long has failed.
pub(super) async fn a_slow_handler_has_failed(at: Setting) -> Outcome {
    let gate = Gate::default();
    let script = [Message::new("msg_1").tool("toolu_1", "a", "{}"), says("msg_2", "Done.")];
    let plan = at.model(script).hook(|policy| policy.hook("PreToolUse").timeout_ms(50));
    let stage = plan.policy(gated(&[("a", gate.clone())])).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(reply.calls().is_empty());
    assert_eq!(stage.gateway.audited("PreToolUse", "failed_closed").await?["failure"], "timeout");
    gate.open();
    Ok(())
}

/// Events that arrive in one write, cut in the middle of one, leave as events.
pub(super) async fn a_burst_is_passed_on_whole(at: Setting) -> Outcome {
    let mut message = Message::new("msg_1");
    for _ in 0..200 {
        message = message.text("Some words.");
    }
    let sse = message.sse();
    let halves = [sse.slice(..sse.len() / 2), sse.slice(sse.len() / 2..)];
    let stage = at.model([Answer::events(halves)]).hooks(["PreToolUse", "Stop"]).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert_eq!(text(&reply.raw), text(&sse));
    Ok(())
}
