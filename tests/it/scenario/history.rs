//! What was decided once holds for what the client says later, however it writes its history down.

use hookgate::testing::{Agent, Answer, Echo, Envelope, Message, Ruling};
use serde_json::{Value, json};

use super::stage::{Outcome, Setting, Stage, parts, result_of, says, text};

fn deny_b(asked: &Envelope) -> Ruling {
    match (asked.event(), asked.tool()) {
        ("PreToolUse", "b") => Ruling::deny("not b"),
        ("UserPromptSubmit", _) if asked.text("/detail/prompt") == "first" => Ruling::pass().context("mind the gap"),
        _ => Ruling::pass(),
    }
}

/// A stage on which something was denied and something was added, so that every later request has to be corrected.
async fn played(at: Setting) -> Result<Stage, hookgate::BoxError> {
    at.answering(|number, _| match number {
        0 => Message::new("msg_0")
            .thinking("hm", "c2ln")
            .text("Working.")
            .tool("toolu_1", "a", r#"{"n":  1}"#)
            .tool("toolu_2", "b", r#"{"m":  2}"#)
            .into(),
        _ => says(&format!("msg_{number}"), "Done.").into(),
    })
    .hooks(["UserPromptSubmit", "PreToolUse"])
    .policy(deny_b)
    .start()
    .await
}

/// Whether a request holds both corrections, in place and once.
fn assert_corrected(stage: &Stage, number: usize) {
    let body = text(&stage.body(number));
    assert_eq!(body.matches("mind the gap").count(), 1, "request {number}: {body}");
    assert_eq!(body.matches(r#""input":{"m":  2}"#).count(), 1, "request {number}: {body}");
    let messages = stage.messages(number);
    assert!(messages[0].to_string().contains("mind the gap"));
    let ids: Vec<_> = parts(&messages[1], "tool_use").iter().map(|part| part["id"].clone()).collect();
    assert_eq!(ids, ["toolu_1", "toolu_2"], "request {number}");
    assert_eq!(result_of(&messages[2], "toolu_2")["is_error"], true, "request {number}");
    assert_ne!(result_of(&messages[2], "toolu_1")["is_error"], true, "request {number}");
}

async fn echoed(at: Setting, echo: Echo) -> Result<Stage, hookgate::BoxError> {
    let stage = played(at).await?;
    let mut agent = stage.agent().echo(echo);
    for prompt in ["first", "second", "third"] {
        agent.prompt(prompt).await?;
    }
    assert_eq!(stage.model.requests().len(), 4);
    for number in 1..4 {
        assert_corrected(&stage, number);
    }
    assert_eq!(stage.policy.asked_of("UserPromptSubmit").len(), 3, "nothing is asked twice");
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 2);
    Ok(stage)
}

pub(super) async fn an_exact_echo_is_corrected(at: Setting) -> Outcome {
    echoed(at, Echo::Exact).await.map(drop)
}

pub(super) async fn moving_cache_marks_do_not_matter(at: Setting) -> Outcome {
    let stage = echoed(at, Echo::MovingCacheControl).await?;
    for number in 1..4 {
        assert_eq!(text(&stage.body(number)).matches("cache_control").count(), 1, "request {number}");
    }
    Ok(())
}

pub(super) async fn collapsed_prompts_do_not_matter(at: Setting) -> Outcome {
    echoed(at, Echo::CollapsedText).await.map(drop)
}

/// Thinking that the client has dropped is not put back.
pub(super) async fn dropped_thinking_stays_dropped(at: Setting) -> Outcome {
    let stage = echoed(at, Echo::DroppedThinking).await?;
    assert!(text(&stage.body(1)).contains("c2ln"));
    assert!(!text(&stage.body(3)).contains("c2ln"));
    Ok(())
}

/// Instructions that the client puts in between, and moves, are no part of what corrections are anchored on.
pub(super) async fn instructions_in_between_do_not_matter(at: Setting) -> Outcome {
    let stage = played(at).await?;
    let mut agent = stage.agent();
    agent.prompt("first").await?;
    let instruction = json!({"role": "system", "content": "be brief"});
    for at in [0, 1, 3, 4] {
        let mut other = stage.agent();
        other.history().clone_from(agent.history());
        other.history().insert(at, instruction.clone());
        other.prompt(&format!("then, with an instruction at {at}")).await?;
        let number = stage.model.requests().len() - 1;
        let mut messages = stage.messages(number);
        assert_eq!(messages.remove(at), instruction, "{messages:?}");
        let ids: Vec<_> = parts(&messages[1], "tool_use").iter().map(|part| part["id"].clone()).collect();
        assert_eq!(ids, ["toolu_1", "toolu_2"]);
        assert_eq!(result_of(&messages[2], "toolu_2")["is_error"], true);
        assert_eq!(messages[0].to_string().matches("mind the gap").count(), 1);
    }
    assert_eq!(stage.policy.asked_of("UserPromptSubmit").len(), 5, "the first prompt is asked about once");
    Ok(())
}

/// A client that was started again goes on in its session, with the history as it has it.
pub(super) async fn a_resumed_session_is_corrected(at: Setting) -> Outcome {
    let stage = played(at).await?;
    let mut before = stage.agent();
    before.prompt("first").await?;
    let history = before.history().clone();
    drop(before);
    let mut resumed = stage.agent();
    *resumed.history() = history;
    resumed.prompt("second").await?;
    assert_corrected(&stage, 2);
    assert_eq!(stage.policy.asked_of("UserPromptSubmit").len(), 2, "nothing is asked twice");
    Ok(())
}

/// Tokens are counted of what the model would get.
pub(super) async fn counted_histories_are_corrected(at: Setting) -> Outcome {
    let stage = played(at).await?;
    let mut agent = stage.agent();
    agent.prompt("first").await?;
    agent.say("second");
    let session = [("x-hookgate-session", super::stage::SESSION)];
    stage.client().post("/v1/messages/count_tokens", &session, agent.body()).await?.bytes().await?;
    assert_eq!(stage.model.requests()[2].uri, "/v1/messages/count_tokens");
    assert_corrected(&stage, 2);
    Ok(())
}

/// A fork has a new session id and the old history.
pub(super) async fn a_fork_is_corrected(at: Setting) -> Outcome {
    let stage = played(at).await?;
    let mut agent = stage.agent();
    agent.prompt("first").await?;
    let mut fork = stage.agent().session("session-2");
    fork.history().clone_from(agent.history());
    fork.prompt("another way").await?;
    assert_corrected(&stage, 2);
    Ok(())
}

/// The client has summed its history up: what was corrected is gone, and so are the corrections.
pub(super) async fn a_compacted_history_is_left_alone(at: Setting) -> Outcome {
    let stage = played(at).await?;
    let mut agent = stage.agent();
    agent.prompt("first").await?;
    *agent.history() = vec![json!({"role": "user", "content": [{"type": "text", "text": "Summary: a ran."}]})];
    let sent = agent.body();
    agent.go_on().await?;
    assert_eq!(text(&stage.body(2)), text(&sent));
    let asked = stage.policy.asked_of("UserPromptSubmit");
    assert_eq!(asked.last().map(|asked| asked.text("/detail/prompt").to_owned()), Some("Summary: a ran.".to_owned()));
    Ok(())
}

/// Rewinding and asking something else: the edited prompt is a new one, the old branch's corrections are not its own.
pub(super) async fn an_edited_history_is_a_branch(at: Setting) -> Outcome {
    let stage = played(at).await?;
    let mut agent = stage.agent();
    agent.prompt("first").await?;
    agent.prompt("second").await?;
    agent.history().truncate(4);
    agent.prompt("second, edited").await?;
    assert_corrected(&stage, 3);
    agent.history().clear();
    agent.say("first, edited");
    let sent = agent.body();
    agent.go_on().await?;
    assert_eq!(text(&stage.body(4)), text(&sent));
    let prompts: Vec<_> =
        stage.policy.asked_of("UserPromptSubmit").iter().map(|asked| asked.text("/detail/prompt").to_owned()).collect();
    assert_eq!(prompts, ["first", "second", "second, edited", "first, edited"]);
    Ok(())
}

/// Without any session header the history itself is the session.
pub(super) async fn a_history_is_a_session_of_its_own(at: Setting) -> Outcome {
    let stage = played(at).await?;
    let mut agent = Agent::new(&stage.url).streaming(at.stream).tool("a", |_| Ok("ran".to_owned()));
    agent.prompt("first").await?;
    agent.prompt("second").await?;
    assert_corrected(&stage, 1);
    assert_corrected(&stage, 2);
    let sessions: Vec<_> = stage.policy.asked().iter().map(|asked| asked.text("/sessionId").to_owned()).collect();
    assert!(!sessions[0].is_empty() && sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    let mut other = Agent::new(&stage.url).streaming(at.stream);
    other.prompt("something else").await?;
    let last = stage.policy.asked().last().map(|asked| asked.text("/sessionId").to_owned());
    assert_ne!(last.as_deref(), Some(sessions[0].as_str()));
    Ok(())
}

/// Gateways and local models repeat ids: another answer's call is another call.
pub(super) async fn repeated_call_ids_are_judged_each(at: Setting) -> Outcome {
    let call = |number: usize, input: &str| Message::new(&format!("msg_{number}")).tool("call_0", "b", input);
    let script = [call(1, r#"{"n":1}"#), call(2, r#"{"n":2}"#), call(3, r#"{"n":1}"#), says("msg_4", "Done.")];
    let stage = at
        .model(script)
        .hooks(["PreToolUse"])
        .policy(|asked| if asked.detail()["input"]["n"] == 2 { Ruling::deny("not two") } else { Ruling::pass() })
        .start()
        .await?;
    let mut agent = stage.agent();
    let replies = agent.prompt("Go.").await?;
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 3);
    assert_eq!(replies.iter().map(|reply| reply.calls().len()).collect::<Vec<_>>(), [1, 1, 0]);
    let last = stage.messages(3);
    let errors: Vec<bool> =
        last.iter().flat_map(|message| parts(message, "tool_result")).map(|part| part["is_error"] == true).collect();
    assert_eq!(errors, [false, true, false]);
    Ok(())
}

/// A merged answer broke in its second round; the client asks again, streamed and then not. The first round is neither
/// paid nor asked about again.
pub(super) async fn a_retry_goes_on_after_the_rounds_that_are_done(at: Setting) -> Outcome {
    let script = at.answering(|number, _| match number {
        0 => Message::new("msg_1").text("Trying.").tool("toolu_1", "b", r#"{"n":1}"#).into(),
        1 | 2 => Answer::from(Message::new("msg_2").text("Wait").unclosed().cut()),
        _ => says("msg_3", "Without it.").into(),
    });
    let stage = script.hooks(["PreToolUse"]).policy(deny_b).start().await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let broken = agent.request().await?;
    assert!(!broken.complete);
    let mut replies = Vec::new();
    for streamed in [true, false] {
        let mut retry = stage.agent().streaming(streamed);
        retry.history().clone_from(agent.history());
        replies.push(retry.request().await?);
    }
    // The streamed retry breaks where the first one did; the other one gets the whole answer, of both rounds.
    assert!(!replies[0].complete && replies[0].text().starts_with("Trying."));
    assert!(replies[1].complete);
    assert_eq!((replies[1].text().as_str(), &replies[1].message["id"]), ("Trying.\nWithout it.", &json!("msg_1")));
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 1);
    let firsts = stage
        .model
        .requests()
        .iter()
        .filter(|request| request.json()["messages"].as_array().is_some_and(|m| m.len() == 1))
        .count();
    assert_eq!(firsts, 1, "the first round is asked for once");
    Ok(())
}

/// With the history at the provider, the denied call is there already: only its result is missing.
pub(super) async fn server_side_history_gets_the_missing_result(at: Setting) -> Outcome {
    let script = [
        Message::new("msg_1").tool("toolu_1", "a", "{}").tool("toolu_2", "b", "{}"),
        Message::new("msg_2").tool("toolu_3", "b", r#"{"n":3}"#),
        says("msg_3", "Done."),
        says("msg_4", "Bye."),
    ];
    let stage = at.model(script).hooks(["PreToolUse", "PostToolUse"]).policy(deny_b).start().await?;
    let mut agent = stage.agent().member("thread", json!({"type": "create"}));
    agent.say("Go.");
    let first = agent.request().await?;
    agent.take(&first);
    // From now on only what is new is sent.
    let results: Value = agent.history().last().cloned().unwrap_or_default();
    *agent.history() = vec![results];
    agent.set_member("thread", json!({"type": "continue", "previous_message_id": "msg_1"}));
    agent.set_member("tools", Value::Null);
    let second = agent.request().await?;
    assert_eq!(second.message["id"], "msg_2", "the id that the client knows is the first round's");
    assert_eq!(second.text(), "Done.");

    let request = stage.request(1);
    assert_eq!(request["thread"]["previous_message_id"], "msg_1");
    let message = &request["messages"][0];
    assert_eq!(parts(message, "tool_result").len(), 2);
    assert_eq!(result_of(message, "toolu_2")["is_error"], true);
    let continued = stage.request(2);
    assert_eq!(continued["thread"], json!({"type": "continue", "previous_message_id": "msg_2"}));
    assert_eq!(continued["messages"].as_array().map(Vec::len), Some(1));
    assert_eq!(result_of(&continued["messages"][0], "toolu_3")["is_error"], true);

    // The client goes on from the answer's first id; the provider needs the last one.
    *agent.history() = Vec::new();
    agent.set_member("thread", json!({"type": "continue", "previous_message_id": "msg_2"}));
    agent.prompt("Thanks.").await?;
    assert_eq!(stage.request(3)["thread"]["previous_message_id"], "msg_3");
    assert_eq!(stage.policy.at_least_of("PostToolUse", 1).await[0].tool(), "a");
    Ok(())
}

/// Equal answers are told apart by what stands before them.
pub(super) async fn equal_answers_are_told_apart(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| match number {
            4 => Message::new("msg_4").text("Done.").tool("toolu_1", "b", "{}").into(),
            _ => says(&format!("msg_{number}"), "Done.").into(),
        })
        .hooks(["PreToolUse"])
        .policy(deny_b)
        .start()
        .await?;
    let mut agent = stage.agent();
    for _ in 0..4 {
        agent.prompt("Again.").await?;
    }
    // The fifth answer merges two rounds: "Done." with a denied call, and "Done.".
    agent.prompt("Again.").await?;
    agent.prompt("Again.").await?;
    let messages = stage.messages(6);
    let calls: Vec<usize> =
        messages.iter().enumerate().filter(|(_, m)| !parts(m, "tool_use").is_empty()).map(|(at, _)| at).collect();
    assert_eq!(calls, [9], "{messages:?}");
    assert_eq!(result_of(&messages[10], "toolu_1")["is_error"], true);
    Ok(())
}
