//! A client that goes away takes everything with it that was done for it.

use hookgate::testing::{Agent, Gate, Message, Ruling};

use super::stage::{Outcome, Setting, says};

/// Sends a request in the background; aborting the task is going away.
fn send(mut agent: Agent) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        // Whatever comes, it is read.
        let _ = agent.request_for("Go.").await;
    })
}

pub(super) async fn before_the_first_byte(at: Setting) -> Outcome {
    let never = Gate::default();
    let answer = hookgate::testing::Answer::from(says("msg_1", "Hello.")).after(&never);
    let stage = at.model([answer]).hooks(["PreToolUse", "Stop"]).start().await?;
    let client = send(stage.agent());
    never.reached().await;
    client.abort();
    stage.model.abandoned(1).await;
    assert!(stage.policy.asked().is_empty());
    Ok(())
}

pub(super) async fn in_the_middle_of_a_stream(at: Setting) -> Outcome {
    let never = Gate::default();
    let stage = at
        .model([Message::new("msg_1").text("Hello.").wait(&never).text("Bye.")])
        .hooks(["PreToolUse", "Stop"])
        .start()
        .await?;
    let mut agent = stage.agent();
    agent.say("Go.");
    let mut incoming = agent.send().await?;
    incoming.event_where(|event| event.name == "content_block_delta").await?;
    drop(incoming);
    stage.model.abandoned(1).await;
    assert!(stage.policy.asked_of("Stop").is_empty());
    Ok(())
}

pub(super) async fn while_a_call_is_decided(at: Setting) -> Outcome {
    let (never, more) = (Gate::default(), Gate::default());
    let held = never.clone();
    let stage = at
        .model([Message::new("msg_1").text("Hello.").tool("toolu_1", "a", "{}").text("More.").wait(&more)])
        .hook(|policy| policy.hook("PreToolUse").timeout_ms(30_000))
        .policy(move |_| Ruling::pass().after(&held))
        .start()
        .await?;
    // A whole answer is complete before its calls are judged; a streamed one still comes.
    if !at.stream {
        more.open();
    }
    let client = send(stage.agent());
    stage.policy.at_least(1).await;
    client.abort();
    stage.policy.abandoned(1).await;
    if at.stream {
        stage.model.abandoned(1).await;
    }
    let record = stage.gateway.audited("PreToolUse", "cancelled").await?;
    assert_eq!(record["toolCallId"], "toolu_1");
    Ok(())
}

pub(super) async fn while_a_prompt_is_decided(at: Setting) -> Outcome {
    let never = Gate::default();
    let held = never.clone();
    let stage = at
        .model([says("msg_1", "Hello.")])
        .hook(|policy| policy.hook("UserPromptSubmit").timeout_ms(30_000))
        .policy(move |_| Ruling::pass().after(&held))
        .start()
        .await?;
    let client = send(stage.agent());
    stage.policy.at_least(1).await;
    client.abort();
    stage.policy.abandoned(1).await;
    stage.gateway.audited("UserPromptSubmit", "cancelled").await?;
    assert!(stage.model.requests().is_empty());
    Ok(())
}

pub(super) async fn while_an_answer_is_continued(at: Setting) -> Outcome {
    let never = Gate::default();
    let script = [
        Message::new("msg_1").text("Trying.").tool("toolu_1", "b", "{}"),
        Message::new("msg_2").wait(&never).text("Never."),
    ];
    let stage = at.model(script).hooks(["PreToolUse"]).policy(|_| Ruling::deny("no")).start().await?;
    let client = send(stage.agent());
    never.reached().await;
    client.abort();
    stage.model.abandoned(1).await;
    Ok(())
}
