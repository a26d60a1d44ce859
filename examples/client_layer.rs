//! Hooks within an agent's own process: `HookLayer` around the agent's HTTP client, without any proxy.
//!
//! ```text
//! ANTHROPIC_API_KEY=… cargo run --example client_layer -- https://api.anthropic.com hooks.json "Note that I like tea."
//! ```
//!
//! The agent is a small one: it sends the conversation, runs the one tool that it has, and goes on until the model asks
//! for no more. It knows nothing of hooks; a call that a policy denies never gets to it.

use std::sync::Arc;

use bytes::Bytes;
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::{HookErrors, HookSet};
use hookgate::{Body, BoxError, HookLayer, HookService, Hookgate, Route};
use http::{HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tower::{Layer, ServiceExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [base, document, prompt] = arguments.as_slice() else {
        return Err("usage: client_layer MODEL_API HOOK_DOCUMENT PROMPT".into());
    };
    let gate = Hookgate::builder()
        .hooks(hooks(document, &std::fs::read(document)?)?)
        .transport(Arc::new(HyperTransport::new()))
        .build();
    #[expect(clippy::disallowed_methods, reason = "the ban keeps the library's tests apart; this is a program")]
    let key = std::env::var("ANTHROPIC_API_KEY")?;
    let mut agent = Agent::new(gate, base, &key)?;
    println!("{}", agent.prompt(prompt).await?);
    println!("notes: {:?}", agent.notes);
    Ok(())
}

/// The handlers of one document, which may be on this machine only.
pub fn hooks(source: &str, document: &[u8]) -> Result<HookSet, HookErrors> {
    HookSet::builder().allowed_hosts(["127.0.0.1"]).allow_insecure_loopback(true).document(source, document).build()
}

type HttpsClient = Client<HttpsConnector<HttpConnector>, Body>;

/// An agent that can take notes.
pub struct Agent {
    http: HookService<HttpsClient>,
    url: String,
    key: HeaderValue,
    history: Vec<Value>,
    /// What it has noted.
    pub notes: Vec<String>,
}

impl Agent {
    /// An agent of the model API at that address, under the hooks of `gate`.
    pub fn new(gate: Hookgate, base: &str, key: &str) -> Result<Agent, BoxError> {
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
            .https_or_http()
            .enable_all_versions()
            .build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        // All that hookgate takes: the client is wrapped once, and used as before.
        let http = HookLayer::new(gate, Route::model("anthropic")).layer(client);
        let (url, mut key) = (format!("{base}/v1/messages"), HeaderValue::from_str(key)?);
        key.set_sensitive(true);
        Ok(Agent { http, url, key, history: Vec::new(), notes: Vec::new() })
    }

    /// Says something to the model and runs its tools until it asks for no more; its last words.
    pub async fn prompt(&mut self, text: &str) -> Result<String, BoxError> {
        self.history.push(json!({"role": "user", "content": text}));
        loop {
            let answer = self.ask().await?;
            let blocks = answer["content"].as_array().ok_or_else(|| format!("no message: {answer}"))?;
            let results: Vec<Value> = blocks.iter().filter_map(|block| self.run(block)).collect();
            self.history.push(json!({"role": "assistant", "content": blocks}));
            if results.is_empty() {
                return Ok(blocks.iter().filter_map(|block| block["text"].as_str()).collect());
            }
            self.history.push(json!({"role": "user", "content": results}));
        }
    }

    async fn ask(&self) -> Result<Value, BoxError> {
        let body = json!({
            "model": "claude-sonnet-5-5",
            "max_tokens": 1024,
            "messages": self.history,
            "tools": [{
                "name": "note",
                "description": "Keeps a note.",
                "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
            }],
        });
        let request = Request::post(&self.url)
            .header("content-type", "application/json")
            .header("anthropic-version", "2023-06-01")
            .header("x-api-key", self.key.clone())
            .body(Full::new(Bytes::from(body.to_string())))?;
        let answer = self.http.clone().oneshot(request).await?.into_body().collect().await?;
        Ok(serde_json::from_slice(&answer.to_bytes())?)
    }

    /// Runs a block of an answer if it is a call; the result as the model reads it.
    fn run(&mut self, block: &Value) -> Option<Value> {
        if block["type"] != "tool_use" {
            return None;
        }
        let text = block["input"]["text"].as_str().unwrap_or_default();
        self.notes.push(text.to_owned());
        Some(json!({"type": "tool_result", "tool_use_id": block["id"], "content": "noted"}))
    }
}
