//! Answers of several rounds, in the ways in which clients write them down again.

use hookgate::testing::{Agent, Echo, Envelope, Message, Ruling};
use serde_json::{Value, json};

use super::stage::{Outcome, Setting, Stage, parts, result_of, says, text};

fn deny_b(asked: &Envelope) -> Ruling {
    if asked.tool() == "b" { Ruling::deny("not b") } else { Ruling::pass() }
}

/// The first answer has two rounds, of which the first one's only call is denied and the second one calls `last`.
async fn merged(at: Setting, last: &'static str) -> Result<Stage, hookgate::BoxError> {
    at.answering(move |number, _| match number {
        0 => Message::new("msg_0").thinking("first", "c2lnMQ==").text("Trying.").tool("toolu_1", "b", "{}").into(),
        1 if last.is_empty() => Message::new("msg_1").thinking("second", "c2lnMg==").text("Without it.").into(),
        1 => Message::new("msg_1").thinking("second", "c2lnMg==").text("Then this.").tool("toolu_2", last, "{}").into(),
        _ => says(&format!("msg_{number}"), "Done.").into(),
    })
    .hooks(["PreToolUse"])
    .policy(deny_b)
    .start()
    .await
}

fn roles(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["role"].as_str().unwrap_or_default()).collect()
}

fn kinds(message: &Value) -> Vec<&str> {
    let content = message["content"].as_array().into_iter().flatten();
    content.map(|part| part["type"].as_str().unwrap_or_default()).collect()
}

async fn echoed(at: Setting, echo: Echo) -> Result<Stage, hookgate::BoxError> {
    let stage = merged(at, "").await?;
    let mut agent = stage.agent().echo(echo);
    for prompt in ["first", "second", "third"] {
        agent.prompt(prompt).await?;
    }
    for number in [2, 3] {
        let messages = stage.messages(number);
        assert_eq!(roles(&messages)[..5], ["user", "assistant", "user", "assistant", "user"], "request {number}");
        assert_eq!(kinds(&messages[1]).last(), Some(&"tool_use"), "request {number}: {messages:?}");
        assert_eq!(result_of(&messages[2], "toolu_1")["is_error"], true);
        assert_eq!(parts(&messages[3], "text")[0]["text"], "Without it.");
        assert_eq!(messages.len(), 2 * number + 1);
    }
    assert_eq!(stage.policy.asked().len(), 1);
    Ok(stage)
}

pub(super) async fn an_exact_echo_is_split(at: Setting) -> Outcome {
    let stage = echoed(at, Echo::Exact).await?;
    for number in [2, 3] {
        let messages = stage.messages(number);
        assert_eq!(kinds(&messages[1]), ["thinking", "text", "tool_use"]);
        assert_eq!(kinds(&messages[3]), ["thinking", "text"]);
    }
    Ok(())
}

/// The mark stays on the client's last part; the rounds that are put back bring none of their own.
pub(super) async fn an_echo_with_moving_cache_marks_is_split(at: Setting) -> Outcome {
    let stage = echoed(at, Echo::MovingCacheControl).await?;
    for number in [2, 3] {
        assert_eq!(text(&stage.body(number)).matches("cache_control").count(), 1, "request {number}");
        let messages = stage.messages(number);
        assert!(messages[messages.len() - 1].to_string().contains("cache_control"));
    }
    Ok(())
}

pub(super) async fn an_echo_with_collapsed_texts_is_split(at: Setting) -> Outcome {
    echoed(at, Echo::CollapsedText).await.map(drop)
}

/// Thinking that the client has dropped is put back into neither round.
pub(super) async fn an_echo_without_its_thinking_is_split(at: Setting) -> Outcome {
    let stage = echoed(at, Echo::DroppedThinking).await?;
    let messages = stage.messages(3);
    assert_eq!((kinds(&messages[1]), kinds(&messages[3])), (vec!["text", "tool_use"], vec!["text"]));
    Ok(())
}

/// A client that joins or changes texts leaves no place for the rounds' thinking; what was denied is there all the same.
pub(super) async fn a_changed_echo_is_split_without_its_thinking(at: Setting) -> Outcome {
    let stage = merged(at, "a").await?;
    let mut agent: Agent = stage.agent();
    agent.say("first");
    let reply = agent.request().await?;
    assert_eq!(reply.calls().len(), 1);
    agent.take(&reply);
    let call = parts(&agent.history()[1], "tool_use").into_iter().cloned().collect::<Vec<_>>();
    agent.history()[1]["content"] = json!([{"type": "text", "text": "Trying.\nThen this."}, call[0]]);
    agent.go_on().await?;
    let messages = stage.messages(2);
    assert_eq!(roles(&messages), ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!((kinds(&messages[1]), kinds(&messages[3])), (vec!["text", "tool_use"], vec!["text", "tool_use"]));
    assert_eq!(result_of(&messages[2], "toolu_1")["is_error"], true);
    assert!(result_of(&messages[4], "toolu_2")["content"].to_string().contains("a ran"));
    Ok(())
}

/// What was refused in one session is not in what the model reads of its fork, and nobody is asked about it again.
pub(super) async fn a_fork_leaves_a_denied_prompt_out(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| says(&format!("msg_{number}"), "Fine.").into())
        .hooks(["UserPromptSubmit"])
        .policy(|asked| match asked.text("/detail/prompt").contains("secret") {
            true => Ruling::deny("no secrets here"),
            false => Ruling::pass(),
        })
        .start()
        .await?;
    let mut agent = stage.agent();
    for prompt in ["hello", "a secret", "and then"] {
        agent.prompt(prompt).await?;
    }
    let mut fork = stage.agent().session("session-2");
    fork.history().clone_from(agent.history());
    fork.prompt("another way").await?;
    for request in stage.model.requests() {
        let body = text(&request.body);
        assert!(!body.contains("secret"), "{body}");
    }
    let last = stage.model.requests().len() - 1;
    assert_eq!(roles(&stage.messages(last)), ["user", "assistant", "user", "assistant", "user"]);
    let asked = stage.policy.asked().iter().filter(|asked| asked.text("/detail/prompt") == "a secret").count();
    assert_eq!(asked, 1);
    Ok(())
}

/// The words that were refused once are refused again, wherever they are said again, and the ones around them stay.
pub(super) async fn the_same_denied_prompt_twice_stays_out_twice(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| says(&format!("msg_{number}"), "Fine.").into())
        .hooks(["UserPromptSubmit"])
        .policy(|asked| match asked.text("/detail/prompt").contains("secret") {
            true => Ruling::deny("no secrets here"),
            false => Ruling::pass(),
        })
        .start()
        .await?;
    let mut agent = stage.agent();
    for prompt in ["one", "a secret", "two", "a secret", "three"] {
        agent.prompt(prompt).await?;
    }
    let last = stage.model.requests().len() - 1;
    assert_eq!(last, 2);
    let said: Vec<_> = stage.messages(last).iter().map(|message| parts(message, "text")[0]["text"].clone()).collect();
    assert_eq!(said, ["one", "Fine.", "two", "Fine.", "three"]);
    assert_eq!(stage.policy.asked().len(), 5);
    Ok(())
}
