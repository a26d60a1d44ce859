//! The MCP server over sockets, with JSON-RPC written by hand.

use std::time::Duration;

use hookgate::store::InboxState;
use serde_json::{Value, json};

use super::stage::{Host, SESSION, Stage, session};
use crate::pingora_kit::{Message, Wire};

/// One message of a client.
fn request(message: &Value, headers: &str) -> String {
    let body = message.to_string();
    format!(
        "POST /hookgate/mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn call(id: u32, tool: &str, arguments: Value, meta: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
           "params": {"name": tool, "arguments": arguments, "_meta": meta}})
}

fn named() -> String {
    format!("x-hookgate-session: {SESSION}\r\n")
}

/// The messages in an answer.
fn said(answer: &Message) -> Vec<Value> {
    let data = answer.text().lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).unwrap()).collect()
}

async fn ask(stage: &Stage, message: &Value, headers: &str) -> Vec<Value> {
    let mut wire = stage.wire().await;
    wire.send(request(message, headers)).await;
    let answer = wire.answer().await;
    assert_eq!((answer.status(), answer.header("cache-control")), (200, Some("no-store")), "{}", answer.head);
    said(&answer)
}

/// The result of a call in the session.
async fn run(stage: &Stage, tool: &str, arguments: Value) -> Value {
    ask(stage, &call(1, tool, arguments, json!({})), &named()).await.pop().unwrap()["result"].clone()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

async fn refused(stage: &Stage, tool: &str, arguments: Value, why: &str) {
    let result = run(stage, tool, arguments).await;
    assert!(result["isError"] == true && text(&result).contains(why), "{result}");
}

async fn deliver(stage: &Stage, body: &str) -> String {
    let hook = stage.issue().await;
    assert_eq!(stage.post(&hook, body).await.status(), 200);
    hook.url
}

/// A call that waits, on a connection of its own: its first sign of life was read.
async fn waiting(stage: &Stage, arguments: Value, headers: &str) -> Wire {
    let mut wire = stage.wire().await;
    wire.send(request(&call(7, "await_tmp_hook", arguments, json!({"progressToken": "p"})), headers)).await;
    wire.until("notifications/progress").await.unwrap();
    wire
}

/// Waits until the inbox has a message in that state.
async fn becomes(stage: &Stage, state: InboxState) {
    while !stage.messages().await.iter().any(|message| message.state == state) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn a_client_begins_and_finds_two_tools(host: Host) {
    let stage = Stage::plain(host).await;
    let versions = ["2025-03-26", "2025-06-18", "2025-11-25"];
    for version in versions {
        let params =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let begin = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let mut wire = stage.wire().await;
        wire.send(request(&begin, "")).await;
        let answer = wire.answer().await;
        assert!(answer.header("mcp-session-id").is_some(), "{}", answer.head);
        let result = &said(&answer)[0]["result"];
        assert_eq!((&result["protocolVersion"], &result["serverInfo"]["name"]), (&json!(version), &json!("hookgate")));
        wire.send(request(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), "")).await;
        assert_eq!(wire.answer().await.status(), 202);
    }
    let list = ask(&stage, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}), "").await;
    let tools = list[0]["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["request_tmp_hook", "await_tmp_hook"]);

    let unknown = ask(&stage, &call(1, "other", json!({}), json!({})), &named()).await;
    assert!(unknown[0]["error"]["message"].as_str().unwrap().contains("request_tmp_hook"));
    for method in ["GET", "DELETE"] {
        let mut wire = stage.wire().await;
        wire.send(format!("{method} /hookgate/mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n"))
            .await;
        assert_eq!(wire.answer().await.status(), 405, "{method}");
    }
}

pub(crate) async fn a_callback_is_requested_and_awaited(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = run(&stage, "request_tmp_hook", json!({"purpose": "the build", "ttl_seconds": 60})).await;
    let given = &hook["structuredContent"];
    assert_eq!((&given["session_id"], &given["expires_in_seconds"]), (&json!(SESSION), &json!(60)), "{hook}");
    let url = given["url"].as_str().unwrap().to_owned();

    let mut wire = waiting(&stage, json!({"url": url}), &named()).await;
    let path = url.strip_prefix("https://agents.example.com").unwrap();
    assert_eq!(stage.send(&format!("POST {path} HTTP/1.1"), "all green").await.status(), 200);
    let result = wire.until("\"result\"").await.unwrap() + &wire.until("\n\n").await.unwrap();
    assert!(
        result.contains("\"id\":7") && result.contains("Purpose: the build") && result.contains("all green"),
        "{result}"
    );
    becomes(&stage, InboxState::Taken).await;
    assert!(stage.hooks.take_for_injection(&session()).await.is_empty(), "what was awaited is not told again");
    refused(&stage, "await_tmp_hook", json!({"url": url}), "already").await;
}

pub(crate) async fn the_callback_that_is_named_is_awaited(host: Host) {
    let stage = Stage::plain(host).await;
    let (one, two) = (deliver(&stage, "one").await, deliver(&stage, "Token: 00000000").await);
    let result = run(&stage, "await_tmp_hook", json!({"url": two})).await;
    assert!(text(&result).ends_with("Token: 00000000"), "{result}");
    let three = deliver(&stage, "three").await;
    let result = run(&stage, "await_tmp_hook", json!({})).await;
    assert!(text(&result).ends_with("one"), "without a name it is the first: {result}");
    refused(&stage, "await_tmp_hook", json!({"url": one}), "already").await;
    let token = three.rsplit('/').next().unwrap();
    assert!(text(&run(&stage, "await_tmp_hook", json!({"url": token})).await).ends_with("three"));
}

