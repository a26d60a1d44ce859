//! Other arguments than those that the client gave, and the schemas that they must fit.

use hookgate::testing::{Received, Ruling};
use serde_json::{Value, json};

use super::stage::{At, Outcome, Plan, answer, call, legacy, said, tool};

/// A server with these pages of tools, of which a policy replaces the arguments.
fn replacing(at: At, pages: &'static [&'static [&'static str]], replacement: &'static str) -> Plan {
    at.server(move |_, request| match request.json()["method"].as_str() {
        Some("tools/list") => at.result(request, &page(pages, request)),
        _ => at.result(request, &said("done")),
    })
    .deciding(move |_| Ruling::modify_raw(replacement))
}

fn page(pages: &[&[&str]], request: &Received) -> Value {
    let number = request.json()["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let tools: Vec<Value> = pages[number].iter().map(|name| tool(name)).collect();
    match number + 1 < pages.len() {
        true => json!({"tools": tools, "nextCursor": (number + 1).to_string()}),
        false => json!({"tools": tools}),
    }
}

pub(super) async fn arguments_are_replaced_and_nothing_else(at: At) -> Outcome {
    let stage = replacing(at, &[&["read"]], r#"{"path":  "/tmp"}"#).start().await?;
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x": 1.0,"name":"read","arguments": {"path":"/etc"} , "_meta":{}}}"#;
    let result = answer(stage.post(&legacy(), body).await?).await?;
    assert_eq!(result["result"], said("done"));
    let last = stage.server.requests().last().cloned().ok_or("no request")?;
    assert_eq!(last.body, body.replace(r#"{"path":"/etc"}"#, r#"{"path":  "/tmp"}"#));
    assert_eq!(last.header("content-length"), last.body.len().to_string());
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!(told[0].detail()["input"], json!({"path": "/tmp"}), "what really ran");
    Ok(())
}

pub(super) async fn missing_arguments_are_put_in(at: At) -> Outcome {
    let stage = replacing(at, &[&["read"]], r#"{"path":"/tmp"}"#).start().await?;
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read"}}"#;
    answer(stage.post(&legacy(), body).await?).await?;
    assert_eq!(stage.policy.asked_of("PreToolUse")[0].detail()["input"], json!({}));
    let last = stage.server.requests().last().ok_or("no request")?.json();
    assert_eq!(last["params"], json!({"name": "read", "arguments": {"path": "/tmp"}}));
    Ok(())
}

pub(super) async fn a_replacement_must_fit_the_schema(at: At) -> Outcome {
    let stage = replacing(at, &[&["read"]], r#"{"path": 7}"#).start().await?;
    let result = stage.ask(&call(1, "read", json!({"path": "a"}))).await?;
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert!(result["result"]["content"][0]["text"].as_str().unwrap_or_default().contains("schema"), "{result}");
    assert_eq!(stage.methods(), ["tools/list"]);
    assert_eq!(stage.gateway.audit().await?[0]["failure"], "schema");
    Ok(())
}

pub(super) async fn a_schema_that_a_client_listed_is_not_asked_for(at: At) -> Outcome {
    let stage = replacing(at, &[&["read"]], r#"{"path": "b"}"#).start().await?;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(stage.ask(&list).await?["result"]["tools"][0]["name"], "read");
    for id in 2..5 {
        stage.ask(&call(id, "read", json!({"path": "a"}))).await?;
    }
    assert_eq!(stage.methods(), ["tools/list", "tools/call", "tools/call", "tools/call"]);
    Ok(())
}

pub(super) async fn a_schema_is_asked_for_over_pages(at: At) -> Outcome {
    let stage = replacing(at, &[&["a"], &["b"], &["read"]], r#"{"path": 7}"#).start().await?;
    let result = stage.ask(&call(1, "read", json!({}))).await?;
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert_eq!(stage.methods(), ["tools/list"; 3]);
    let asked = stage.server.requests()[0].clone();
    assert_eq!(
        (asked.header("mcp-session-id"), asked.header("mcp-protocol-version")),
        (super::stage::SESSION, "2025-11-25")
    );
    Ok(())
}

/// What a server says of its tools holds until it says that they have changed.
pub(super) async fn changed_tools_are_asked_for_again(at: At) -> Outcome {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let stage = at
        .server(move |number, request| match (request.json()["method"].as_str(), number) {
            (Some("tools/list"), _) => at.result(request, &json!({"tools": [tool("read")]})),
            (Some("change"), _) => at.answer(&changed),
            _ => at.result(request, &said("done")),
        })
        .start()
        .await?;
    stage.ask(&call(1, "read", json!({}))).await?;
    stage.ask(&call(2, "read", json!({}))).await?;
    stage.ask(&json!({"jsonrpc": "2.0", "id": 3, "method": "change"})).await?;
    stage.ask(&call(4, "read", json!({}))).await?;
    assert_eq!(stage.methods(), ["tools/list", "tools/call", "tools/call", "change", "tools/list", "tools/call"]);
    Ok(())
}
