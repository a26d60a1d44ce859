//! One stage for every scenario: a scripted model, a policy, and hookgate between them on either host.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use hookgate::callback::{Settings, TmpHooks, TokenKey};
use hookgate::config::Config;
use hookgate::control::{ControlState, Metrics, Readiness, router};
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::host::pingora::Proxy;
use hookgate::limits::Limits;
use hookgate::store::MemoryStore;
use hookgate::testing::{Agent, Answer, Client, Envelope, Hook, Message, Model, Policy, Received, Ruling, document};
use hookgate::{BoxError, Hookgate, OnDeny, Route, Subagent};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::layer::LayerHost;
pub(crate) use crate::suite::{Host, Outcome};

/// The session of a stage's own agent.
pub(crate) const SESSION: &str = "session-1";

/// One run of a scenario: on which host, and whether answers are streamed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) host: Host,
    pub(crate) stream: bool,
}

type Script = Box<dyn Fn(usize, &Received) -> Answer + Send + Sync>;
type Decide = Box<dyn Fn(&Envelope) -> Ruling + Send + Sync>;
type MakeHook = Box<dyn Fn(&Policy) -> Hook>;

/// A stage that is not set up yet.
pub(crate) struct Plan {
    setting: Setting,
    script: Script,
    decide: Decide,
    hooks: Vec<MakeHook>,
    limits: Limits,
    on_deny: OnDeny,
    allow_uninspected: Vec<String>,
    upstream: Option<String>,
    /// Callbacks are offered, and the end of a turn is held this many seconds.
    callbacks: Option<u64>,
}

/// Where callbacks come in, as far as the model is told.
const CALLBACKS: &str = "http://agents.example";

/// Everything running. Dropping it ends everything.
pub(crate) struct Stage {
    pub(crate) url: String,
    pub(crate) model: Model,
    pub(crate) policy: Policy,
    stream: bool,
    running: Running,
}

enum Running {
    /// Held so that it ends with the stage; the core has the audit.
    Layer {
        _host: LayerHost,
        core: Hookgate,
        control: Router,
    },
    Proxy(Proxy),
}

impl Setting {
    /// A stage whose model gives these answers one after another.
    pub(crate) fn model<A: Into<Answer>>(self, answers: impl IntoIterator<Item = A>) -> Plan {
        let answers: Vec<Answer> = answers.into_iter().map(Into::into).collect();
        self.answering(move |number, _| {
            let missing = || Answer::error(500, "api_error", &format!("the script has no answer to request {number}"));
            answers.get(number).cloned().unwrap_or_else(missing)
        })
    }

