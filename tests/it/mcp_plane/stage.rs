//! One stage for every scenario: a scripted MCP server, a policy, and hookgate between a client and the server.

use bytes::Bytes;
use hookgate::testing::{Answer, Client, Envelope, Incoming, Message, Model, Policy, Received, Ruling};
use hookgate::{BoxError, Route};
use http::Method;
use serde_json::{Value, json};

use crate::hosts::{self, Gateway};
pub(super) use crate::suite::{Host, Outcome};

/// The session that the scripted server gives.
pub(super) const SESSION: &str = "mcp-session-1";

/// One run of a scenario: on which host, and whether results come as events.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) host: Host,
    pub(super) stream: bool,
}

/// A stage that is not set up yet, with the answers of a model that has a route, too.
pub(super) type Plan = hosts::Plan<Vec<Message>>;

/// Everything running. Dropping it ends everything.
pub(super) struct Stage {
    pub(super) server: Model,
    pub(super) policy: Policy,
    /// Where the model is reached, if there is one; it ends with the stage.
    pub(super) model_url: String,
    _model: Model,
    url: String,
    pub(super) gateway: Gateway,
}

impl At {
    /// A stage whose server answers as the closure says, with the handlers that see all of a call.
    pub(super) fn server(self, script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Plan {
        Plan::new(self.host, Vec::new(), script).hooks(["PreToolUse", "PostToolUse", "PostToolUseFailure"])
    }

    /// A stage whose server knows of no tools, and answers calls as the closure says.
    pub(super) fn answering(self, script: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Plan {
        self.server(move |_, request| match request.json()["method"].as_str() {
            Some("tools/list") => self.result(request, &json!({"tools": []})),
            _ => script(request),
        })
    }

    /// A stage whose server gives this result to every call, and a list with the tool `read`.
    pub(super) fn giving(self, result: Value) -> Plan {
        self.server(move |_, request| match request.json()["method"].as_str() {
            Some("tools/list") => self.result(request, &json!({"tools": [tool("read")]})),
            _ => self.result(request, &result),
        })
    }

    /// An answer with that result, as JSON or as an event.
    pub(super) fn result(self, request: &Received, result: &Value) -> Answer {
        self.answer(&json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result}))
    }

    /// An answer with that message.
    pub(super) fn answer(self, message: &Value) -> Answer {
        match self.stream {
            true => Answer::events([event(message)]),
            false => Answer::json(200, message.to_string()),
        }
    }
}

/// A message as an event.
pub(super) fn event(message: &Value) -> String {
    format!("event: message\nid: 7\ndata: {message}\n\n")
}

/// A tool as lists have it: it takes a path.
pub(super) fn tool(name: &str) -> Value {
    json!({"name": name, "description": "d", "inputSchema": {
        "type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": false}})
}

/// A result with one text.
pub(super) fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A call as clients write it.
pub(super) fn call(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    let id: Value = id.into();
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

impl Plan {
    /// How the policy decides about calls; it passes everything otherwise.
    pub(super) fn deciding(self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        self.policy_on("PreToolUse", decide)
    }

    /// Has the model give these answers.
    pub(super) fn model<const N: usize>(mut self, answers: [Message; N]) -> Self {
        self.own = answers.into();
        self
    }

    /// Starts everything.
    pub(super) async fn start(self) -> Result<Stage, BoxError> {
        let (cast, answers) = self.cast().await?;
        let model = Model::scripted(answers).await?;
        let (upstream, model_upstream) = (&cast.upstream, &model.url());
        let gateway = match cast.host {
            Host::Layer => {
                let tools = (Route::mcp("tools", "files"), &**upstream);
                let model = (Route::model("model"), &**model_upstream);
                Gateway::layer(cast.core()?.build(), [tools, model], None).await?
            }
            Host::Proxy => Gateway::proxy(cast.config(&format!(
                r#"
[[routes]]
name = "tools"
kind = "mcp"
server = "files"
path_prefix = "/mcp/files"
upstream = "{upstream}"

[[routes]]
name = "model"
kind = "model"
path_prefix = "/model"
upstream = "{model_upstream}"
"#
            ))?)?,
        };
        let (url, model_url) = (gateway.url(0, "/mcp/files"), gateway.url(1, "/model"));
        Ok(Stage { server: cast.server, policy: cast.policy, model_url, _model: model, url, gateway })
    }
}

/// The headers of a revision.
pub(super) fn legacy() -> Vec<(&'static str, &'static str)> {
    vec![
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
        ("mcp-session-id", SESSION),
    ]
}

/// The headers of a modern call.
pub(super) fn modern(name: &'static str) -> Vec<(&'static str, &'static str)> {
    vec![
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", name),
    ]
}

impl Stage {
    fn client(&self) -> Client {
        Client::new(&self.url)
    }

    /// Posts a message as it is written.
    pub(super) async fn post(&self, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Result<Incoming, BoxError> {
        self.client().post("", headers, body).await
    }

    /// Any other request.
    pub(super) async fn send(&self, method: Method, headers: &[(&str, &str)]) -> Result<Incoming, BoxError> {
        self.send_with(method, headers, "").await
    }

    /// Any other request with a body.
    pub(super) async fn send_with(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: &'static str,
    ) -> Result<Incoming, BoxError> {
        self.client().send(method, "", headers, Bytes::from_static(body.as_bytes())).await
    }

    /// The answer to a message of a legacy session.
    pub(super) async fn ask(&self, message: &Value) -> Result<Value, BoxError> {
        answer(self.post(&legacy(), message.to_string()).await?).await
    }

    /// The answer to a modern call.
    pub(super) async fn ask_modern(&self, name: &'static str, message: &Value) -> Result<Value, BoxError> {
        answer(self.post(&modern(name), message.to_string()).await?).await
    }

    /// A request that the server got, as JSON.
    pub(super) fn request(&self, number: usize) -> Value {
        self.server.requests().get(number).map(|request| request.json()).unwrap_or_default()
    }

    /// What methods the server was asked.
    pub(super) fn methods(&self) -> Vec<String> {
        let requests = self.server.requests();
        requests.iter().map(|request| request.json()["method"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// The message of an answer, in whichever form it comes.
pub(super) async fn answer(mut incoming: Incoming) -> Result<Value, BoxError> {
    let media = incoming.headers.get("content-type").and_then(|media| media.to_str().ok()).unwrap_or_default();
    if media.starts_with("text/event-stream") {
        return Ok(incoming.event().await?.ok_or("a stream without a message")?.json());
    }
    Ok(serde_json::from_slice(&incoming.bytes().await?)?)
}
