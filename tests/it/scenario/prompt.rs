//! Prompts are judged before the model sees them, and what was decided holds in every later request.

use std::sync::atomic::{AtomicUsize, Ordering};

use hookgate::testing::{Agent, Envelope, Message, Ruling};
use serde_json::{Value, json};

use super::stage::{Outcome, Setting, inserted, parts, says, text};

fn no_secrets(asked: &Envelope) -> Ruling {
    if asked.text("/detail/prompt").contains("secret") { Ruling::deny("no secrets here") } else { Ruling::pass() }
}

pub(super) async fn a_denied_prompt_never_reaches_the_model(at: Setting) -> Outcome {
    let stage =
        at.model([says("msg_1", "Hello.")]).hooks(["UserPromptSubmit", "Stop"]).policy(no_secrets).start().await?;
    let mut agent = stage.agent();
    let refused = &agent.prompt("a secret").await?[0];
    assert!(refused.complete);
    assert!(refused.text().contains("no secrets here"));
    assert_eq!((refused.status.as_u16(), refused.stop_reason()), (200, "end_turn"));
    assert_eq!(refused.message["usage"]["output_tokens"], 0);
    assert!(stage.model.requests().is_empty());
    assert!(stage.policy.asked_of("Stop").is_empty());

    assert_eq!(agent.prompt("hi").await?[0].text(), "Hello.");
    let body = text(&stage.body(0));
    assert!(!body.contains("secret"), "{body}");
    assert_eq!(stage.messages(0).len(), 1);
    assert_eq!(stage.policy.asked_of("UserPromptSubmit").len(), 2);
    Ok(())
}

