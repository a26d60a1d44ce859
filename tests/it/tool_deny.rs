//! `[tools] deny` on routes to MCP servers, against both hosts: what is denied is not listed, and is not there to be called.

use hookgate::testing::{Answer, Client, Model, Received};
use hookgate::{BoxError, Route};
use serde_json::{Value, json};

use crate::hosts::{Gateway, Plan};
use crate::suite::Host;

const LIST: &str =
    r#"{"tools": [{"name": "read", "inputSchema": {"type": "object"}},  {"name": "wipe"}, {"name": "write"}]}"#;

/// An MCP server that answers as its client would like it to: `?stream` with events.
fn answer(request: &Received) -> Answer {
    let asked = request.json();
    let id = if request.method == "GET" { json!(7) } else { asked["id"].clone() };
    let result = if asked["method"] == "tools/call" { r#"{"content": []}"# } else { LIST };
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    match request.uri.query() {
        Some("stream") => Answer::events(["event: message\nid: 1\ndata: ".to_owned() + &text + "\n\n"]),
        Some("refuse") => Answer::json(401, "who are you?").header("x-why", "login"),
        _ => Answer::json(200, text),
    }
}

struct Stage {
    server: Model,
    client: Client,
    gateway: Gateway,
}

/// The server behind a hookgate that denies these tools.
async fn denying(host: Host, denied: &[&'static str]) -> Result<Stage, BoxError> {
    let plan = Plan::new(host, (), |_, request| answer(request));
    let (cast, ()) = denied.iter().fold(plan, |plan, tool| plan.denied(tool)).cast().await?;
    let upstream = &cast.upstream;
    let gateway = match host {
        Host::Layer => Gateway::layer(cast.core()?.build(), [(Route::mcp("tools", "files"), upstream)], None).await?,
        Host::Proxy => Gateway::proxy(cast.config(&format!(
            r#"
[[routes]]
name = "tools"
kind = "mcp"
server = "files"
path_prefix = "/"
upstream = "{upstream}"
"#
        ))?)?,
    };
    Ok(Stage { server: cast.server, client: Client::new(&gateway.url(0, "")), gateway })
}

impl Stage {
    async fn ask(&self, path: &str, body: &str) -> Result<(u16, String), BoxError> {
        let headers = [("accept", "application/json, text/event-stream"), ("mcp-session-id", "s")];
        let answer = self.client.post(path, &headers, body.to_owned()).await?;
        let status = answer.status.as_u16();
        Ok((status, String::from_utf8(answer.bytes().await?.to_vec())?))
    }

    async fn list(&self, path: &str) -> Result<String, BoxError> {
        Ok(self.ask(path, r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#).await?.1)
    }

    async fn call(&self, tool: &str) -> Result<(u16, String), BoxError> {
        let call = r#"{"jsonrpc":"2.0","id":"q-\u0031","method":"tools/call","params":{"name":"TOOL"}}"#;
        self.ask("/", &call.replace("TOOL", tool)).await
    }
}

/// The names in an answer to a list, in which all else is as it came.
fn names(answer: &str) -> Vec<String> {
    let text = answer.trim_end().rsplit("data: ").next().unwrap();
    let list: Value = serde_json::from_str(text).unwrap();
    assert_eq!(list["id"], 7, "{answer}");
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn denied_tools_are_hidden(stage: Stage) -> Result<(), BoxError> {
    for path in ["/", "/?stream"] {
        assert_eq!(names(&stage.list(path).await?), ["read"], "{path}");
    }
    // A stream that is resumed brings what another request asked for.
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", "s"), ("last-event-id", "0")];
    let resumed = stage.client.send(http::Method::GET, "/?stream", &headers, bytes::Bytes::new()).await?;
    assert_eq!(names(std::str::from_utf8(&resumed.bytes().await?)?), ["read"]);
    // An error is no list, whatever it looks like.
    let refused = stage.ask("/?refuse", r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#).await?;
    assert_eq!(refused, (401, "who are you?".to_owned()));
    Ok(())
}

async fn denied_tools_are_not_there(stage: Stage) -> Result<(), BoxError> {
    for tool in ["wipe", "write"] {
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":"q-\u0031","error":{{"code":-32602,"message":"Unknown tool: {tool}"}}}}"#
        );
        assert_eq!(stage.call(tool).await?, (200, expected));
    }
    assert!(stage.server.requests().is_empty());
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe"}},
        {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read"}}]"#;
    let (_, answers) = stage.ask("/", batch).await?;
    assert!(answers.contains("Unknown tool: wipe") && stage.server.requests().is_empty(), "{answers}");
    let told = stage.ask("/", r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"wipe"}}"#).await?;
    assert!(told.0 == 400 && told.1.contains("needs an id") && stage.server.requests().is_empty(), "{told:?}");
    assert!(stage.call("read").await?.1.contains("content"));
    for record in stage.gateway.audit().await? {
        assert_eq!((&record["outcome"], &record["plane"]), (&json!("deny"), &json!("tool")), "{record}");
        assert_eq!(record["handlerId"], Value::Null);
    }
    Ok(())
}

#[tokio::test]
async fn the_layer_hides_what_is_denied() -> Result<(), BoxError> {
    denied_tools_are_hidden(denying(Host::Layer, &["wipe", "mcp__files__write", "mcp__other__read"]).await?).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_hides_what_is_denied() -> Result<(), BoxError> {
    denied_tools_are_hidden(denying(Host::Proxy, &["wipe", "mcp__files__write", "mcp__other__read"]).await?).await
}

#[tokio::test]
async fn the_layer_has_nothing_to_call_that_is_denied() -> Result<(), BoxError> {
    let stage = denying(Host::Layer, &["wipe", "mcp__files__write"]).await?;
    denied_tools_are_not_there(stage).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_has_nothing_to_call_that_is_denied() -> Result<(), BoxError> {
    denied_tools_are_not_there(denying(Host::Proxy, &["wipe", "mcp__files__write"]).await?).await
}

#[tokio::test]
async fn what_is_not_denied_is_listed_as_it_came() -> Result<(), BoxError> {
    let stage = denying(Host::Layer, &["mcp__other__wipe"]).await?;
    assert_eq!(stage.list("/").await?, format!(r#"{{"jsonrpc":"2.0","id":7,"result":{LIST}}}"#));
    Ok(())
}
