//! An answer is the end of a turn only when the Stop handlers say so.

use hookgate::testing::{Answer, Envelope, Message, Ruling};
use serde_json::json;

use super::stage::{Outcome, Setting, says, text};

fn until_second(asked: &Envelope) -> Ruling {
    if asked.detail()["attempt"] == 1 { Ruling::go_on("Run the tests too.") } else { Ruling::pass() }
}

pub(super) async fn continue_goes_on_in_the_same_answer(at: Setting) -> Outcome {
    let script = [says("msg_1", "Finished.").usage(10, 5), says("msg_2", "Tests pass.").usage(40, 6)];
    let stage = at.model(script).hooks(["Stop"]).policy(until_second).start().await?;
    let replies = stage.agent().prompt("Do it.").await?;
    let reply = &replies[0];
    assert!(reply.complete);
    assert_eq!((replies.len(), reply.text().as_str()), (1, "Finished.\nTests pass."));
    assert_eq!(reply.message["id"], "msg_1");
    assert_eq!(reply.stop_reason(), "end_turn");
    assert_eq!(reply.message["usage"]["input_tokens"], 40);
    assert_eq!(reply.message["usage"]["output_tokens"], 11);

    let messages = stage.messages(1);
    assert_eq!(messages.len(), 3);
    assert_eq!((&messages[1]["role"], &messages[2]["role"]), (&json!("assistant"), &json!("user")));
    assert!(messages[2].to_string().contains("Run the tests too."));
    let asked = stage.policy.asked_of("Stop");
    assert_eq!(asked.len(), 2);
    for (at, asked) in (1..).zip(&asked) {
        assert_eq!(asked.detail()["attempt"], at);
        assert_eq!(asked.detail()["maxAttempts"], 4);
        assert_eq!(asked.detail()["stopReason"], "end_turn");
    }
    assert_eq!(asked[0].text("/detail/response"), "Finished.");
    assert!(asked[1].text("/detail/response").contains("Tests pass."));
    assert_eq!(asked[0].text("/turnId"), asked[1].text("/turnId"));
    Ok(())
}

/// In later requests the model finds what it said and why it went on.
pub(super) async fn a_continued_answer_is_split_again(at: Setting) -> Outcome {
    let rounds = [says("msg_1", "Finished."), says("msg_2", "Tests pass.")];
    let script = [rounds[0].clone(), rounds[1].clone(), says("msg_3", "Bye.")];
    let stage = at
        .model(script)
        .hooks(["Stop"])
        .policy(
            |asked| if asked.text("/detail/response") == "Finished." { Ruling::go_on("More.") } else { Ruling::pass() },
        )
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.prompt("Do it.").await?;
    agent.prompt("Thanks.").await?;
    let (second, third) = (stage.messages(1), stage.messages(2));
    assert_eq!(third[..3], second[..]);
    assert_eq!(third.len(), 5);
    assert!(text(&stage.body(2)).contains(&rounds[1].block_texts()[0]));
    Ok(())
}

pub(super) async fn a_closed_handler_that_never_agrees_ends_in_an_error(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| says(&format!("msg_{number}"), "Finished.").into())
        .hooks(["Stop"])
        .policy(|_| Ruling::go_on("More."))
        .start()
        .await?;
    let reply = stage.agent().request_for("Do it.").await?;
    assert_eq!(stage.model.requests().len(), 4);
    assert!(!reply.complete && reply.error.is_some());
    assert!(text(&reply.raw).contains("hook_blocked"), "{}", text(&reply.raw));
    let asked = stage.policy.asked_of("Stop");
    assert_eq!(asked.iter().map(|asked| asked.detail()["attempt"].clone()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    Ok(())
}

pub(super) async fn an_open_handler_that_never_agrees_is_capped(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| says(&format!("msg_{number}"), "Finished.").into())
        .hook(|policy| policy.hook("Stop").open())
        .policy(|_| Ruling::go_on("More."))
        .limits(|limits| limits.max_stop_retries = 1)
        .start()
        .await?;
    let replies = stage.agent().prompt("Do it.").await?;
    assert_eq!(stage.model.requests().len(), 2);
    assert!(replies[0].complete);
    assert_eq!(replies[0].stop_reason(), "end_turn");
    stage.gateway.audited("Stop", "capped").await?;
    Ok(())
}

