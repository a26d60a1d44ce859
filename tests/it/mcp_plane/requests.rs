//! Everything else that clients send.

use hookgate::testing::{Answer, Ruling};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::stage::{At, Outcome, answer, call, legacy, said};
use crate::away::Away;

pub(super) async fn what_cannot_be_read_is_refused(at: At) -> Outcome {
    let stage = at.giving(said("x")).start().await?;
    let huge = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}}"#, "[".repeat(100_000));
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        (huge.as_str(), -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{"name":"read"}}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"read"}}"#, -32600),
    ] {
        let incoming = stage.post(&legacy(), body.to_owned()).await?;
        assert_eq!(incoming.status, 400, "{body}");
        let refused = answer(incoming).await?;
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(code), &Value::Null), "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|message| message.contains("policy")));
    }
    for params in ["{}", "[]", r#"{"name":1}"#, r#"{"name":"a","name":"b"}"#, r#"{"name":"a","arguments":null}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":"q","method":"tools/call","params":{params}}}"#);
        let refused = answer(stage.post(&legacy(), body).await?).await?;
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32602), &json!("q")), "{refused}");
    }
    let incoming = stage.send_with(Method::PUT, &legacy(), "{").await?;
    assert_eq!(incoming.status, 400, "whatever the method");
    let mut packed = legacy();
    packed.push(("content-encoding", "rot13"));
    assert_eq!(stage.post(&packed, "{}").await?.status, 400);
    assert!(stage.server.requests().is_empty());
    Ok(())
}

pub(super) async fn batches_are_refused_where_there_are_none(at: At) -> Outcome {
    let stage = at.giving(said("x")).start().await?;
    let batch = format!("  [{}]", call(1, "read", json!({})));
    let incoming = stage.post(&legacy(), batch).await?;
    assert_eq!(incoming.status, 400);
    let refused = answer(incoming).await?;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null));
    assert!(stage.server.requests().is_empty() && stage.policy.asked().is_empty());
    Ok(())
}

/// 2025-03-26 has batches. Of one with a refused call nothing runs, so that no call runs in another order than it was meant.
pub(super) async fn a_batch_is_decided_call_by_call(at: At) -> Outcome {
    let stage = at
        .server(move |_, request| match request.json() {
            Value::Array(batch) => {
                let answers = batch.iter().map(|one| json!({"jsonrpc": "2.0", "id": one["id"], "result": said("x")}));
                at.answer(&Value::Array(answers.collect()))
            }
            _ => at.result(request, &json!({"tools": []})),
        })
        .deciding(|asked| match asked.tool() {
            "bad" => Ruling::deny("no"),
            "other" => Ruling::modify(json!({"n": 2})),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-03-26")];
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let batch = json!([call(1, "good", json!({})), call("b", "bad", json!({})), note]);
    let refused = answer(stage.post(&headers, batch.to_string()).await?).await?;
    assert_eq!((&refused[0]["id"], &refused[0]["error"]["code"]), (&json!(1), &json!(-32600)));
    assert_eq!((&refused[1]["id"], &refused[1]["result"]["isError"]), (&json!("b"), &json!(true)));
    assert_eq!(refused.as_array().map_or(0, Vec::len), 2);
    assert!(stage.methods().iter().all(|method| method == "tools/list"));

    let batch = json!([call(1, "good", json!({})), call("b", "other", json!({"n": 1}))]);
    let answers = answer(stage.post(&headers, batch.to_string()).await?).await?;
    assert_eq!(answers.as_array().map_or(0, Vec::len), 2);
    let last = stage.server.requests().last().ok_or("no request")?.json();
    assert_eq!((&last[0]["params"]["arguments"], &last[1]["params"]["arguments"]), (&json!({}), &json!({"n": 2})));
    assert_eq!(stage.policy.at_least_of("PostToolUse", 2).await.len(), 2);
    Ok(())
}

pub(super) async fn notifications_and_answers_pass(at: At) -> Outcome {
    let stage = at.server(|_, _| Answer::json(202, "")).start().await?;
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0", "id":5,"result":{"action":"accept"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    ] {
        let incoming = stage.post(&legacy(), body).await?;
        assert_eq!(incoming.status, StatusCode::ACCEPTED);
        assert!(incoming.bytes().await?.is_empty());
        assert_eq!(stage.server.requests().last().ok_or("no request")?.body, body);
    }
    assert!(stage.policy.asked().is_empty());
    Ok(())
}

pub(super) async fn statuses_of_sessions_pass(at: At) -> Outcome {
    let gone = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    let stage = at.server(move |_, _| Answer::json(404, gone).header("x-own", "1")).start().await?;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for (method, body) in [(Method::POST, list), (Method::GET, String::new()), (Method::DELETE, String::new())] {
        let incoming = match method {
            Method::POST => stage.post(&legacy(), body).await?,
            method => stage.send(method, &legacy()).await?,
        };
        assert_eq!(
            (incoming.status, &incoming.headers["x-own"]),
            (StatusCode::NOT_FOUND, &http::HeaderValue::from_static("1"))
        );
        assert_eq!(incoming.bytes().await?, gone);
    }
    // The call was made, and failed.
    stage.ask(&call(1, "read", json!({}))).await?;
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert!(told[0].detail()["error"].to_string().contains("404"), "{:?}", told[0].detail());
    Ok(())
}

pub(super) async fn a_session_begins_and_ends_once(at: At) -> Outcome {
    let stage = at
        .server(move |_, request| match request.json()["method"].as_str() {
            Some("initialize") => at
                .result(request, &json!({"protocolVersion": "2025-11-25"}))
                .header("mcp-session-id", super::stage::SESSION),
            _ => Answer::json(405, ""),
        })
        .hooks(["SessionStart", "SessionEnd"])
        .start()
        .await?;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}).to_string();
    let headers = [("accept", "application/json, text/event-stream")];
    stage.post(&headers, initialize).await?.bytes().await?;
    let started = stage.policy.at_least_of("SessionStart", 1).await;
    assert_eq!(started[0].detail()["source"], "new");
    for _ in 0..2 {
        assert_eq!(stage.send(Method::DELETE, &legacy()).await?.status, 405);
    }
    let ended = stage.policy.at_least_of("SessionEnd", 1).await;
    assert_eq!((ended.len(), ended[0].json()["sessionId"].clone()), (1, started[0].json()["sessionId"].clone()));
    Ok(())
}

pub(super) async fn an_absent_server_is_told_as_a_failure(at: At) -> Outcome {
    let away = Away::new();
    let stage = at.giving(said("x")).upstream(&format!("http://{}", away.address)).start().await?;
    let incoming = stage.post(&legacy(), call("q", "read", json!({})).to_string()).await;
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert!(told[0].detail()["error"]["message"].as_str().is_some_and(|message| message.contains("no answer")));
    // A stack of services gets the error of its own inner service instead.
    if at.host == super::stage::Host::Proxy {
        let incoming = incoming?;
        assert_eq!(incoming.status, 502);
        let refused = answer(incoming).await?;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q"), &json!(-32603)));
    }
    Ok(())
}
