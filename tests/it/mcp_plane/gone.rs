//! Clients that leave.

use hookgate::testing::{Answer, Gate, Ruling};
use serde_json::json;

use super::stage::{At, Outcome, call, event, legacy, modern, said};

/// In legacy revisions a client that goes away has not given its call up: the tool runs, and what comes of it is told.
pub(super) async fn a_legacy_call_goes_on_without_its_client(at: At) -> Outcome {
    let gate = Gate::default();
    let open = gate.clone();
    let stage = at
        .answering(move |_| {
            Answer::events([": begun\n\n"])
                .wait(&gate)
                .then(event(&json!({"jsonrpc": "2.0", "id": 1, "result": said("done")})))
        })
        .start()
        .await?;
    let mut incoming = stage.post(&legacy(), call(1, "read", json!({})).to_string()).await?;
    incoming.chunk().await?;
    drop(incoming);
    open.open();
    assert_eq!(stage.policy.at_least_of("PostToolUse", 1).await[0].detail()["result"], said("done"));
    Ok(())
}

pub(super) async fn a_legacy_call_goes_on_before_its_answer_begins(at: At) -> Outcome {
    let gate = Gate::default();
    let open = gate.clone();
    let stage = at
        .answering(move |_| {
            Answer::json(200, json!({"jsonrpc": "2.0", "id": 1, "result": said("done")}).to_string()).after(&gate)
        })
        .start()
        .await?;
    let body = call(1, "read", json!({})).to_string();
    let headers = legacy();
    tokio::select! {
        answered = stage.post(&headers, body) => return Err(format!("{:?}", answered.map(|answer| answer.status)).into()),
        _ = stage.server.at_least(2) => {}
    }
    open.open();
    assert_eq!(stage.policy.at_least_of("PostToolUse", 1).await[0].detail()["result"], said("done"));
    Ok(())
}

pub(super) async fn a_modern_call_is_given_up_with_its_client(at: At) -> Outcome {
    let gate = Gate::default();
    let never = gate.clone();
    let stage =
        at.answering(move |_| Answer::events([": begun\n\n"]).wait(&never).then(event(&json!({})))).start().await?;
    let mut incoming = stage.post(&modern("read"), call(1, "read", json!({})).to_string()).await?;
    incoming.chunk().await?;
    drop(incoming);
    stage.server.abandoned(1).await;
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert!(told[0].detail()["error"]["message"].as_str().is_some_and(|message| message.contains("broke off")));
    drop(gate);
    Ok(())
}

pub(super) async fn a_client_that_leaves_while_a_policy_thinks_calls_nothing(at: At) -> Outcome {
    let gate = Gate::default();
    let thinking = gate.clone();
    let stage = at.giving(said("x")).deciding(move |_| Ruling::pass().after(&thinking)).start().await?;
    let body = call(1, "read", json!({})).to_string();
    let headers = legacy();
    tokio::select! {
        answered = stage.post(&headers, body) => return Err(format!("{:?}", answered.map(|answer| answer.status)).into()),
        _ = stage.policy.at_least_of("PreToolUse", 1) => {}
    }
    stage.policy.abandoned(1).await;
    gate.open();
    stage.gateway.audited("PreToolUse", "cancelled").await?;
    assert!(!stage.methods().contains(&"tools/call".to_owned()));
    Ok(())
}
