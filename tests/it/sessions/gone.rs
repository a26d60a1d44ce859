//! What a client that goes on with the history of a deleted session meets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hookgate::testing::{Answer, Envelope, Gate, Message, Model, Policy, Ruling};

use super::stage::{Host, Outcome, Stage, says_its_number};

/// A policy that has a mind of its own until it is told to pass everything.
async fn policy(
    decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static,
) -> std::io::Result<(Policy, Arc<AtomicBool>)> {
    let lenient = Arc::new(AtomicBool::new(false));
    let passes = lenient.clone();
    let policy = Policy::start(move |told| match passes.load(Ordering::SeqCst) {
        true => Ruling::pass(),
        false => decide(told),
    });
    Ok((policy.await?, lenient))
}

/// Whoever deletes a session wants it forgotten, and not to overrule a policy.
pub(crate) async fn what_was_refused_stays_refused(host: Host) -> Outcome {
    let (policy, lenient) = policy(|told| match told.text("/detail/prompt") {
        "My secret." => Ruling::deny("It holds My secret."),
        _ => Ruling::pass(),
    })
    .await?;
    let hooks = [policy.hook("UserPromptSubmit")];
    let stage = Stage::start(host, policy, &hooks, says_its_number().await?).await?;
    let mut agent = stage.agent("s1");
    agent.prompt("Hello.").await?;
    assert_eq!(agent.prompt("My secret.").await?[0].text(), "It holds My secret.");
    stage.control("DELETE sessions/s1", "", 204).await?;

    lenient.store(true, Ordering::SeqCst);
    let before = stage.policy.asked().len();
    agent.prompt("And now?").await?;
    let sent = stage.request(1);
    assert!(sent.contains("Hello.") && sent.contains("And now?") && !sent.contains("secret"), "{sent}");
    let asked = stage.policy.asked().split_off(before);
    let mut prompts: Vec<&str> = asked.iter().map(|asked| asked.text("/detail/prompt")).collect();
    prompts.sort_unstable();
    assert_eq!(prompts, ["And now?", "Hello."], "what was allowed is asked about anew");

    // Said again it is a new question, which the policy answers as it does now.
    agent.prompt("My secret.").await?;
    assert!(stage.request(2).matches("My secret.").count() == 1, "{}", stage.request(2));
    Ok(())
}

pub(crate) async fn what_was_replaced_is_decided_anew(host: Host) -> Outcome {
    let (policy, lenient) = policy(|told| match told.text("/detail/prompt") {
        "Say a." => Ruling::modify("Say b."),
        _ => Ruling::pass(),
    })
    .await?;
    let hooks = [policy.hook("UserPromptSubmit")];
    let stage = Stage::start(host, policy, &hooks, says_its_number().await?).await?;
    let mut agent = stage.agent("s1");
    agent.prompt("Say a.").await?;
    assert!(stage.request(0).contains("Say b.") && !stage.request(0).contains("Say a."));
    stage.control("DELETE sessions/s1", "", 204).await?;
    lenient.store(true, Ordering::SeqCst);
    agent.prompt("And now?").await?;
    assert!(stage.request(1).contains("Say a.") && !stage.request(1).contains("Say b."), "{}", stage.request(1));
    Ok(())
}

/// The answer of a request that was under way is decided about to its end, and nobody remembers it.
pub(crate) async fn a_request_under_way_leaves_nothing(host: Host) -> Outcome {
    let gate = Gate::default();
    let held = gate.clone();
    let model = Model::answering(move |number, _| match number {
        0 => {
            let calls = Message::new("msg_0").tool("toolu_no", "no", "{}").tool("toolu_yes", "yes", "{}");
            Answer::from(calls).after(&held)
        }
        _ => Message::new(&format!("msg_{number}")).text("Done.").into(),
    })
    .await?;
    let policy = Policy::start(|told| match told.tool() {
        "no" => Ruling::deny("Not this."),
        _ => Ruling::pass(),
    })
    .await?;
    let hooks = [policy.hook("PreToolUse"), policy.hook("SessionEnd")];
    let stage = Stage::start(host, policy, &hooks, model).await?;
    let mut agent = stage.agent("s1").tool("no", |_| Err("it ran".into())).tool("yes", |_| Ok("fine".into()));
    let prompt = agent.prompt("Do both.");
    tokio::pin!(prompt);
    tokio::select! {
        _ = &mut prompt => return Err("it was not held".into()),
        () = gate.reached() => {}
    }
    stage.control("DELETE sessions/s1", "", 204).await?;
    gate.open();
    let replies = prompt.await?;
    let calls: Vec<String> = replies[0].calls().into_iter().map(|call| call.name).collect();
    assert_eq!(calls, ["yes"], "what was refused stays refused");
    // The model is not told of a call that a session had which is gone.
    let sent = stage.request(1);
    assert!(sent.contains("toolu_yes") && !sent.contains("toolu_no"), "{sent}");
    Ok(())
}
