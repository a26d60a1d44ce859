//! One-time callbacks in a conversation: the model asks for a URL, a worker calls it, the model reads what it brought.

use hookgate::BoxError;
use hookgate::testing::{Agent, Answer, Message, Received, Ruling};
use http::StatusCode;
use serde_json::{Value, json};

use super::stage::{Outcome, Plan, Setting, Stage, parts, result_of, says, text};

const ASKS: &str = r#"{"purpose":"the build","ttl_seconds":600}"#;

fn asks(id: &str) -> Message {
    Message::new(id).text("I hand it over.").tool("toolu_cb", "request_tmp_hook", ASKS)
}

/// The result that hookgate gave for the call, found in what the model got.
fn hook(request: &Value) -> Value {
    let messages = request["messages"].as_array().into_iter().flatten();
    let result = messages.map(|message| result_of(message, "toolu_cb")).find(|result| !result.is_null());
    let result = result.cloned().unwrap_or_default();
    assert!(result["is_error"].is_null(), "{result}");
    serde_json::from_str(result["content"].as_str().unwrap_or_default()).unwrap_or_default()
}

/// A model that asks for a callback, waits, and then says what it is told to.
fn coordinator(at: Setting, then: &'static str) -> Plan {
    at.answering(move |number, _| match number {
        0 => asks("msg_1").into(),
        1 => says("msg_2", "I wait.").into(),
        _ => says(&format!("msg_{}", number + 1), then).into(),
    })
    .callbacks(0)
}

async fn deliver(stage: &Stage, url: &Value, body: &'static str) -> Result<StatusCode, BoxError> {
    stage.call_back(url.as_str().ok_or("no URL")?, body).await
}

/// Has the agent hand its work over; gives what the model was given for it.
async fn handed_over(stage: &Stage, agent: &mut Agent) -> Result<Value, BoxError> {
    agent.prompt("Build it.").await?;
    Ok(hook(&stage.request(1)))
}

fn user_texts(message: &Value) -> Vec<&str> {
    parts(message, "text").into_iter().filter_map(|part| part["text"].as_str()).collect()
}

/// The client sees neither the tool nor its call; the model gets a URL that works once, and the message stays in its place.
pub(super) async fn a_callback_comes_back_as_a_message(at: Setting) -> Outcome {
    let stage = coordinator(at, "Built.").start().await?;
    let mut agent = stage.agent();
    let replies = agent.prompt("Build it.").await?;
    assert_eq!((replies.len(), replies[0].text().as_str()), (1, "I hand it over.\nI wait."));
    assert!(!text(&replies[0].raw).contains("request_tmp_hook"), "{}", text(&replies[0].raw));

    let declared = stage.request(0)["tools"].as_array().cloned().unwrap_or_default();
    assert_eq!(declared.last().map(|tool| &tool["name"]), Some(&json!("request_tmp_hook")));
    assert_eq!(declared.len(), 4, "behind the agent's own");
    let given = hook(&stage.request(1));
    assert_eq!(given["session_id"], super::stage::SESSION);
    assert_eq!(given["expires_in_seconds"], 600);
    assert!(given["url"].as_str().is_some_and(|url| url.ends_with(given["token"].as_str().unwrap_or("?"))));
    assert!(given["expires_at"].is_string());

    assert_eq!(deliver(&stage, &given["url"], "{\"status\": \"done\"}").await?, StatusCode::OK);
    assert_eq!(deliver(&stage, &given["url"], "again").await?, StatusCode::GONE);

    agent.prompt("And?").await?;
    let messages = stage.messages(2);
    let last = messages.last().ok_or("no message")?;
    let texts = user_texts(last);
    assert_eq!((texts.len(), texts[0]), (2, "And?"), "{last}");
    assert!(texts[1].starts_with("[hookgate] One-time callback received at "), "{}", texts[1]);
    assert!(
        texts[1].contains("Purpose: the build") && texts[1].ends_with("{\n  \"status\": \"done\"\n}"),
        "{}",
        texts[1]
    );

    agent.prompt("Thanks.").await?;
    let later = stage.messages(3);
    assert_eq!(later[..messages.len()], messages[..], "at the same place in every later request");
    assert_eq!(user_texts(later.last().ok_or("no message")?), ["Thanks."]);
    Ok(())
}

/// Between a call that the client runs and its result, the message comes behind the result.
pub(super) async fn a_callback_comes_behind_new_results(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| match number {
            0 => asks("msg_1").into(),
            1 => Message::new("msg_2").tool("toolu_1", "a", "{}").into(),
            _ => says("msg_3", "Both are there.").into(),
        })
        .callbacks(0)
        .start()
        .await?;
    let mut agent = stage.agent();
    let reply = agent.request_for("Go.").await?;
    let given = hook(&stage.request(1));
    assert_eq!(deliver(&stage, &given["url"], "done").await?, StatusCode::OK);
    assert!(agent.take(&reply), "a call to run");
    agent.request().await?;
    let messages = stage.messages(2);
    let last = messages.last().ok_or("no message")?;
    let kinds: Vec<&Value> = last["content"].as_array().into_iter().flatten().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["tool_result", "text"], "{last}");
    Ok(())
}