pub(crate) async fn what_cannot_be_awaited_is_explained(host: Host) {
    let stage = Stage::plain(host).await;
    refused(&stage, "await_tmp_hook", json!({}), "call request_tmp_hook first").await;
    refused(&stage, "await_tmp_hook", json!({"url": "https://agents.example.com/"}), "exactly as request_tmp_hook")
        .await;
    refused(&stage, "await_tmp_hook", json!({"timeout": 5}), "timeout_seconds").await;
    refused(&stage, "request_tmp_hook", json!({"ttl_seconds": "5"}), "ttl_seconds (a whole number)").await;
    let other = hookgate::id::SessionKey { tenant: "default".into(), session: "other".into() };
    let foreign = stage.hooks.issue(&other, None, None).await.unwrap();
    refused(&stage, "await_tmp_hook", json!({"url": foreign.url}), "no such callback").await;
    let revoked = stage.issue().await;
    let hash = stage.hooks.list(&session(), None, 9).await.unwrap()[0].hash.clone();
    stage.hooks.revoke(&session(), &hash).await.unwrap();
    refused(&stage, "await_tmp_hook", json!({"url": revoked.url}), "revoked").await;
    let nobody = ask(&stage, &call(1, "request_tmp_hook", json!({}), json!({})), "").await;
    assert!(nobody[0]["result"]["isError"] == true && text(&nobody[0]["result"]).contains("x-hookgate-session"));
    let ambiguous = hookgate::id::SessionKey { tenant: "team-a".into(), session: SESSION.into() };
    stage.hooks.issue(&ambiguous, None, None).await.unwrap();
    refused(&stage, "request_tmp_hook", json!({}), "tenant").await;
}

pub(crate) async fn a_wait_that_brings_nothing_says_so(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = stage.issue().await;
    let result = run(&stage, "await_tmp_hook", json!({"url": hook.url, "timeout_seconds": 1})).await;
    assert!(result["isError"] == false && text(&result).contains("open until"), "{result}");
}

pub(crate) async fn a_waiting_client_that_leaves_loses_nothing(host: Host) {
    let stage = Stage::plain(host).await;
    // A connection that was closed this moment still takes an answer: then the answer got out, as far as anybody can tell.
    // So the message comes later and later, until the call was over before.
    for pause in [0, 100, 1_000, 4_000] {
        let hook = stage.issue().await;
        drop(waiting(&stage, json!({"url": hook.url}), &named()).await);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        assert_eq!(stage.post(&hook, "late").await.status(), 200);
        if tokio::time::timeout(Duration::from_secs(2), becomes(&stage, InboxState::Waiting)).await.is_ok() {
            let result = run(&stage, "await_tmp_hook", json!({"url": hook.url})).await;
            return assert!(text(&result).ends_with("late"), "{result}");
        }
    }
    panic!("the message was given to nobody");
}

pub(crate) async fn a_call_that_is_given_up_takes_nothing(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = stage.issue().await;
    let headers = |session: &str| format!("{}mcp-session-id: {session}\r\n", named());
    let mut mine = waiting(&stage, json!({"url": hook.url}), &headers("mine")).await;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    let mut wire = stage.wire().await;
    wire.send(request(&cancel, &headers("mine"))).await;
    assert_eq!(wire.answer().await.status(), 202);
    mine.until("given up").await.unwrap();
    assert_eq!(stage.post(&hook, "done").await.status(), 200);
    assert_eq!(stage.messages().await[0].state, InboxState::Waiting);

    // Another client's id of the same number is another call.
    let hook = stage.issue().await;
    let mut other = waiting(&stage, json!({"url": hook.url}), &headers("other")).await;
    wire.send(request(&cancel, &headers("mine"))).await;
    assert_eq!(wire.answer().await.status(), 202);
    assert_eq!(stage.post(&hook, "for the other").await.status(), 200);
    other.until("for the other").await.unwrap();

    // A client says so after it has stopped to listen: what was sent meanwhile is due again.
    becomes(&stage, InboxState::Taken).await;
    wire.send(request(&cancel, &headers("other"))).await;
    assert_eq!(wire.answer().await.status(), 202);
    assert!(stage.messages().await.iter().all(|message| message.state == InboxState::Waiting));
}

pub(crate) async fn a_page_of_another_origin_is_refused(host: Host) {
    let stage = Stage::plain(host).await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (from, to, status) in [
        ("host: localhost", "host: evil.example", 403),
        ("host: localhost", "host: localhost\r\norigin: https://evil.example", 403),
        ("host: localhost", "host: localhost\r\norigin: http://localhost", 200),
        ("host: localhost", "host: 127.0.0.1:80", 200),
        ("host: localhost", "host: agents.example.com", 200),
    ] {
        let mut wire = stage.wire().await;
        wire.send(request(&list, "").replace(from, to)).await;
        assert_eq!(wire.answer().await.status(), status, "{to}");
    }
}

pub(crate) async fn calls_that_wait_end_when_the_host_stops(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = stage.issue().await;
    let mut wire = waiting(&stage, json!({"url": hook.url}), &named()).await;
    tokio::join!(stage.stop(), async { wire.until("hookgate is stopping").await.unwrap() });
}
