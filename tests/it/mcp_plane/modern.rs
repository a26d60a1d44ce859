//! The revision without sessions.

use hookgate::testing::Ruling;
use serde_json::{Value, json};

use super::stage::{At, Outcome, Stage, answer, call, modern, said};

pub(super) async fn a_denial_says_that_it_is_complete(at: At) -> Outcome {
    let stage = at.giving(said("x")).deciding(|_| Ruling::deny("no")).start().await?;
    let denied = stage.ask_modern("read", &call("q", "read", json!({}))).await?;
    assert_eq!(denied["result"]["resultType"], "complete");
    assert_eq!((&denied["id"], &denied["result"]["isError"]), (&json!("q"), &json!(true)));
    Ok(())
}

/// What headers say is what others may have routed by: a call whose body says something else is refused before anyone is
/// asked.
pub(super) async fn headers_and_body_must_agree(at: At) -> Outcome {
    let stage = at.giving(said("x")).start().await?;
    let body = call("q", "read", json!({})).to_string();
    for (name, value) in
        [("mcp-name", "write"), ("mcp-method", "tools/list"), ("mcp-name", "=?base64?!?="), ("mcp-name", "")]
    {
        let mut headers = modern("read");
        headers.retain(|(header, _)| *header != name);
        if !value.is_empty() {
            headers.push((name, value));
        }
        let incoming = stage.post(&headers, body.clone()).await?;
        assert_eq!(incoming.status, 400, "{name}: {value}");
        let refused = answer(incoming).await?;
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32020), &json!("q")));
        assert!(refused["error"]["message"].as_str().unwrap_or_default().contains(name), "{refused}");
    }
    assert!(stage.server.requests().is_empty() && stage.policy.asked().is_empty());
    let encoded = [("mcp-name", "=?base64?cmVhZA==?=")];
    let mut headers = modern("read");
    headers.retain(|(header, _)| *header != "mcp-name");
    headers.extend(encoded);
    assert_eq!(answer(stage.post(&headers, body).await?).await?["result"], said("x"));
    Ok(())
}

pub(super) async fn mirrored_headers_follow_the_arguments(at: At) -> Outcome {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}, "zone": {"type": "integer", "x-mcp-header": "Zone"}}});
    let stage = at
        .server(move |_, request| match request.json()["method"].as_str() {
            Some("tools/list") => at.result(request, &json!({"tools": [{"name": "read", "inputSchema": schema}]})),
            _ => at.result(request, &said("done")),
        })
        .deciding(|_| Ruling::modify(json!({"region": "Zürich"})))
        .start()
        .await?;
    let mut headers = modern("read");
    headers.extend([("mcp-param-region", "us"), ("mcp-param-zone", "1"), ("mcp-param-other", "kept")]);
    let mut message = call("q", "read", json!({"region": "us", "zone": 1}));
    message["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    stage.post(&headers, message.to_string()).await?.bytes().await?;
    let requests = stage.server.requests();
    let (list, last) = (&requests[0], &requests[1]);
    assert_eq!(
        (list.header("mcp-method"), list.header("mcp-name"), list.header("mcp-param-region")),
        ("tools/list", "", "")
    );
    assert_eq!(list.json()["params"]["_meta"], message["params"]["_meta"]);
    assert_eq!(last.json()["params"]["arguments"], json!({"region": "Zürich"}));
    assert_eq!(last.header("mcp-param-region"), "=?base64?WsO8cmljaA==?=");
    assert_eq!((last.header("mcp-param-zone"), last.header("mcp-param-other")), ("", "kept"));
    Ok(())
}

/// A server that asks twice for something before it is done.
async fn asking(at: At, decide: impl Fn() -> Ruling + Send + Sync + 'static) -> Result<Stage, hookgate::BoxError> {
    at.server(move |_, request| {
        let json = request.json();
        if json["method"] == "tools/list" {
            return at.result(request, &json!({"tools": []}));
        }
        let asks = |state: &str| {
            json!({"resultType": "input_required", "requestState": state,
                "inputRequests": {"k": {"method": "elicitation/create", "params": {}}}})
        };
        at.result(
            request,
            &match json["params"]["requestState"].as_str() {
                None => asks("one"),
                Some("one") => asks("two"),
                Some(_) => json!({"resultType": "complete", "content": []}),
            },
        )
    })
    .deciding(move |_| decide())
    .start()
    .await
}

fn round(id: u32, state: &str) -> Value {
    let mut message = call(id, "read", json!({"path": "a"}));
    message["params"]["requestState"] = json!(state);
    message["params"]["inputResponses"] = json!({"k": {"action": "accept"}});
    message
}

/// The client repeats the call as it made it, with what the server wants to know: the decision of the first round holds.
pub(super) async fn rounds_are_one_call(at: At) -> Outcome {
    let stage = asking(at, || Ruling::modify(json!({"path": "b"})).context("told once")).await?;
    let first = stage.ask_modern("read", &call(1, "read", json!({"path": "a"}))).await?;
    assert_eq!(first["result"]["resultType"], "input_required");
    stage.ask_modern("read", &round(2, "one")).await?;
    let last = stage.ask_modern("read", &round(3, "two")).await?;
    assert_eq!(last["result"]["content"].as_array().map_or(0, Vec::len), 1, "the context stands beside the result");
    let calls: Vec<Value> =
        (0..4).map(|number| stage.request(number)).filter(|json| json["method"] == "tools/call").collect();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|call| call["params"]["arguments"] == json!({"path": "b"})), "{calls:?}");
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 1);
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].json()["toolCallId"], stage.policy.asked_of("PreToolUse")[0].json()["toolCallId"]);
    Ok(())
}

/// Nobody gets past a policy by pretending that it was asked: other arguments, another state, a state that was used.
pub(super) async fn a_round_that_nobody_decided_is_decided(at: At) -> Outcome {
    let stage = asking(at, Ruling::pass).await?;
    stage.ask_modern("read", &round(1, "one")).await?;
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 1, "a state that hookgate never saw");
    let mut other = round(2, "two");
    other["params"]["arguments"] = json!({"path": "/etc"});
    stage.ask_modern("read", &other).await?;
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 2, "other arguments");
    stage.ask_modern("read", &round(3, "two")).await?;
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 2, "a round of the first call");
    stage.ask_modern("read", &round(4, "two")).await?;
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 3, "a state that was used");
    Ok(())
}
