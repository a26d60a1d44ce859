//! What there is around hookgate in every suite: a scripted server behind it, and a policy that its handlers ask.

use std::sync::Arc;

use hookgate::config::Config;
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::limits::Limits;
use hookgate::testing::{Answer, Envelope, Hook, Model, Policy, Received, Ruling, document};
use hookgate::{BoxError, Hookgate, HookgateBuilder};
use serde_json::json;

use crate::config_support::Folder;
use crate::suite::Host;

type Script = Box<dyn Fn(usize, &Received) -> Answer + Send + Sync>;
type Decide = Box<dyn Fn(&Envelope) -> Ruling + Send + Sync>;
type MakeHook = Box<dyn Fn(&Policy) -> Hook>;

/// A stage that is not set up yet, with what a suite says of its own.
pub(crate) struct Plan<Own> {
    host: Host,
    script: Script,
    decide: Decide,
    hooks: Vec<MakeHook>,
    limits: Limits,
    upstream: Option<String>,
    denied: Vec<&'static str>,
    pub(crate) own: Own,
}

/// The server and the policy, running, and what hookgate is told.
pub(crate) struct Cast {
    pub(crate) host: Host,
    pub(crate) server: Model,
    pub(crate) policy: Policy,
    /// Where requests go.
    pub(crate) upstream: String,
    /// The document with the handlers.
    pub(crate) hooks: Vec<u8>,
    pub(crate) limits: Limits,
    pub(crate) denied: Vec<&'static str>,
}

impl<Own> Plan<Own> {
    /// A server that answers as the closure says, and no handlers.
    pub(crate) fn new(
        host: Host,
        own: Own,
        script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Plan {
            host,
            script: Box::new(script),
            decide: Box::new(|_| Ruling::pass()),
            hooks: Vec::new(),
            limits: Limits::default(),
            upstream: None,
            denied: Vec::new(),
            own,
        }
    }

    /// Has the server answer otherwise.
    pub(crate) fn answering(mut self, script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Handlers of these events, closed where that can be.
    pub(crate) fn hooks<const N: usize>(self, events: [&'static str; N]) -> Self {
        events.into_iter().fold(self, |plan, event| plan.hook(move |policy| policy.hook(event)))
    }

    /// One more handler.
    pub(crate) fn hook(mut self, hook: impl Fn(&Policy) -> Hook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Only this handler.
    pub(crate) fn only(self, hook: impl Fn(&Policy) -> Hook + 'static) -> Self {
        self.no_hooks().hook(hook)
    }

    /// No handler.
    pub(crate) fn no_hooks(mut self) -> Self {
        self.hooks.clear();
        self
    }

    /// How the policy decides; it passes everything otherwise.
    pub(crate) fn policy(mut self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        self.decide = Box::new(decide);
        self
    }

    /// How the policy decides about that event; it passes everything else.
    pub(crate) fn policy_on(
        self,
        event: &'static str,
        decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static,
    ) -> Self {
        self.policy(move |asked| if asked.event() == event { decide(asked) } else { Ruling::pass() })
    }

    /// Changes limits.
    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Sends requests to another place than the server.
    pub(crate) fn upstream(mut self, url: &str) -> Self {
        self.upstream = Some(url.to_owned());
        self
    }

    /// Denies a tool without asking anybody.
    pub(crate) fn denied(mut self, tool: &'static str) -> Self {
        self.denied.push(tool);
        self
    }

    /// Starts what there is around hookgate.
    pub(crate) async fn cast(self) -> Result<(Cast, Own), BoxError> {
        let server = Model::answering(self.script).await?;
        let policy = Policy::start(self.decide).await?;
        let hooks = document(self.hooks.iter().map(|make| make(&policy)));
        let upstream = self.upstream.unwrap_or_else(|| server.url());
        let cast = Cast { host: self.host, server, policy, upstream, hooks, limits: self.limits, denied: self.denied };
        Ok((cast, self.own))
    }
}

impl Cast {
    /// The core of layers.
    pub(crate) fn core(&self) -> Result<HookgateBuilder, BoxError> {
        let hooks = HookSet::builder()
            .document("hooks.json", &self.hooks)
            .allowed_hosts(["127.0.0.1"])
            .allow_insecure_loopback(true)
            .deny_tools(self.denied.iter().copied())
            .build()?;
        let core = Hookgate::builder().hooks(hooks).limits(self.limits.clone());
        Ok(core.transport(Arc::new(HyperTransport::new())))
    }

    /// The same as the configuration of a proxy, with the routes, which are each suite's own.
    pub(crate) fn config(&self, routes: &str) -> Result<Config, BoxError> {
        let (denied, limits) = (json!(self.denied), &self.limits);
        let folder = Folder::with(&format!(
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

[tools]
deny = {denied}

[limits]
max_request_bytes = {}
max_held_bytes = {}
max_gated_bytes = {}
keepalive_ms = {}
max_hold = "{}ms"
{routes}"#,
            limits.max_stop_retries,
            limits.max_deny_rounds,
            limits.max_request_bytes,
            limits.max_held_bytes,
            limits.max_gated_bytes,
            limits.keepalive.as_millis(),
            limits.max_hold.as_millis(),
        ));
        folder.file("hooks.json", str::from_utf8(&self.hooks)?);
        Ok(folder.load(&[])?)
    }
}
