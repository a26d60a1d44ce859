//! One stage for every scenario: a scripted agent, a policy, and hookgate between a client and the agent.

use std::sync::Arc;

use bytes::Bytes;
use hookgate::config::Config;
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::host::pingora::Proxy;
use hookgate::limits::Limits;
use hookgate::testing::{Answer, Client, Envelope, Hook, Incoming, Model, Policy, Received, Ruling, document};
use hookgate::{BoxError, Hookgate, Route};
use serde_json::{Value, json};

use super::dialect::{Dialect, Request};
use crate::scenario::LayerHost;
pub(super) use crate::suite::{Host, Outcome};

/// One run of a scenario: on which host, in which words, and whether answers to messages are streamed.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) host: Host,
    pub(super) dialect: Dialect,
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
    limits: Limits,
    upstream: Option<String>,
    public_origin: Option<&'static str>,
}

/// Everything running. Dropping it ends everything.
pub(super) struct Stage {
    pub(super) agent: Model,
    pub(super) policy: Policy,
    /// Where the route is for clients.
    pub(super) url: String,
    at: At,
    running: Running,
}

enum Running {
    /// The host is held so that it ends with the stage.
    Layer {
        _host: LayerHost,
        core: Hookgate,
    },
    Proxy(Proxy),
}

/// The events that there are on a route to an agent.
pub(super) const EVENTS: [&str; 4] = ["SubagentStart", "TaskStart", "TaskStop", "SubagentStop"];

/// The route's path at the proxy; the layer of these tests takes all paths.
pub(super) const PREFIX: &str = "/agents/billing";

/// What the proxy puts before the paths that are left.
pub(super) const BASE: &str = "/base";

impl At {
    /// A stage whose agent answers as the closure says, with handlers of all events.
    pub(super) fn agent(self, script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Plan {
        let plan = Plan {
            at: self,
            script: Box::new(script),
            decide: Box::new(|_| Ruling::pass()),
            hooks: Vec::new(),
            limits: Limits::default(),
            upstream: None,
            public_origin: None,
        };
        EVENTS.into_iter().fold(plan, |plan, event| plan.hook(move |policy| policy.hook(event)))
    }

    /// A stage whose agent tells these things in its answer to a message: as events, or only the last one.
    pub(super) fn telling(self, values: impl IntoIterator<Item = Value>) -> Plan {
        let values: Vec<Value> = values.into_iter().collect();
        self.agent(move |_, _| self.tell(&values))
    }

    /// An answer to a message that tells these things.
    pub(super) fn tell(self, values: &[Value]) -> Answer {
        match (self.stream, values.last()) {
            (true, _) | (_, None) => self.dialect.events(values),
            (false, Some(last)) => self.dialect.whole(last),
        }
    }

    /// A message with one text.
    pub(super) fn ask(self, text: &str) -> Request {
        self.ask_with(json!([self.dialect.text(text)]), json!({}))
    }

    /// A message with these parts, and members of its own.
    pub(super) fn ask_with(self, parts: Value, more: Value) -> Request {
        self.dialect.send(self.stream, parts, more)
    }
}

impl Plan {
    /// One more handler.
    pub(super) fn hook(mut self, hook: impl Fn(&Policy) -> Hook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Only this handler.
    pub(super) fn only(mut self, hook: impl Fn(&Policy) -> Hook + 'static) -> Self {
        self.hooks.clear();
        self.hook(hook)
    }

    /// No handler.
    pub(super) fn no_hooks(mut self) -> Self {
        self.hooks.clear();
        self
    }

    /// How the policy decides about delegations; it passes everything otherwise.
    pub(super) fn deciding(mut self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        self.decide = Box::new(move |asked| match asked.event() {
            "SubagentStart" => decide(asked),
            _ => Ruling::pass(),
        });
        self
    }

    /// How the policy answers to everything.
    pub(super) fn policy(mut self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        self.decide = Box::new(decide);
        self
    }

    /// Changes limits.
    pub(super) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Sends requests to another place than the agent.
    pub(super) fn upstream(mut self, url: &str) -> Self {
        self.upstream = Some(url.to_owned());
        self
    }

    /// The route's own name for its origin.
    pub(super) fn public_origin(mut self, origin: &'static str) -> Self {
        self.public_origin = Some(origin);
        self
    }

    /// Starts everything.
    pub(super) async fn start(self) -> Result<Stage, BoxError> {
        let agent = Model::answering(self.script).await?;
        let policy = Policy::start(self.decide).await?;
        let hooks = document(self.hooks.iter().map(|make| make(&policy)));
        let upstream = self.upstream.unwrap_or_else(|| agent.url());
        let (url, running) = match self.at.host {
            Host::Layer => {
                let hooks = HookSet::builder()
                    .document("hooks.json", &hooks)
                    .allowed_hosts(["127.0.0.1"])
                    .allow_insecure_loopback(true)
                    .build()?;
                let core = Hookgate::builder().hooks(hooks).limits(self.limits);
                let core = core.transport(Arc::new(HyperTransport::new())).build();
                let route = Route::a2a("billing");
                let route = self.public_origin.iter().fold(route, |route, origin| route.public_origin(origin));
                let host = LayerHost::start(&core, route, &upstream, None).await?;
                (host.url(), Running::Layer { _host: host, core })
            }
            Host::Proxy => {
                let folder = tempfile::tempdir()?;
                let file = folder.path().join("hookgate.toml");
                std::fs::write(folder.path().join("hooks.json"), hooks)?;
                std::fs::write(&file, configuration(&upstream, self.public_origin, &self.limits))?;
                let proxy = Proxy::start(Config::load(Some(&file), [])?)?;
                let address = proxy.addresses().first().ok_or("the proxy has no address")?;
                (format!("http://{address}{PREFIX}"), Running::Proxy(proxy))
            }
        };
        Ok(Stage { agent, policy, url, at: self.at, running })
    }
}

fn configuration(upstream: &str, public_origin: Option<&str>, limits: &Limits) -> String {
    let public_origin = public_origin.map(|origin| format!("public_origin = {origin:?}")).unwrap_or_default();
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
name = "billing"
kind = "a2a"
path_prefix = "{PREFIX}"
upstream = "{upstream}{BASE}"
{public_origin}

[limits]
max_request_bytes = {}
max_gated_bytes = {}
"#,
        limits.max_request_bytes, limits.max_gated_bytes,
    )
}

impl Stage {
    /// A client of the route.
    pub(super) fn client(&self) -> Client {
        Client::new(&self.url)
    }