/// While a callback is open the end of the turn is held, and what comes goes on in the same answer.
pub(super) async fn a_held_turn_goes_on_with_the_callback(at: Setting) -> Outcome {
    let stage = coordinator(at, "Built.").callbacks(60).start().await?;
    let mut agent = stage.agent();
    let turn = tokio::spawn(async move { agent.prompt("Build it.").await.map(|replies| (agent, replies)) });
    stage.model.at_least(2).await;
    let given = hook(&stage.request(1));
    assert_eq!(deliver(&stage, &given["url"], "all green").await?, StatusCode::OK);
    let (mut agent, replies) = turn.await??;
    assert_eq!((replies.len(), replies[0].text().as_str()), (1, "I hand it over.\nI wait.\nBuilt."));
    assert_eq!(replies[0].message["id"], "msg_1");
    let messages = stage.messages(2);
    let last = messages.last().ok_or("no message")?;
    assert_eq!(last["role"], "user");
    assert!(user_texts(last)[0].ends_with("all green"), "{last}");

    // Later the model finds all of it where it was, and nothing twice.
    agent.prompt("Thanks.").await?;
    let later = stage.messages(3);
    assert_eq!(later[..messages.len()], messages[..]);
    assert_eq!(user_texts(later.last().ok_or("no message")?), ["Thanks."]);
    Ok(())
}

/// A hold ends by itself when nothing comes.
pub(super) async fn a_hold_ends_when_nothing_comes(at: Setting) -> Outcome {
    let stage = coordinator(at, "?").callbacks(1).start().await?;
    let replies = stage.agent().prompt("Build it.").await?;
    assert!(replies[0].complete);
    assert_eq!(replies[0].text(), "I hand it over.\nI wait.");
    assert_eq!(stage.model.requests().len(), 2);
    Ok(())
}

