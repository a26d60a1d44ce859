//! One stage for every scenario: a scripted MCP server, a policy, and hookgate between a client and the server.

use std::sync::Arc;

use bytes::Bytes;
use hookgate::config::Config;
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::host::pingora::Proxy;
use hookgate::limits::Limits;
use hookgate::testing::{Answer, Client, Envelope, Hook, Incoming, Message, Model, Policy, Received, Ruling, document};
use hookgate::{BoxError, Hookgate, Route};
use http::Method;
use serde_json::{Value, json};

use crate::scenario::LayerHost;
pub(super) use crate::suite::{Host, Outcome};

/// The session that the scripted server gives.
pub(super) const SESSION: &str = "mcp-session-1";

/// One run of a scenario: on which host, and whether results come as events.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) host: Host,
    pub(super) stream: bool,
}

type Script = Box<dyn Fn(usize, &Received) -> Answer + Send + Sync>;
type Decide = Box<dyn Fn(&Envelope) -> Ruling + Send + Sync>;
type MakeHook = Box<dyn Fn(&Policy) -> Hook>;

/// A stage that is not set up yet.
pub(super) struct Plan {
    at: At,
    script: Script,
    decide: Decide,
    hooks: Vec<MakeHook>,
    upstream: Option<String>,
    limits: Limits,
    model: Option<Vec<Message>>,
}

/// Everything running. Dropping it ends everything.
pub(super) struct Stage {
    pub(super) server: Model,
    pub(super) policy: Policy,
    /// Where the model is reached, if there is one; it ends with the stage.
    pub(super) model_url: String,
    _model: Model,
    url: String,
    running: Running,
}

enum Running {
    /// The hosts are held so that they end with the stage.
    Layer {
        _hosts: [LayerHost; 2],
        core: Hookgate,
    },
    Proxy(Proxy),
}

impl At {
    /// A stage whose server answers as the closure says, with the handlers that see all of a call.
    pub(super) fn server(self, script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Plan {
        let plan = Plan {
            at: self,
            script: Box::new(script),
            decide: Box::new(|_| Ruling::pass()),
            hooks: Vec::new(),
            upstream: None,
            limits: Limits::default(),
            model: None,
        };
        ["PreToolUse", "PostToolUse", "PostToolUseFailure"].into_iter().fold(plan, Plan::hook)
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
    /// One more handler, of that event.
    pub(super) fn hook(mut self, event: &'static str) -> Self {
        self.hooks.push(Box::new(move |policy| policy.hook(event)));
        self
    }

    /// Only this handler.
    pub(super) fn only(mut self, hook: impl Fn(&Policy) -> Hook + 'static) -> Self {
        self.hooks = vec![Box::new(hook)];
        self
    }

    /// And this handler.
    pub(super) fn also(mut self, hook: impl Fn(&Policy) -> Hook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// No handler.
    pub(super) fn no_hooks(mut self) -> Self {
        self.hooks.clear();
        self
    }

    /// How the policy decides about calls; it passes everything otherwise.
    pub(super) fn deciding(mut self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        self.decide = Box::new(move |asked| match asked.event() {
            "PreToolUse" => decide(asked),
            _ => Ruling::pass(),
        });
        self
    }

    /// Sends calls to another place than the server.
    pub(super) fn upstream(mut self, url: &str) -> Self {
        self.upstream = Some(url.to_owned());
        self
    }

    /// Has a route to a model, too, which gives these answers.
    pub(super) fn model<const N: usize>(mut self, answers: [Message; N]) -> Self {
        self.model = Some(answers.into());
        self
    }

    /// Changes limits.
    pub(super) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Starts everything.
    pub(super) async fn start(self) -> Result<Stage, BoxError> {
        let server = Model::answering(self.script).await?;
        let policy = Policy::start(self.decide).await?;
        let hooks = document(self.hooks.iter().map(|make| make(&policy)));
        let upstream = self.upstream.unwrap_or_else(|| server.url());
        let model = Model::scripted(self.model.unwrap_or_default()).await?;
        let (url, model_url, running) = match self.at.host {
            Host::Layer => {
                let hooks = HookSet::builder()
                    .document("hooks.json", &hooks)
                    .allowed_hosts(["127.0.0.1"])
                    .allow_insecure_loopback(true)
                    .build()?;
                let core = Hookgate::builder().hooks(hooks).limits(self.limits);
                let core = core.transport(Arc::new(HyperTransport::new())).build();
                let host = LayerHost::start(&core, Route::mcp("tools", "files"), &upstream, None).await?;
                let model = LayerHost::start(&core, Route::model("model"), &model.url(), None).await?;
                (host.url(), model.url(), Running::Layer { _hosts: [host, model], core })
            }
            Host::Proxy => {
                let folder = tempfile::tempdir()?;
                let file = folder.path().join("hookgate.toml");
                std::fs::write(folder.path().join("hooks.json"), hooks)?;
                std::fs::write(&file, configuration(&upstream, &model.url(), &self.limits))?;
                let proxy = Proxy::start(Config::load(Some(&file), [])?)?;
                let address = proxy.addresses().first().ok_or("the proxy has no address")?;
                (format!("http://{address}/mcp/files"), format!("http://{address}/model"), Running::Proxy(proxy))
            }
        };
        Ok(Stage { server, policy, model_url, _model: model, url, running })
    }
}

fn configuration(upstream: &str, model: &str, limits: &Limits) -> String {
    format!(
        r#"
[server]
listen = ["127.0.0.1:0"]
shutdown_grace = "1s"

[hooks]
documents = ["hooks.json"]
allowed_hosts = ["127.0.0.1"]
allow_insecure_loopback = true

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
upstream = "{model}"

[limits]
max_request_bytes = {}
max_gated_bytes = {}
"#,
        limits.max_request_bytes, limits.max_gated_bytes,
    )
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

    /// The audit so far, as its JSON records.
    pub(super) async fn audit(&self) -> Result<Vec<Value>, BoxError> {
        let page = match &self.running {
            Running::Layer { core, .. } => serde_json::to_value(core.audit().all(&Default::default()))?,
            Running::Proxy(proxy) => {
                let address = proxy.addresses().first().ok_or("the proxy has no address")?;
                let answer = Client::new(&format!("http://{address}")).get("/hookgate/v1/audit").await?;
                serde_json::from_slice(&answer.bytes().await?)?
            }
        };
        Ok(page["items"].as_array().cloned().unwrap_or_default())
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
