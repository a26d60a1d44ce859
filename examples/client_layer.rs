//! The layer on the client side: around the HTTP client of an agent, in the agent's own process.
//!
//! The policy is asked over a transport of the process itself, so that no second service is needed. The model is
//! scripted, so that this runs anywhere: `cargo run --example client_layer --features test-util`.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hookgate::dispatch::{AnswerBody, HandlerAnswer, HandlerTransport, TransportError};
use hookgate::hooks::HookSet;
use hookgate::testing::{Message, Model};
use hookgate::{Body, BoxError, HookLayer, Hookgate, Route};
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tower::{Layer, ServiceExt};

const HOOKS: &str = r#"{"version": 1, "hooks": {"PreToolUse": [
    {"id": "shell", "type": "http", "url": "https://policy.internal/", "matcher": ["bash"]}
]}}"#;

/// A policy in the same process: handlers are reached by a function call.
struct InProcess;

impl HandlerTransport for InProcess {
    fn send(&self, request: Request<Bytes>, _: usize) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
        let asked: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let answer = match asked["detail"]["input"]["command"].as_str() {
            Some(command) if command.starts_with("ls") => json!({"schemaVersion": 1, "outcome": "pass"}),
            _ => json!({"schemaVersion": 1, "outcome": "modify", "replacement": {"command": "ls"}}),
        };
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let body = AnswerBody::Complete(answer.to_string().into());
        Box::pin(async move { Ok(HandlerAnswer { status: StatusCode::OK, headers, body }) })
    }
}

/// Sends one request to the model and shows the call that the agent gets.
pub async fn run() -> Result<(), BoxError> {
    let model = Model::scripted([Message::new("msg_1").tool("toolu_1", "bash", r#"{"command": "rm -rf ."}"#)]).await?;
    let hooks =
        HookSet::builder().document("hooks.json", HOOKS.as_bytes()).allowed_hosts(["policy.internal"]).build()?;
    let gate = Hookgate::builder().hooks(hooks).transport(Arc::new(InProcess)).build();

    let http = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let http = HookLayer::new(gate, Route::model("anthropic")).layer(http);

    let body = json!({
        "model": "claude-test",
        "max_tokens": 1024,
        "tools": [{"name": "bash", "input_schema": {"type": "object", "required": ["command"]}}],
        "messages": [{"role": "user", "content": "Clean up."}],
    });
    let request = Request::post(format!("{}/v1/messages", model.url()))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body.to_string()))?;
    let answer = http.oneshot(request).await?.into_body().collect().await?.to_bytes();
    let answer: Value = serde_json::from_slice(&answer)?;

    assert_eq!(answer["content"][0]["input"], json!({"command": "ls"}));
    println!("the agent is to run: {}", answer["content"][0]["input"]);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await
}