/// A client that leaves while its turn is held loses nothing: the message waits for its next request.
pub(super) async fn a_client_that_leaves_a_held_turn_loses_nothing(at: Setting) -> Outcome {
    let stage = coordinator(at, "Built.").callbacks(60).start().await?;
    let mut agent = stage.agent();
    let turn = tokio::spawn(async move { agent.prompt("Build it.").await });
    stage.model.at_least(2).await;
    let given = hook(&stage.request(1));
    turn.abort();
    assert!(turn.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(deliver(&stage, &given["url"], "all green").await?, StatusCode::OK);
    let mut agent = stage.agent();
    agent.say("Build it.");
    agent.say("Still there?");
    agent.request().await?;
    let requests = stage.model.requests();
    assert!(requests.iter().skip(2).any(|request| text(&request.body).contains("all green")));
    Ok(())
}

/// What a worker sends is input from outside: the prompt's policy has its say, and never sees the token.
pub(super) async fn a_callback_is_judged_like_a_prompt(at: Setting) -> Outcome {
    for outcome in ["deny", "modify", "pass"] {
        let stage = coordinator(at, "Fine.")
            .hooks(["UserPromptSubmit"])
            .policy(move |asked| match (outcome, asked.detail()["source"].as_str()) {
                ("deny", Some("callback")) => Ruling::deny("it has a key in it"),
                ("modify", Some("callback")) => Ruling::modify("cleaned"),
                (_, Some("callback")) => Ruling::pass().context("checked"),
                _ => Ruling::pass(),
            })
            .start()
            .await?;
        let mut agent = stage.agent();
        let given = handed_over(&stage, &mut agent).await?;
        deliver(&stage, &given["url"], "key=abc").await?;
        agent.prompt("And?").await?;
        let messages = stage.messages(2);
        let texts = user_texts(messages.last().ok_or("no message")?);
        match outcome {
            "deny" => {
                assert!(texts[1].contains("(the build)") && texts[1].ends_with("it has a key in it"), "{texts:?}");
                assert!(!text(&stage.body(2)).contains("key=abc"));
            }
            "modify" => assert_eq!(texts[1..], ["cleaned"]),
            _ => assert!(texts[1].contains("key=abc") && texts[1].contains("checked"), "{texts:?}"),
        }
        let asked = stage.policy.asked_of("UserPromptSubmit");
        let token = given["token"].as_str().ok_or("no token")?;
        assert!(asked.iter().any(|asked| asked.text("/detail/prompt").contains("key=abc")));
        assert!(asked.iter().all(|asked| !asked.json().to_string().contains(token)));
    }
    Ok(())
}

/// A policy that cannot be asked refuses nothing for good: the message comes with a later request.
pub(super) async fn a_callback_that_could_not_be_judged_waits(at: Setting) -> Outcome {
    let stage = coordinator(at, "Fine.")
        .hooks(["UserPromptSubmit"])
        .policy(|asked| match (asked.detail()["source"].as_str(), asked.text("/detail/prompt").is_empty()) {
            (Some("callback"), _) => Ruling::raw(500, "down"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let mut agent = stage.agent();
    let given = handed_over(&stage, &mut agent).await?;
    deliver(&stage, &given["url"], "done").await?;
    for number in 2..4 {
        agent.prompt(&format!("And {number}?")).await?;
        assert_eq!(user_texts(stage.messages(number).last().ok_or("no message")?).len(), 1);
    }
    let asked = stage.policy.asked_of("UserPromptSubmit");
    assert_eq!(asked.iter().filter(|asked| asked.detail()["source"] == "callback").count(), 2);
    Ok(())
}

/// An answer that never came takes no message with it: when the client goes on with another history, it comes again.
pub(super) async fn a_callback_in_a_failed_request_is_not_lost(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| match number {
            0 => asks("msg_1").into(),
            1 => says("msg_2", "I wait.").into(),
            2 => Answer::error(529, "overloaded_error", "busy"),
            _ => says("msg_4", "Built.").into(),
        })
        .callbacks(0)
        .start()
        .await?;
    let mut agent = stage.agent();
    let given = handed_over(&stage, &mut agent).await?;
    deliver(&stage, &given["url"], "done").await?;
    let history = agent.history().clone();
    agent.request_for("And?").await?;
    *agent.history() = history;
    agent.prompt("Something else.").await?;
    for (number, prompt) in [(2, "And?"), (3, "Something else.")] {
        let messages = stage.messages(number);
        let texts = user_texts(messages.last().ok_or("no message")?);
        assert_eq!((texts.len(), texts[0]), (2, prompt));
        assert!(texts[1].ends_with("done"));
    }
    Ok(())
}

/// Another call of the same answer is the client's; the callback's result stands beside its result.
pub(super) async fn a_callback_beside_a_call_of_the_client(at: Setting) -> Outcome {
    let stage = at
        .model([
            Message::new("msg_1").tool("toolu_cb", "request_tmp_hook", "{}").tool("toolu_1", "a", r#"{"x":1}"#),
            says("msg_2", "Done."),
        ])
        .callbacks(0)
        .start()
        .await?;
    let replies = stage.agent().prompt("Go.").await?;
    assert_eq!(replies.len(), 2);
    assert_eq!(replies[0].calls().len(), 1);
    let messages = stage.messages(1);
    assert_eq!(parts(&messages[1], "tool_use").len(), 2, "the model finds both of its calls");
    assert_eq!(result_of(&messages[2], "toolu_1")["content"], r#"a ran with {"x":1}"#);
    assert_eq!(hook(&stage.request(1))["expires_in_seconds"], 1800);
    Ok(())
}

/// Wrong arguments are explained to the model, and so is a policy's refusal.
pub(super) async fn a_call_that_gets_no_callback_says_why(at: Setting) -> Outcome {
    for (input, denied, expected) in [
        (r#"{"ttl_seconds":"soon"}"#, false, "ttl_seconds"),
        (r#"{"purpose":"x","until":1}"#, false, "unknown field `until`"),
        ("{}", true, "no callbacks here"),
    ] {
        let message = Message::new("msg_1").tool("toolu_cb", "request_tmp_hook", input);
        let stage = at
            .model([message, says("msg_2", "Then not.")])
            .hooks(["PreToolUse"])
            .policy(move |_| if denied { Ruling::deny("no callbacks here") } else { Ruling::pass() })
            .callbacks(0)
            .start()
            .await?;
        let replies = stage.agent().prompt("Go.").await?;
        assert_eq!(replies[0].text(), "Then not.");
        let messages = stage.messages(1);
        let result = result_of(messages.last().ok_or("no message")?, "toolu_cb");
        assert_eq!(result["is_error"], true);
        assert!(result["content"].as_str().is_some_and(|text| text.contains(expected)), "{result}");
    }
    Ok(())
}

/// A model that asks for nothing else is stopped, and the answer ends properly.
pub(super) async fn a_model_that_asks_for_ever_is_stopped(at: Setting) -> Outcome {
    let ask = |number: usize, _: &Received| {
        Message::new(&format!("msg_{number}")).tool(&format!("toolu_{number}"), "request_tmp_hook", "{}").into()
    };
    let stage = at.answering(ask).callbacks(0).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(reply.complete && reply.calls().is_empty());
    assert_eq!(stage.model.requests().len(), 9, "the first round and eight more");
    assert!(!text(&reply.raw).contains("http://agents.example"), "{}", text(&reply.raw));
    Ok(())
}

/// Who is not offered the tool: side requests, sub-agents, a client with such a tool, a model that must call some tool.
pub(super) async fn callbacks_are_offered_to_the_agent_itself(at: Setting) -> Outcome {
    let stage = at.answering(|_, _| says("msg_1", "Hello.").into()).callbacks(0).start().await?;
    let own = json!({"name": "request_tmp_hook", "input_schema": {"type": "object"}});
    let agents = [
        stage.agent().header("x-claude-code-session-id", "s").header("x-claude-code-agent-id", "sub"),
        stage.agent().declare(own),
        stage.agent().member("tool_choice", json!({"type": "any"})),
    ];
    for mut agent in agents {
        agent.request_for("Go.").await?;
        let request = stage.model.requests().pop().ok_or("no request")?;
        assert_eq!(request.body, agent.body(), "nothing is added");
    }
    Ok(())
}
