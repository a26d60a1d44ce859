//! A client that drops an answer, such as a refusal, joins the messages around it: what was decided about the first one
//! holds for it, and what it is joined with is a prompt of its own.

use hookgate::testing::{Envelope, Message, Ruling};
use serde_json::{Value, json};

use super::stage::{Outcome, Setting, Stage, says, text};

fn policy(asked: &Envelope) -> Ruling {
    match asked.text("/detail/prompt") {
        prompt if prompt.contains("secret") => Ruling::deny("no secrets here"),
        prompt if prompt.contains("production") => Ruling::modify("to staging"),
        _ => Ruling::pass(),
    }
}

async fn stage(at: Setting) -> Result<Stage, hookgate::BoxError> {
    at.answering(|number, _| match number {
        0 => Message::new("msg_0").tool("toolu_1", "a", "{}").into(),
        _ => says(&format!("msg_{number}"), "Fine.").into(),
    })
    .hooks(["UserPromptSubmit"])
    .policy(policy)
    .start()
    .await
}

fn joined(first: &str, second: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": first}, {"type": "text", "text": second}]})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

fn prompts(stage: &Stage) -> Vec<String> {
    stage.policy.asked_of("UserPromptSubmit").iter().map(|asked| asked.text("/detail/prompt").to_owned()).collect()
}

pub(super) async fn a_denied_prompt_is_taken_from_what_it_is_joined_with(at: Setting) -> Outcome {
    let stage = stage(at).await?;
    let mut agent = stage.agent();
    agent.prompt("Go.").await?;
    let history = agent.history().clone();
    agent.prompt("a secret").await?;
    *agent.history() = history.clone();
    agent.history().push(joined("a secret\n", "Sum it up."));
    agent.go_on().await?;
    agent.prompt("And now?").await?;
    assert_eq!(prompts(&stage), ["Go.", "a secret", "Sum it up.", "And now?"]);
    for number in [2, 3] {
        assert!(!text(&stage.body(number)).contains("secret"));
        assert_eq!(stage.messages(number)[..history.len()], history, "request {number}");
        assert_eq!(stage.messages(number)[history.len()], user("Sum it up."), "request {number}");
    }
    // The summary stands at the beginning then, and the client keeps its last answer behind it.
    *agent.history() = vec![user("Summary: nothing."), json!({"role": "assistant", "content": "no secrets here"})];
    agent.prompt("Go on.").await?;
    agent.prompt("And on.").await?;
    for number in [4, 5] {
        assert_eq!(stage.messages(number)[..2], [user("Summary: nothing."), user("Go on.")], "request {number}");
    }
    // What it is joined with can be refused too.
    *agent.history() = history.clone();
    agent.history().push(joined("a secret\n", "another secret"));
    assert!(agent.go_on().await?[0].text().contains("no secrets here"));
    agent.prompt("Well.").await?;
    assert_eq!(stage.messages(6)[history.len()..], [user("Well.")]);
    Ok(())
}

pub(super) async fn a_rewritten_prompt_leaves_alone_what_it_is_joined_with(at: Setting) -> Outcome {
    let stage = stage(at).await?;
    let mut agent = stage.agent();
    agent.prompt("Go.").await?;
    let history = agent.history().clone();
    agent.prompt("to production").await?;
    *agent.history() = history.clone();
    agent.history().push(joined("to production\n", "Sum it up."));
    agent.go_on().await?;
    assert_eq!(prompts(&stage), ["Go.", "to production", "Sum it up."]);
    assert_eq!(stage.messages(3)[history.len()..], [joined("to staging", "Sum it up.")]);
    Ok(())
}

/// What is refused together is not let through because its first part alone was allowed later.
pub(super) async fn a_whole_that_was_denied_does_not_come_back_in_parts(at: Setting) -> Outcome {
    let stage = stage(at).await?;
    let mut agent = stage.agent();
    agent.prompt("Go.").await?;
    let history = agent.history().clone();
    agent.history().push(joined("a sec", "ret, a secret"));
    agent.go_on().await?;
    *agent.history() = history.clone();
    agent.prompt("a sec").await?;
    *agent.history() = history.clone();
    agent.history().push(joined("a sec", "ret, a secret"));
    let asked = prompts(&stage).len();
    assert!(agent.go_on().await?[0].text().contains("no secrets here"));
    assert_eq!(prompts(&stage).len(), asked, "the whole is denied already");
    Ok(())
}

/// Results are results, also where they stand before a prompt that is taken out of what it is joined with.
pub(super) async fn results_of_a_denied_prompt_are_joined_with_more(at: Setting) -> Outcome {
    let stage = stage(at).await?;
    let mut agent = stage.agent().tool("a", |_| Ok("one".into()));
    agent.say("Go.");
    let reply = agent.request().await?;
    agent.take(&reply);
    let add = |history: &mut Vec<Value>, more: &str| {
        let content = history.last_mut().and_then(|message| message["content"].as_array_mut());
        content.expect("there are results").push(json!({"type": "text", "text": more}));
    };
    add(agent.history(), "a secret");
    assert!(agent.request().await?.text().contains("no secrets here"));
    add(agent.history(), "Sum it up.");
    agent.go_on().await?;
    assert_eq!(prompts(&stage), ["Go.", "a secret", "Sum it up."]);
    let content = stage.messages(1)[2]["content"].clone();
    assert_eq!(content[0]["content"], "one");
    assert_eq!(content[1], json!({"type": "text", "text": "Sum it up."}));
    assert_eq!(content.as_array().map(Vec::len), Some(2));
    Ok(())
}

/// What the model itself says is its own, though a policy said the same before.
pub(super) async fn an_answer_in_the_words_of_a_refusal_stays(at: Setting) -> Outcome {
    let stage = at.model([says("msg_1", "no secrets here"), says("msg_2", "Fine.")]).hooks(["UserPromptSubmit"]);
    let stage = stage.policy(policy).start().await?;
    let mut agent = stage.agent();
    agent.prompt("a secret").await?;
    agent.history().clear();
    agent.prompt("What did you say?").await?;
    agent.say("Again?");
    let sent = agent.body();
    agent.go_on().await?;
    assert_eq!(stage.body(1), sent);
    Ok(())
}