/// Running a tool does not give a turn new attempts.
pub(super) async fn the_cap_holds_over_tools(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| match number {
            1 => Message::new("msg_1").tool("toolu_1", "a", "{}").into(),
            _ => says(&format!("msg_{number}"), "Finished.").into(),
        })
        .hook(|policy| policy.hook("Stop").open())
        .policy(|_| Ruling::go_on("More."))
        .limits(|limits| limits.max_stop_retries = 2)
        .start()
        .await?;
    stage.agent().prompt("Do it.").await?;
    let attempts: Vec<_> =
        stage.policy.asked_of("Stop").iter().map(|asked| asked.detail()["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 2, 3]);
    Ok(())
}

/// A handler that fails has not agreed, and the model can do nothing about that: it is not asked to go on.
pub(super) async fn a_stop_handler_that_fails_closed_blocks(at: Setting) -> Outcome {
    let stage = at.model([says("msg_1", "Finished.")]).hooks(["Stop"]).policy(|_| Ruling::raw(500, "")).start().await?;
    let reply = stage.agent().request_for("Do it.").await?;
    assert!(!reply.complete);
    assert!(text(&reply.raw).contains("hook_blocked"));
    assert_eq!(stage.model.requests().len(), 1);
    stage.gateway.audited("Stop", "failed_closed").await?;
    Ok(())
}

pub(super) async fn a_stop_handler_that_fails_open_lets_it_end(at: Setting) -> Outcome {
    let stage = at
        .model([says("msg_1", "Finished.")])
        .hook(|policy| policy.hook("Stop").open())
        .policy(|_| Ruling::raw(500, ""))
        .start()
        .await?;
    assert!(stage.agent().prompt("Do it.").await?[0].complete);
    stage.gateway.audited("Stop", "failed_open").await?;
    Ok(())
}

/// Calls for the client, a pause, a sub-agent's end: none of them is the end of a turn.
pub(super) async fn what_is_no_end_fires_no_stop(at: Setting) -> Outcome {
    let script = [
        Message::new("msg_1").tool("toolu_1", "a", "{}").stop("end_turn"),
        says("msg_2", "Searching.").stop("pause_turn"),
        says("msg_3", "Done in the sub-agent."),
    ];
    let stage = at.model(script).hooks(["Stop"]).start().await?;
    let mut agent = stage.agent();
    agent.prompt("Do it.").await?;
    let sub = stage.agent().claude_code("session-2").header("x-claude-code-agent-id", "0123456789abcdef0");
    let mut sub = sub;
    sub.prompt("Look it up.").await?;
    assert_eq!(stage.model.requests().len(), 3);
    assert!(stage.policy.asked().is_empty());
    Ok(())
}

/// A continuation that fails leaves the answer as it stood.
pub(super) async fn a_continuation_that_fails_ends_the_answer_as_it_was(at: Setting) -> Outcome {
    let script = at.answering(|number, _| match number {
        0 => says("msg_1", "Finished.").into(),
        _ => Answer::error(400, "invalid_request_error", "no"),
    });
    let stage = script.hooks(["Stop"]).policy(until_second).start().await?;
    let replies = stage.agent().prompt("Do it.").await?;
    assert!(replies[0].complete);
    assert_eq!((replies[0].text().as_str(), replies[0].stop_reason()), ("Finished.", "end_turn"));
    Ok(())
}

/// The turn's end may find another call: it is judged like any other.
pub(super) async fn calls_of_a_continuation_are_judged(at: Setting) -> Outcome {
    let script = [
        says("msg_1", "Finished."),
        Message::new("msg_2").text("Checking.").tool("toolu_1", "a", "{}").tool("toolu_2", "b", "{}"),
        says("msg_3", "Done."),
    ];
    let stage = at
        .model(script)
        .hooks(["PreToolUse", "Stop"])
        .policy(|asked| match (asked.event(), asked.tool()) {
            ("PreToolUse", "b") => Ruling::deny("not b"),
            ("Stop", _) => until_second(asked),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let replies = stage.agent().prompt("Do it.").await?;
    let ids: Vec<_> = replies[0].calls().into_iter().map(|call| call.id).collect();
    assert_eq!(ids, ["toolu_1"]);
    assert_eq!(replies[0].stop_reason(), "tool_use");
    let messages = stage.messages(2);
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert!(messages[4].to_string().contains("not b"));
    Ok(())
}
