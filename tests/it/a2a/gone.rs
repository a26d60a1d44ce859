//! Streams as they come, and clients that leave.

use hookgate::testing::{Answer, Gate, Ruling};

use super::stage::{At, Outcome};

pub(super) async fn events_are_not_held(at: At) -> Outcome {
    let (gate, said) = (Gate::default(), at.dialect);
    let more = gate.clone();
    let slow = Gate::default();
    let answered = slow.clone();
    let stage = at
        .agent(move |_, _| {
            let first = said.events(&[said.task("t-1", "working", "")]);
            first.wait(&more).then(format!("data: {}\n\n", said.wrapped(&said.update("t-1", "completed", ""))))
        })
        .hook(|policy| policy.hook("TaskStart").id("slow").timeout_ms(30_000))
        .policy(move |asked| match asked.event() {
            "TaskStart" => Ruling::pass().after(&answered),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let mut incoming = stage.send(&at.ask("Make tea.")).await?;
    incoming.event().await?.ok_or("no first event")?;
    // It was told before there is more of the answer, and the answer goes on before the handlers have said anything.
    stage.told(["TaskStart"]).await;
    gate.open();
    incoming.event().await?.ok_or("no second event")?;
    assert!(incoming.event().await?.is_none());
    stage.told(["TaskStop", "SubagentStop"]).await;
    slow.open();
    Ok(())
}

pub(super) async fn any_split_gives_the_same(at: At) -> Outcome {
    let said = at.dialect;
    let values =
        [said.task("t-1", "working", "é"), said.artifact("t-1", false, "Té."), said.update("t-1", "completed", "")];
    let whole: String = values.iter().map(|value| format!("id: 1\r\ndata:{}\r\n\r\n", said.wrapped(value))).collect();
    let stage = at.agent(move |_, _| said.events(&values).bytewise()).start().await?;
    assert_eq!(stage.text(&at.ask("Make tea.")).await?, whole);
    assert_eq!(stage.told(["SubagentStop"]).await[0].text("/detail/response"), "Té.");
    Ok(())
}

pub(super) async fn a_client_that_leaves_takes_the_request_with_it(at: At) -> Outcome {
    let never = Gate::default();
    let gate = never.clone();
    let stage = at.agent(move |_, _| Answer::events([": begun\n\n"]).wait(&gate)).start().await?;
    let mut incoming = stage.send(&at.ask("Make tea.")).await?;
    incoming.chunk().await?;
    drop(incoming);
    stage.agent.abandoned(1).await;
    let [end] = stage.told(["SubagentStop"]).await;
    assert_eq!(end.detail()["error"], "the agent's answer broke off");

    // Before there is an answer.
    let gate = never.clone();
    let stage = at.agent(move |_, _| at.tell(&[]).after(&gate)).start().await?;
    let request = at.ask("Make tea.");
    tokio::select! {
        answered = stage.send(&request) => return Err(format!("{:?}", answered.map(|answer| answer.status)).into()),
        _ = stage.agent.at_least(1) => {}
    }
    let [end] = stage.told(["SubagentStop"]).await;
    assert_eq!(end.detail()["error"], "its client went away");
    Ok(())
}

pub(super) async fn a_client_that_leaves_while_a_policy_thinks_asks_no_agent(at: At) -> Outcome {
    let gate = Gate::default();
    let thinking = gate.clone();
    let stage = at.telling([]).deciding(move |_| Ruling::pass().after(&thinking)).start().await?;
    let request = at.ask("Make tea.");
    tokio::select! {
        answered = stage.send(&request) => return Err(format!("{:?}", answered.map(|answer| answer.status)).into()),
        _ = stage.policy.at_least_of("SubagentStart", 1) => {}
    }
    stage.policy.abandoned(1).await;
    gate.open();
    stage.gateway.audited("SubagentStart", "cancelled").await?;
    assert!(stage.agent.requests().is_empty());
    Ok(())
}