/// A handler that was down refused the prompt; sent again, it is asked about again.
pub(super) async fn a_refusal_by_failure_is_not_for_ever(at: Setting) -> Outcome {
    let asked = AtomicUsize::new(0);
    let stage = at
        .model([says("msg_1", "Hello.")])
        .hooks(["UserPromptSubmit"])
        .policy(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Ruling::raw(503, ""),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.say("hi");
    assert!(agent.request().await?.text().contains("503"));
    assert!(stage.model.requests().is_empty());
    assert_eq!(agent.request().await?.text(), "Hello.");
    Ok(())
}

/// Tool results in a refused message are results all the same.
pub(super) async fn results_beside_a_denied_prompt_stay(at: Setting) -> Outcome {
    let script = [Message::new("msg_1").tool("toolu_1", "a", "{}"), says("msg_2", "Done.")];
    let stage = at.model(script).hooks(["UserPromptSubmit", "PostToolUse"]).policy(no_secrets).start().await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let reply = agent.request().await?;
    assert!(agent.take(&reply));
    let last = agent.history().last_mut().and_then(|message| message["content"].as_array_mut());
    last.ok_or("no results")?.push(json!({"type": "text", "text": "and a secret"}));
    let refused = agent.request().await?;
    assert!(refused.text().contains("no secrets here"));
    assert_eq!(stage.model.requests().len(), 1);
    agent.take(&refused);
    agent.prompt("go on").await?;
    let body = text(&stage.body(1));
    assert!(!body.contains("secret") && body.contains("toolu_1") && body.contains("a ran with"), "{body}");
    assert_eq!(stage.policy.at_least_of("PostToolUse", 1).await.len(), 1);
    Ok(())
}

/// All text becomes one text; what is not text stays.
pub(super) async fn a_rewritten_prompt_is_one_text(at: Setting) -> Outcome {
    let stage = at
        .model([says("msg_1", "Hello."), says("msg_2", "Bye.")])
        .hooks(["UserPromptSubmit"])
        .policy(|asked| match asked.text("/detail/prompt") {
            "one\ntwo" => Ruling::modify("three"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let mut agent = stage.agent();
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}});
    let content = json!([{"type": "text", "text": "one"}, image, {"type": "text", "text": "two"}]);
    agent.history().push(json!({"role": "user", "content": content}));
    agent.go_on().await?;
    agent.prompt("bye").await?;
    let asked = stage.policy.asked_of("UserPromptSubmit");
    assert_eq!(asked[0].detail()["attachments"][0]["kind"], "image");
    assert_eq!(asked.len(), 2, "the first prompt is not asked about again");
    for number in [0, 1] {
        let message = &stage.messages(number)[0];
        assert_eq!(parts(message, "text").iter().map(|part| part["text"].clone()).collect::<Vec<_>>(), ["three"]);
        assert_eq!(parts(message, "image"), [&image], "request {number}");
    }
    Ok(())
}

pub(super) async fn context_follows_the_prompt_for_ever(at: Setting) -> Outcome {
    let stage = at
        .model([says("msg_1", "One."), says("msg_2", "Two.")])
        .hook(|policy| policy.hook("UserPromptSubmit").id("one"))
        .hook(|policy| policy.hook("UserPromptSubmit").id("two"))
        .policy(|asked| match asked.text("/detail/prompt") {
            "first" => Ruling::pass().context("the time is 12:00"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.say("first");
    let sent = agent.body();
    agent.go_on().await?;
    agent.prompt("second").await?;
    // One insertion, behind the prompt, and nothing else changed.
    let added = inserted(&sent, &stage.body(0))?;
    assert_eq!(added.matches("the time is 12:00").count(), 2);
    let first = stage.messages(0);
    let content = first[0]["content"].as_array().cloned().unwrap_or_default();
    assert_eq!(content[0]["text"], "first");
    assert_eq!(stage.messages(1)[0], first[0], "the same place in later requests");
    assert_eq!(stage.messages(1)[2]["content"][0]["text"], "second");
    Ok(())
}

/// Text of a hook cannot pretend to end itself.
pub(super) async fn context_cannot_forge_its_delimiter(at: Setting) -> Outcome {
    let plain = at
        .model([says("msg_1", "One.")])
        .hooks(["UserPromptSubmit"])
        .policy(|_| Ruling::pass().context("X"))
        .start()
        .await?;
    plain.agent().prompt("hi").await?;
    let part = |stage: &super::stage::Stage| -> String {
        let message = &stage.messages(0)[0];
        parts(message, "text").get(1).and_then(|part| part["text"].as_str()).unwrap_or_default().to_owned()
    };
    let wrapped = part(&plain);
    let (before, after) = wrapped.split_once('X').ok_or("the context is not there")?;
    let (before, after) = (before.trim().to_owned(), after.trim().to_owned());
    assert!(!before.is_empty() || !after.is_empty(), "the context is delimited");
    let forged = format!("{after}X{before}");
    let stage = at
        .model([says("msg_1", "One.")])
        .hooks(["UserPromptSubmit"])
        .policy(move |_| Ruling::pass().context(&forged))
        .start()
        .await?;
    stage.agent().prompt("hi").await?;
    let text = part(&stage);
    for delimiter in [before, after].iter().filter(|delimiter| !delimiter.is_empty()) {
        assert_eq!(text.matches(delimiter.as_str()).count(), 1, "{text}");
    }
    Ok(())
}

pub(super) async fn session_context_comes_with_the_first_prompt(at: Setting) -> Outcome {
    let stage = at
        .model([says("msg_1", "One."), says("msg_2", "Two.")])
        .hooks(["SessionStart", "UserPromptSubmit"])
        .policy(|asked| match asked.event() {
            "SessionStart" => Ruling::pass().context("house rules"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.prompt("first").await?;
    agent.prompt("second").await?;
    let started = stage.policy.asked_of("SessionStart");
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].detail()["source"], "new");
    assert_eq!(started[0].text("/sessionId"), "session-1");
    let first = &stage.messages(0)[0];
    assert!(first["content"][1]["text"].as_str().is_some_and(|text| text.contains("house rules")));
    assert_eq!(&stage.messages(1)[0], first);
    Ok(())
}

/// A session that began elsewhere, or before hookgate was started: it is told as resumed, and what is added stands behind
/// the prompt that came first here.
pub(super) async fn a_session_with_a_past_is_told_as_resumed(at: Setting) -> Outcome {
    let stage = at
        .answering(|number, _| says(&format!("msg_{number}"), "Fine.").into())
        .hooks(["SessionStart"])
        .policy(|_| Ruling::pass().context("house rules"))
        .start()
        .await?;
    let mut agent = stage.agent();
    let turn = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    agent.history().extend([turn("user", "before"), turn("assistant", "Noted.")]);
    agent.prompt("now").await?;
    agent.prompt("and then").await?;
    let started = stage.policy.asked_of("SessionStart");
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].detail()["source"], "resume");
    for number in [0, 1] {
        let messages = stage.messages(number);
        let with: Vec<bool> = messages.iter().map(|message| message.to_string().contains("house rules")).collect();
        assert_eq!(with.iter().position(|with| *with), Some(2), "request {number}");
        assert_eq!(with.iter().filter(|with| **with).count(), 1, "request {number}");
    }
    Ok(())
}

/// What a known client adds by itself is told apart from the prompt; what anybody else writes like it is the prompt.
pub(super) async fn only_a_known_client_has_context_of_its_own(at: Setting) -> Outcome {
    let message = json!({"role": "user", "content": [
        {"type": "text", "text": "<system-reminder>today is Monday</system-reminder>"},
        {"type": "text", "text": "hi"},
    ]});
    let script = [says("msg_1", "One."), says("msg_2", "Two.")];
    let stage = at.model(script).hooks(["UserPromptSubmit"]).start().await?;
    for agent in [stage.agent().claude_code("session-2"), stage.agent()] {
        let mut agent: Agent = agent;
        agent.history().push(message.clone());
        let sent = agent.body();
        agent.go_on().await?;
        assert_eq!(stage.model.requests().last().map(|request| request.body.clone()), Some(sent));
    }
    let asked = stage.policy.asked_of("UserPromptSubmit");
    assert_eq!(asked[0].text("/detail/prompt"), "hi");
    assert!(asked[0].text("/detail/clientContext/0").contains("Monday"));
    assert!(asked[1].text("/detail/prompt").contains("Monday") && asked[1].text("/detail/prompt").ends_with("hi"));
    Ok(())
}

pub(super) async fn a_side_request_starts_no_turn(at: Setting) -> Outcome {
    let stage = at.model([says("msg_1", "A title.")]).hooks(["UserPromptSubmit", "Stop"]).start().await?;
    let format = json!({"format": {"type": "json_schema", "schema": {"properties": {"title": {"type": "string"}}}}});
    let agent = Agent::new(&stage.url).streaming(at.stream).claude_code("session-2");
    agent.member("output_config", format).member("tools", json!([])).prompt("Name this.").await?;
    let asked = stage.policy.asked();
    assert_eq!(asked.len(), 1, "no Stop");
    assert_eq!(asked[0].detail()["side"], true);
    assert_eq!(asked[0].text("/sessionId"), "session-2");
    Ok(())
}

/// A history that was never seen: its prompts are judged too, and what is denied there does not reach the model.
pub(super) async fn old_prompts_are_judged_when_they_are_new_here(at: Setting) -> Outcome {
    let stage = at.model([says("msg_1", "Hello.")]).hooks(["UserPromptSubmit"]).policy(no_secrets).start().await?;
    let mut agent = stage.agent();
    let turn = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    agent.history().extend([
        turn("user", "an old secret"),
        turn("assistant", "Noted."),
        turn("user", "something else"),
        turn("assistant", "Fine."),
    ]);
    assert_eq!(agent.prompt("hi").await?[0].text(), "Hello.");
    assert!(!text(&stage.body(0)).contains("secret"));
    let replayed = |text: &str| -> Vec<Value> {
        let asked = stage.policy.asked_of("UserPromptSubmit").into_iter();
        let asked = asked.filter(|asked| asked.text("/detail/prompt") == text);
        asked.map(|asked| asked.detail()["replayed"].clone()).collect()
    };
    assert_eq!(replayed("an old secret"), [true]);
    assert_eq!(replayed("something else"), [true]);
    assert_ne!(replayed("hi"), [true]);
    Ok(())
}

pub(super) async fn the_same_words_twice_are_two_prompts(at: Setting) -> Outcome {
    let script = [says("msg_1", "One."), says("msg_2", "Two.")];
    let stage = at.model(script).hooks(["UserPromptSubmit"]).start().await?;
    let mut agent = stage.agent();
    agent.prompt("go on").await?;
    agent.prompt("go on").await?;
    let asked = stage.policy.asked_of("UserPromptSubmit");
    assert_eq!(asked.len(), 2);
    assert!(!asked[0].text("/turnId").is_empty());
    assert_ne!(asked[0].text("/turnId"), asked[1].text("/turnId"));
    Ok(())
}

/// Retries are equal bodies.
pub(super) async fn a_retry_is_the_same_prompt(at: Setting) -> Outcome {
    let script = [says("msg_1", "One."), says("msg_2", "Two.")];
    let stage = at.model(script).hooks(["UserPromptSubmit"]).start().await?;
    let mut agent = stage.agent();
    agent.say("hi");
    agent.request().await?;
    agent.request().await?;
    assert_eq!(stage.model.requests().len(), 2);
    assert_eq!(stage.policy.asked_of("UserPromptSubmit").len(), 1);
    Ok(())
}

/// Two requests with one prompt at once share its decision.
pub(super) async fn concurrent_retries_share_a_decision(at: Setting) -> Outcome {
    let stage = at.answering(|_, _| says("msg_1", "One.").into()).hooks(["UserPromptSubmit"]).start().await?;
    let mut agent = stage.agent();
    agent.say("hi");
    let (one, two) = tokio::join!(agent.request(), agent.request());
    assert_eq!((one?.text(), two?.text()), ("One.".to_owned(), "One.".to_owned()));
    assert_eq!(stage.policy.asked_of("UserPromptSubmit").len(), 1);
    Ok(())
}

/// Instructions in mid-conversation are neither a prompt nor an answer, wherever they stand.
pub(super) async fn system_entries_are_not_prompts(at: Setting) -> Outcome {
    let script = [Message::new("msg_1").tool("toolu_1", "a", "{}"), says("msg_2", "Done.")];
    let stage = at.model(script).hooks(["UserPromptSubmit", "PostToolUse"]).start().await?;
    let mut agent = stage.agent().claude_code("session-2");
    agent.say("Go.");
    agent.history().push(json!({"role": "system", "content": "be brief"}));
    let reply = agent.request().await?;
    agent.take(&reply);
    agent.history().push(json!({"role": "system", "content": "be kind"}));
    let sent = agent.body();
    agent.go_on().await?;
    assert_eq!(stage.body(1), sent);
    let asked = stage.policy.asked_of("UserPromptSubmit");
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].text("/detail/prompt"), "Go.");
    assert_eq!(stage.policy.at_least_of("PostToolUse", 1).await.len(), 1);
    Ok(())
}

/// Token counts carry prompts too.
pub(super) async fn counted_prompts_are_judged(at: Setting) -> Outcome {
    let stage = at
        .answering(|_, _| hookgate::testing::Answer::json(200, r#"{"input_tokens": 12}"#))
        .hooks(["UserPromptSubmit", "Stop"])
        .policy(no_secrets)
        .start()
        .await?;
    let body = |text: &str| json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string();
    let session = [("x-hookgate-session", "session-1")];
    let path = "/v1/messages/count_tokens";
    let counted = stage.client().post(path, &session, body("hi")).await?;
    assert_eq!(counted.bytes().await?, r#"{"input_tokens": 12}"#);
    let refused = stage.client().post(path, &session, body("a secret")).await?;
    assert_eq!(refused.status, 400);
    assert!(text(&refused.bytes().await?).contains("no secrets here"));
    assert_eq!(stage.model.requests().len(), 1);
    let asked = stage.policy.asked();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].detail()["side"], true);
    Ok(())
}

/// Several handlers: the second one judges what the first one wrote.
pub(super) async fn a_rewritten_prompt_is_judged_again_by_the_next(at: Setting) -> Outcome {
    let stage = at
        .model([says("msg_1", "One.")])
        .hook(|policy| policy.hook("UserPromptSubmit").id("one"))
        .hook(|policy| policy.hook("UserPromptSubmit").id("two"))
        .policy(|asked| match asked.text("/detail/prompt") {
            "hi" => Ruling::modify("a secret"),
            _ => no_secrets(asked),
        })
        .start()
        .await?;
    let replies = stage.agent().prompt("hi").await?;
    assert!(replies[0].text().contains("no secrets here"));
    assert!(stage.model.requests().is_empty());
    Ok(())
}
