//! What came of calls.

use hookgate::testing::{Answer, Gate};
use serde_json::{Value, json};

use super::stage::{Plan, Stage};
use crate::away::Away;
use crate::suite::{Host, Outcome};

fn observing(host: Host) -> Plan {
    Plan::on(host).hook(|policy| policy.hook("PostToolUse")).hook(|policy| policy.hook("PostToolUseFailure"))
}

/// The detail of the one event that was told.
async fn told(stage: &Stage, event: &str) -> Value {
    let told = stage.policy.at_least_of(event, 1).await;
    assert_eq!(stage.policy.asked().len(), 1);
    told[0].detail().clone()
}

pub(super) async fn what_came_of_a_call_is_told(host: Host) -> Outcome {
    let large = format!("\"{}\"", "x".repeat(100_000));
    for (answer, event, member, expected) in [
        (Answer::json(201, "{\"id\": 1.0}"), "PostToolUse", "result", json!({"id": 1.0})),
        (Answer::json(200, "plain text"), "PostToolUse", "result", json!("plain text")),
        (Answer::events(["data: 1\n\n", "data: 2\n\n"]), "PostToolUse", "result", json!("data: 1\n\ndata: 2\n\n")),
        (Answer::json(404, "{\"no\":\"such\"}"), "PostToolUseFailure", "error", json!({"no": "such"})),
        (
            Answer::json(500, ""),
            "PostToolUseFailure",
            "error",
            json!({"message": "the tool answered 500 Internal Server Error"}),
        ),
        (Answer::json(200, "{\"zip\":true}").gzip(), "PostToolUse", "result", json!({"zip": true})),
        (Answer::json(200, large.clone()), "PostToolUse", "truncated", json!(true)),
    ] {
        let stage = observing(host).answering(move |_, _| answer.clone()).start().await?;
        let read = stage.call("POST", "/v1/charges/ch_1/refund", &[], "{\"amount\":1}").await?;
        assert!(!read.body.is_empty() || read.status == 500);
        let detail = told(&stage, event).await;
        assert_eq!(detail[member], expected, "{event}");
        assert_eq!(detail["toolName"], "refund");
        assert_eq!(detail["input"], json!({"path": {"charge": "ch_1"}, "query": {}, "body": {"amount": 1}}));
    }
    Ok(())
}

pub(super) async fn an_answer_is_not_held_up(host: Host) -> Outcome {
    let gate = Gate::default();
    let waiting = gate.clone();
    let answer = move |_: usize, _: &_| Answer::json(200, "{\"first\":1,").wait(&waiting).then("\"second\":2}");
    let stage = observing(host).answering(answer).start().await?;
    let mut answer = stage.send("GET", "/v1/charges/ch_1", &[], "").await?;
    assert_eq!(answer.chunk().await?.as_deref(), Some(&b"{\"first\":1,"[..]));
    assert!(stage.policy.asked().is_empty());
    gate.open();
    assert_eq!(answer.bytes().await?, "{\"first\":1,\"second\":2}");
    assert_eq!(told(&stage, "PostToolUse").await["result"], json!({"first": 1, "second": 2}));
    Ok(())
}

pub(super) async fn an_answer_that_ends_early_is_a_failure(host: Host) -> Outcome {
    let stage = observing(host).answering(|_, _| Answer::json(200, "{\"first\":").then("1,").cut()).start().await?;
    let answer = stage.send("GET", "/v1/charges/ch_1", &[], "").await?;
    assert!(answer.bytes().await.is_err());
    assert!(told(&stage, "PostToolUseFailure").await["error"]["message"].as_str().unwrap().contains("broke off"));

    let gate = Gate::default();
    let answer = move |_: usize, _: &_| Answer::json(200, "{\"first\":1,").wait(&gate).then("\"second\":2}");
    let stage = observing(host).answering(answer).start().await?;
    let mut answer = stage.send("GET", "/v1/charges/ch_1", &[], "").await?;
    answer.chunk().await?;
    drop(answer);
    assert!(told(&stage, "PostToolUseFailure").await["error"]["message"].as_str().unwrap().contains("client left"));
    Ok(())
}

pub(super) async fn no_answer_is_a_failure(host: Host) -> Outcome {
    let away = Away::new();
    let stage = observing(host).upstream(&format!("http://{}", away.address)).start().await?;
    let sent = stage.call("GET", "/v1/charges/ch_1", &[], "").await;
    match host {
        // The layer gives its inner service's own error, which ends the connection here.
        Host::Layer => assert!(sent.is_err()),
        Host::Proxy => assert_eq!(sent?.status, 502),
    }
    assert!(told(&stage, "PostToolUseFailure").await["error"]["message"].as_str().unwrap().contains("no answer"));
    Ok(())
}