    /// Sends a request as a client of this revision does.
    pub(super) async fn send(&self, request: &Request) -> Result<Incoming, BoxError> {
        self.send_with(request, &[]).await
    }

    /// The same with more headers.
    pub(super) async fn send_with(&self, request: &Request, more: &[(&str, &str)]) -> Result<Incoming, BoxError> {
        let headers = [&self.at.dialect.headers()[..], more].concat();
        let body = Bytes::from(request.body.clone());
        self.client().send(request.method.clone(), &request.path, &headers, body).await
    }

    /// The whole answer to a request, as its text.
    pub(super) async fn text(&self, request: &Request) -> Result<String, BoxError> {
        Ok(String::from_utf8(self.send(request).await?.bytes().await?.to_vec())?)
    }

    /// The messages of the last request that the agent got.
    pub(super) fn last_sent(&self) -> Value {
        self.agent.requests().last().map(|request| self.at.dialect.sent(request)).unwrap_or_default()
    }

    /// Waits until the events of these names have been told, and gives all of them.
    pub(super) async fn told<const N: usize>(&self, events: [&str; N]) -> [Envelope; N] {
        let mut told = Vec::new();
        for event in events {
            told.extend(self.policy.at_least_of(event, 1).await.into_iter().next());
        }
        told.try_into().unwrap_or_else(|told| panic!("some were not told: {told:?}"))
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
    if !media.starts_with("text/event-stream") {
        return Ok(serde_json::from_slice(&incoming.bytes().await?)?);
    }
    let first = incoming.event().await?.ok_or("a stream without a message")?.json();
    match incoming.event().await? {
        None => Ok(first),
        Some(second) => Err(format!("a second message: {}", second.data).into()),
    }
}