    /// A stage whose model answers as the closure says.
    pub(crate) fn answering(self, script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Plan {
        Plan {
            setting: self,
            script: Box::new(script),
            decide: Box::new(|_| Ruling::pass()),
            hooks: Vec::new(),
            limits: Limits::default(),
            on_deny: OnDeny::Feedback,
            allow_uninspected: Vec::new(),
            upstream: None,
            callbacks: None,
        }
    }
}

impl Plan {
    /// Handlers of these events, closed where that can be.
    pub(crate) fn hooks<const N: usize>(mut self, events: [&'static str; N]) -> Self {
        for event in events {
            self = self.hook(move |policy| policy.hook(event));
        }
        self
    }

    /// A handler.
    pub(crate) fn hook(mut self, hook: impl Fn(&Policy) -> Hook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// How the policy decides; it passes everything otherwise.
    pub(crate) fn policy(mut self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        self.decide = Box::new(decide);
        self
    }

    /// Changes limits.
    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// An answer ends when all its calls are denied.
    pub(crate) fn on_deny_end(mut self) -> Self {
        self.on_deny = OnDeny::End;
        self
    }

    /// Lets a path pass uninspected.
    pub(crate) fn allow_uninspected(mut self, path: &str) -> Self {
        self.allow_uninspected.push(path.to_owned());
        self
    }

    /// Sends traffic to another place than the model.
    pub(crate) fn upstream(mut self, url: &str) -> Self {
        self.upstream = Some(url.to_owned());
        self
    }

    /// Offers one-time callbacks, and holds the end of a turn so many seconds for them.
    pub(crate) fn callbacks(mut self, hold_stop_seconds: u64) -> Self {
        self.callbacks = Some(hold_stop_seconds);
        self
    }

    /// Starts everything.
    pub(crate) async fn start(mut self) -> Result<Stage, BoxError> {
        let script = std::mem::replace(&mut self.script, Box::new(|_, _| Answer::nothing()));
        let decide = std::mem::replace(&mut self.decide, Box::new(|_| Ruling::pass()));
        let model = Model::answering(script).await?;
        let policy = Policy::start(decide).await?;
        let hooks = document(self.hooks.iter().map(|make| make(&policy)));
        let upstream = self.upstream.clone().unwrap_or_else(|| model.url());
        let (url, running) = match self.setting.host {
            Host::Layer => self.start_layer(&hooks, &upstream).await?,
            Host::Proxy => self.start_proxy(&hooks, &upstream)?,
        };
        Ok(Stage { url, model, policy, stream: self.setting.stream, running })
    }

    async fn start_layer(&self, hooks: &[u8], upstream: &str) -> Result<(String, Running), BoxError> {
        let hooks = HookSet::builder()
            .document("hooks.json", hooks)
            .allowed_hosts(["127.0.0.1"])
            .allow_insecure_loopback(true)
            .build()?;
        let mut core = Hookgate::builder();
        let mut tmp_hooks = None;
        if let Some(seconds) = self.callbacks {
            let settings = Settings::default().base_url(CALLBACKS)?;
            let hooks = TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None);
            core = core.callbacks(hooks.clone(), Duration::from_secs(seconds));
            tmp_hooks = Some(hooks);
        }
        let core = core
            .hooks(hooks)
            .limits(self.limits.clone())
            .transport(Arc::new(HyperTransport::new()))
            .subagents(vec![Subagent {
                tool: "Agent".into(),
                id: "/subagent_type".to_owned(),
                prompt: "/prompt".to_owned(),
            }])
            .build();
        let route = Route::model("model")
            .allow_uninspected(self.allow_uninspected.clone())
            .on_deny(self.on_deny)
            .tmp_hooks(tmp_hooks.is_some());
        let control = router(ControlState {
            core: core.clone(),
            tmp_hooks: tmp_hooks.clone().unwrap_or_else(|| {
                TmpHooks::new(Settings::default(), Arc::new(MemoryStore::new()), TokenKey::random(), None)
            }),
            readiness: Readiness::new(),
            metrics: Metrics::detached(),
        });
        let host = LayerHost::start(&core, route, upstream, tmp_hooks).await?;
        Ok((host.url(), Running::Layer { _host: host, core, control }))
    }

    fn start_proxy(&self, hooks: &[u8], upstream: &str) -> Result<(String, Running), BoxError> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("hookgate.toml");
        std::fs::write(folder.path().join("hooks.json"), hooks)?;
        std::fs::write(&file, self.configuration(upstream))?;
        let proxy = Proxy::start(Config::load(Some(&file), [])?)?;
        let address = proxy.addresses().first().ok_or("the proxy has no address")?;
        Ok((format!("http://{address}/model"), Running::Proxy(proxy)))
    }

    fn configuration(&self, upstream: &str) -> String {
        let limits = &self.limits;
        let on_deny = match self.on_deny {
            OnDeny::Feedback => "feedback",
            OnDeny::End => "end",
        };
        let (tmp_hooks, hold_stop) = (self.callbacks.is_some(), self.callbacks.unwrap_or(0));
        let max_hold = format!("{}ms", limits.max_hold.as_millis());
        format!(
            r#"
[server]
listen = ["127.0.0.1:0"]
shutdown_grace = "1s"

[hooks]
documents = ["hooks.json"]
allowed_hosts = ["127.0.0.1"]
allow_insecure_loopback = true
max_stop_retries = {}
max_deny_rounds = {}

[[routes]]
name = "model"
kind = "model"
path_prefix = "/model"
upstream = "{upstream}"
on_deny = "{on_deny}"
allow_uninspected = {}
tmp_hooks = {tmp_hooks}

[tmp_hooks]
base_url = "{CALLBACKS}"

[delivery]
hold_stop_seconds = {hold_stop}

[[subagents]]
tool = "Agent"
id = "/subagent_type"
prompt = "/prompt"

[limits]
max_request_bytes = {}
max_held_bytes = {}
max_gated_bytes = {}
keepalive_ms = {}
max_hold = "{max_hold}"
"#,
            limits.max_stop_retries,
            limits.max_deny_rounds,
            json!(self.allow_uninspected),
            limits.max_request_bytes,
            limits.max_held_bytes,
            limits.max_gated_bytes,
            limits.keepalive.as_millis(),
        )
    }
}

impl Stage {
    /// An agent in a session of its own, with tools `a`, `b` and `c` that say what they were given.
    pub(crate) fn agent(&self) -> Agent {
        let mut agent = Agent::new(&self.url).streaming(self.stream).session(SESSION);
        for name in ["a", "b", "c"] {
            agent = agent.tool(name, move |input| Ok(format!("{name} ran with {input}")));
        }
        agent
    }

