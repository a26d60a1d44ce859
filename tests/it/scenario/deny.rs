//! A denied call never reaches the client, and the model learns why.

use std::sync::atomic::{AtomicUsize, Ordering};

use hookgate::testing::{Answer, Envelope, Message, Reply, Ruling};
use serde_json::json;

use super::stage::{Outcome, Setting, Stage, parts, result_of, says, text};

fn deny_b(asked: &Envelope) -> Ruling {
    if asked.tool() == "b" { Ruling::deny("b is not allowed: use c") } else { Ruling::pass() }
}

/// Three calls of which the one at `denied` is tool `b`.
fn three(denied: usize) -> Message {
    let mut message = Message::new("msg_1").thinking("hm", "c2ln").text("Working.");
    for at in 0..3 {
        let name = if at == denied { "b" } else { "a" };
        message = message.tool(&format!("toolu_{at}"), name, &format!(r#"{{"at":  {at}.0e0}}"#));
    }
    message
}

async fn one_of_three(at: Setting, denied: usize) -> Outcome {
    let first = three(denied);
    let stage = at.model([first.clone(), says("msg_2", "Done.")]).hooks(["PreToolUse"]).policy(deny_b).start().await?;
    let mut agent = stage.agent();
    let replies = agent.prompt("Go.").await?;

    // The client: two calls, nothing of the third, the answer's own stop reason.
    let survivors: Vec<String> = (0..3).filter(|at| *at != denied).map(|at| format!("toolu_{at}")).collect();
    assert_eq!(replies[0].calls().into_iter().map(|call| call.id).collect::<Vec<_>>(), survivors);
    assert_eq!(replies[0].stop_reason(), "tool_use");
    assert!(!text(&replies[0].raw).contains(&format!("toolu_{denied}")));
    assert_eq!(replies[1].text(), "Done.");

    // The model: all three in place, as it wrote them, and a result for each.
    let messages = stage.messages(1);
    assert_eq!(messages.len(), 3);
    let ids: Vec<_> = parts(&messages[1], "tool_use").iter().map(|part| part["id"].clone()).collect();
    assert_eq!(ids, ["toolu_0", "toolu_1", "toolu_2"]);
    let restored = format!(r#""input":{{"at":  {denied}.0e0}}"#);
    assert!(text(&stage.body(1)).contains(&restored), "{}", text(&stage.body(1)));
    assert_eq!(messages[1]["content"][0], json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"}));
    assert_eq!(parts(&messages[2], "tool_result").len(), 3);
    let result = result_of(&messages[2], &format!("toolu_{denied}"));
    assert_eq!(result["is_error"], true);
    assert!(result["content"].to_string().contains("b is not allowed: use c"));
    for id in survivors {
        assert!(result_of(&messages[2], &id)["content"].to_string().contains("a ran with"));
    }
    Ok(())
}

pub(super) async fn deny_first_of_three(at: Setting) -> Outcome {
    one_of_three(at, 0).await
}

pub(super) async fn deny_middle_of_three(at: Setting) -> Outcome {
    one_of_three(at, 1).await
}

pub(super) async fn deny_last_of_three(at: Setting) -> Outcome {
    one_of_three(at, 2).await
}

/// Turns later the denied call is still in its place.
pub(super) async fn a_denied_call_stays_in_every_later_request(at: Setting) -> Outcome {
    let script = [three(1), says("msg_2", "Done."), says("msg_3", "Again."), says("msg_4", "And again.")];
    let stage = at.model(script).hooks(["PreToolUse"]).policy(deny_b).start().await?;
    let mut agent = stage.agent();
    for prompt in ["One.", "Two.", "Three."] {
        agent.prompt(prompt).await?;
    }
    for number in 2..4 {
        let (earlier, later) = (stage.messages(number - 1), stage.messages(number));
        assert_eq!(later[..earlier.len()], earlier[..], "request {number}");
    }
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 3);
    Ok(())
}

pub(super) async fn deny_all_goes_on_in_the_same_answer(at: Setting) -> Outcome {
    let first = Message::new("msg_1").text("Trying.").tool("toolu_1", "b", r#"{"x": 1}"#).usage(20, 5);
    let second = says("msg_2", "Without it, then.").usage(30, 7);
    let stage = at.model([first, second]).hooks(["PreToolUse"]).policy(deny_b).start().await?;
    let mut agent = stage.agent().header("x-api-key", "sk-1").header("idempotency-key", "key-1");
    let replies = agent.prompt("Go.").await?;
    assert_eq!(replies.len(), 1);
    let reply = &replies[0];
    assert!(reply.complete);
    assert_eq!(reply.message["id"], "msg_1");
    assert_eq!(reply.text(), "Trying.\nWithout it, then.");
    assert_eq!(reply.stop_reason(), "end_turn");
    assert_eq!(reply.message["usage"]["input_tokens"], 30);
    assert_eq!(reply.message["usage"]["output_tokens"], 12);

    let requests = stage.model.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].header("x-api-key"), "sk-1");
    assert_eq!(requests[1].header("idempotency-key"), "");
    let messages = stage.messages(1);
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[1]["content"][0]["text"], "Trying.");
    assert_eq!(messages[1]["content"][1]["id"], "toolu_1");
    assert!(result_of(&messages[2], "toolu_1")["content"].to_string().contains("use c"));
    Ok(())
}

/// The rounds of a merged answer go back to the model as it said them.
pub(super) async fn a_merged_answer_is_split_again(at: Setting) -> Outcome {
    let rounds = [
        Message::new("msg_1").thinking("first", "c2lnMQ==").text("Trying.").tool("toolu_1", "b", r#"{"x":  1}"#),
        Message::new("msg_2").thinking("second", "c2lnMg==").text("With a.").tool("toolu_2", "a", "{}"),
    ];
    let script = [rounds[0].clone(), rounds[1].clone(), says("msg_3", "Done.")];
    let stage = at.model(script).hooks(["PreToolUse"]).policy(deny_b).start().await?;
    let replies = stage.agent().prompt("Go.").await?;
    assert_eq!(replies[0].message["id"], "msg_1");
    assert_eq!(replies[0].calls().len(), 1);
    let messages = stage.messages(2);
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    let body = text(&stage.body(2));
    for round in &rounds {
        assert!(body.contains(&format!("[{}]", round.block_texts().join(","))), "{body}");
    }
    assert_eq!(result_of(&messages[2], "toolu_1")["is_error"], true);
    assert!(result_of(&messages[4], "toolu_2")["content"].to_string().contains("a ran"));
    Ok(())
}

pub(super) async fn on_deny_end_ends_with_the_reason(at: Setting) -> Outcome {
    let first = Message::new("msg_1").text("Trying.").tool("toolu_1", "b", "{}");
    let stage =
        at.model([first, says("msg_2", "Next.")]).hooks(["PreToolUse"]).policy(deny_b).on_deny_end().start().await?;
    let mut agent = stage.agent();
    let replies = agent.prompt("Go.").await?;
    assert_eq!(stage.model.requests().len(), 1);
    assert!(replies[0].complete && replies[0].calls().is_empty());
    assert!(replies[0].text().contains("b is not allowed: use c"));
    assert_eq!(replies[0].stop_reason(), "end_turn");

    // What the model reads later is a history that it can go on from.
    agent.prompt("And now?").await?;
    let messages = stage.messages(1);
    assert_eq!(result_of(&messages[2], "toolu_1")["is_error"], true);
    Ok(())
}

pub(super) async fn deny_rounds_are_capped(at: Setting) -> Outcome {
    let script = at.answering(|number, _| {
        Message::new(&format!("msg_{number}"))
            .tool(&format!("toolu_{number}"), "b", &format!(r#"{{"n":{number}}}"#))
            .into()
    });
    let stage = script.hooks(["PreToolUse"]).policy(deny_b).limits(|limits| limits.max_deny_rounds = 2).start().await?;
    let replies = stage.agent().prompt("Go.").await?;
    assert_eq!(stage.model.requests().len(), 3);
    assert!(replies[0].complete);
    assert!(replies[0].text().contains("b is not allowed: use c"));
    assert_eq!(replies[0].stop_reason(), "end_turn");
    Ok(())
}

pub(super) async fn a_continuation_is_free_to_choose_and_bounded(at: Setting) -> Outcome {
    let first = Message::new("msg_1").tool("toolu_1", "b", "{}").usage(10, 30);
    let stage = at.model([first, says("msg_2", "No.")]).hooks(["PreToolUse"]).policy(deny_b).start().await?;
    let agent =
        stage.agent().member("tool_choice", json!({"type": "tool", "name": "b"})).member("max_tokens", json!(100));
    let mut agent = agent.header("accept-encoding", "gzip, br");
    agent.prompt("Go.").await?;
    let request = stage.request(1);
    assert_eq!(request["tool_choice"]["type"], "auto");
    assert!(request["max_tokens"].as_u64().is_some_and(|tokens| tokens <= 70), "{}", request["max_tokens"]);
    assert!(matches!(stage.model.requests()[1].header("accept-encoding"), "" | "identity"));
    Ok(())
}

pub(super) async fn a_continuation_that_fails_ends_with_the_reason(at: Setting) -> Outcome {
    let first = Message::new("msg_1").text("Trying.").tool("toolu_1", "b", "{}");
    let script = at.answering(move |number, _| match number {
        0 => first.clone().into(),
        _ => Answer::error(400, "invalid_request_error", "no"),
    });
    let stage = script.hooks(["PreToolUse"]).policy(deny_b).start().await?;
    let replies = stage.agent().prompt("Go.").await?;
    assert!(replies[0].complete);
    assert!(replies[0].text().contains("b is not allowed: use c"));
    assert_eq!(replies[0].stop_reason(), "end_turn");
    Ok(())
}

pub(super) async fn an_overloaded_upstream_is_asked_again(at: Setting) -> Outcome {
    let first = Message::new("msg_1").text("Trying.").tool("toolu_1", "b", "{}");
    let script = at.answering(move |number, _| match number {
        0 => first.clone().into(),
        1 => Answer::error(529, "overloaded_error", "later"),
        _ => says("msg_2", "Without it.").into(),
    });
    let stage = script.hooks(["PreToolUse"]).policy(deny_b).start().await?;
    let replies = stage.agent().prompt("Go.").await?;
    assert_eq!(replies[0].text(), "Trying.\nWithout it.");
    Ok(())
}

/// The same call, denied again in one turn: the reason says more than the first time.
pub(super) async fn a_repeated_denial_is_told_to_be_final(at: Setting) -> Outcome {
    let script = at.answering(|number, _| match number {
        0 | 1 => Message::new(&format!("msg_{number}")).tool(&format!("toolu_{number}"), "b", r#"{"x":1}"#).into(),
        _ => says("msg_2", "I give up.").into(),
    });
    let stage = script.hooks(["PreToolUse"]).policy(deny_b).start().await?;
    stage.agent().prompt("Go.").await?;
    let messages = stage.messages(2);
    let reason = |message: usize, call| result_of(&messages[message], call)["content"].to_string();
    let (first, second) = (reason(2, "toolu_0"), reason(4, "toolu_1"));
    assert!(first.contains("use c") && second.contains("use c"));
    assert_ne!(first, second);
    Ok(())
}

async fn broken_policy(at: Setting, open: bool) -> Result<(Stage, Vec<Reply>), hookgate::BoxError> {
    let first = Message::new("msg_1").tool("toolu_1", "a", "{}");
    let stage = at
        .model([first, says("msg_2", "Done.")])
        .hook(move |policy| if open { policy.hook("PreToolUse").open() } else { policy.hook("PreToolUse") })
        .policy(|_| Ruling::raw(503, "{}"))
        .start()
        .await?;
    let replies = stage.agent().prompt("Go.").await?;
    Ok((stage, replies))
}

pub(super) async fn a_policy_that_fails_closed_denies_and_is_named(at: Setting) -> Outcome {
    let (stage, replies) = broken_policy(at, false).await?;
    assert!(replies[0].calls().is_empty());
    let messages = stage.messages(1);
    let reason = result_of(&messages[2], "toolu_1")["content"].to_string();
    assert!(reason.contains("policy-PreToolUse") && reason.contains("503"), "{reason}");
    assert_eq!(stage.gateway.audited("PreToolUse", "failed_closed").await?["failure"], "status");
    Ok(())
}

pub(super) async fn a_policy_that_fails_open_allows(at: Setting) -> Outcome {
    let (stage, replies) = broken_policy(at, true).await?;
    assert_eq!(replies[0].calls().len(), 1);
    assert_eq!(stage.gateway.audited("PreToolUse", "failed_open").await?["failure"], "status");
    Ok(())
}

/// The first handler that denies ends the dispatch.
pub(super) async fn the_first_denial_ends_the_dispatch(at: Setting) -> Outcome {
    let asked = AtomicUsize::new(0);
    let stage = at
        .model([Message::new("msg_1").tool("toolu_1", "a", "{}"), says("msg_2", "Done.")])
        .hook(|policy| policy.hook("PreToolUse").id("one"))
        .hook(|policy| policy.hook("PreToolUse").id("two"))
        .hook(|policy| policy.hook("PreToolUse").id("three").matcher(["other"]))
        .policy(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Ruling::pass(),
            _ => Ruling::deny("two says no"),
        })
        .start()
        .await?;
    stage.agent().prompt("Go.").await?;
    assert_eq!(stage.policy.asked().len(), 2);
    let outcomes: Vec<_> = stage.gateway.audit().await?.iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, ["pass", "deny"]);
    Ok(())
}