    /// A client for requests that no agent sends.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url)
    }

    /// POSTs to a callback's URL, as far as it leads here.
    pub(crate) async fn call_back(&self, url: &str, body: &'static str) -> Result<http::StatusCode, BoxError> {
        let path = url.strip_prefix(CALLBACKS).ok_or("a callback of another origin")?;
        let origin = self.url.trim_end_matches("/model");
        let answer = Client::new(origin).post(path, &[], body).await?;
        let status = answer.status;
        answer.bytes().await?;
        Ok(status)
    }

    /// What hookgate's MCP server says to a call: its result.
    pub(crate) async fn mcp(&self, tool: &str, arguments: Value, meta: Value) -> Result<Value, BoxError> {
        self.call_mcp("", json!({"name": tool, "arguments": arguments, "_meta": meta})).await
    }

    /// The same for a client that names the session.
    pub(crate) async fn mcp_in(&self, session: &str, tool: &str, arguments: Value) -> Result<Value, BoxError> {
        self.call_mcp(session, json!({"name": tool, "arguments": arguments})).await
    }

    async fn call_mcp(&self, session: &str, params: Value) -> Result<Value, BoxError> {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let request = http::Request::post("/hookgate/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("x-hookgate-session", session);
        let body = match &self.running {
            Running::Layer { control, .. } => {
                let answer = control.clone().oneshot(request.body(axum::body::Body::from(call))?).await?;
                answer.into_body().collect().await?.to_bytes()
            }
            Running::Proxy(proxy) => {
                let address = proxy.addresses().first().ok_or("the proxy has no address")?;
                let headers = [("accept", "application/json, text/event-stream"), ("x-hookgate-session", session)];
                Client::new(&format!("http://{address}")).post("/hookgate/mcp", &headers, call).await?.bytes().await?
            }
        };
        let answer = text(&body);
        let data = answer.lines().rev().find_map(|line| line.strip_prefix("data: ")).ok_or(answer.clone())?;
        Ok(serde_json::from_str::<Value>(data)?["result"].clone())
    }

    /// A request that the model got, as JSON.
    pub(crate) fn request(&self, number: usize) -> Value {
        self.model.requests().get(number).map(|request| request.json()).unwrap_or_default()
    }

    /// The messages of a request that the model got.
    pub(crate) fn messages(&self, number: usize) -> Vec<Value> {
        self.request(number)["messages"].as_array().cloned().unwrap_or_default()
    }

    /// The body of a request that the model got.
    pub(crate) fn body(&self, number: usize) -> Bytes {
        self.model.requests().get(number).map(|request| request.body.clone()).unwrap_or_default()
    }

    /// The audit so far, as its JSON records.
    pub(crate) async fn audit(&self) -> Result<Vec<Value>, BoxError> {
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

    /// Waits until the audit has a record of that event with that outcome.
    pub(crate) async fn audited(&self, event: &str, outcome: &str) -> Result<Value, BoxError> {
        loop {
            let audit = self.audit().await?;
            let found = audit.into_iter().find(|record| record["event"] == event && record["outcome"] == outcome);
            if let Some(record) = found {
                return Ok(record);
            }
            // Records are written behind the traffic, and there is no signal for them.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// An answer with one text.
pub(crate) fn says(id: &str, text: &str) -> Message {
    Message::new(id).text(text)
}

/// The parts of a message that are of one type.
pub(crate) fn parts<'a>(message: &'a Value, kind: &str) -> Vec<&'a Value> {
    message["content"].as_array().into_iter().flatten().filter(|part| part["type"] == kind).collect()
}

/// The result for a call in a message.
pub(crate) fn result_of<'a>(message: &'a Value, call: &str) -> &'a Value {
    parts(message, "tool_result").into_iter().find(|part| part["tool_use_id"] == call).unwrap_or(&Value::Null)
}

/// What was put into a text that is otherwise as it was.
pub(crate) fn inserted(before: &[u8], after: &[u8]) -> Result<String, BoxError> {
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let end = before[start..].iter().rev().zip(after[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    if start + end != before.len() {
        return Err(format!("more than one insertion:\n{}\n{}", text(before), text(after)).into());
    }
    Ok(text(&after[start..after.len() - end]))
}

/// Bytes as text, for messages.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
