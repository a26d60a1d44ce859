//! A scripted tool server, a policy, and hookgate between them on either host.

use std::sync::Arc;

use bytes::Bytes;
use hookgate::config::Config;
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::host::pingora::Proxy;
use hookgate::limits::Limits;
use hookgate::testing::{Answer, Client, Envelope, Hook, Incoming, Model, Policy, Received, Ruling, document};
use hookgate::{BoxError, Hookgate, HttpTool, HttpTools, Route};
use http::Method;
use serde_json::{Value, json};

use crate::scenario::layer::LayerHost;
use crate::suite::Host;

/// The tools of every stage.
const TOOLS: [(&str, &str, &str); 5] = [
    ("refund", "POST", "/v1/charges/{charge}/refund"),
    ("note", "POST", "/v1/notes"),
    ("show", "GET", "/v1/charges/{charge}"),
    ("search", "GET", "/v1/charges/search"),
    ("remove", "DELETE", "/v1/charges/{charge}"),
];
/// The schema of all of them.
const SCHEMA: &str = r#"{"type": "object", "properties": {"body": {"type": ["object", "string"],
    "properties": {"amount": {"type": "integer", "maximum": 100}}}}}"#;

type Decide = Box<dyn Fn(&Envelope) -> Ruling + Send + Sync>;
type MakeHook = Box<dyn Fn(&Policy) -> Hook>;
type Script = Box<dyn Fn(usize, &Received) -> Answer + Send + Sync>;

/// A stage that is not set up yet.
pub(crate) struct Plan {
    host: Host,
    script: Script,
    decide: Decide,
    hooks: Vec<MakeHook>,
    allow_uninspected: Vec<String>,
    upstream: Option<String>,
    denied: Vec<&'static str>,
}

/// Everything running.
pub(crate) struct Stage {
    pub(crate) server: Model,
    pub(crate) policy: Policy,
    client: Client,
    prefix: &'static str,
    running: Running,
}

/// Held so that it ends with the stage; the core of the layer has the audit.
enum Running {
    Layer { _host: LayerHost, core: Hookgate },
    Proxy { _proxy: Proxy },
}

/// An answer that was read to its end.
pub(crate) struct Read {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

impl Read {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The sentence of a refusal.
    pub(crate) fn detail(&self) -> String {
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.json()["status"], self.status);
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }
}

impl Plan {
    /// A stage on that host, with a server that is done with everything and without hooks.
    pub(crate) fn on(host: Host) -> Plan {
        Plan {
            host,
            script: Box::new(|_, _| Answer::json(200, r#"{"done": true}"#)),
            decide: Box::new(|_| Ruling::pass()),
            hooks: Vec::new(),
            allow_uninspected: Vec::new(),
            upstream: None,
            denied: Vec::new(),
        }
    }
}

impl Plan {
    pub(crate) fn answering(mut self, script: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    pub(crate) fn hook(mut self, hook: impl Fn(&Policy) -> Hook + 'static) -> Self {
        self.hooks.push(Box::new(hook));
        self
    }

    /// A closed handler of `PreToolUse` that decides so.
    pub(crate) fn gate(self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        let mut plan = self.hook(|policy| policy.hook("PreToolUse"));
        plan.decide = Box::new(decide);
        plan
    }

    pub(crate) fn allow_uninspected(mut self, path: &str) -> Self {
        self.allow_uninspected.push(path.to_owned());
        self
    }

    pub(crate) fn upstream(mut self, url: String) -> Self {
        self.upstream = Some(url);
        self
    }

    pub(crate) fn denied(mut self, tool: &'static str) -> Self {
        self.denied.push(tool);
        self
    }

    pub(crate) async fn start(mut self) -> Result<Stage, BoxError> {
        let script = std::mem::replace(&mut self.script, Box::new(|_, _| Answer::nothing()));
        let decide = std::mem::replace(&mut self.decide, Box::new(|_| Ruling::pass()));
        let server = Model::answering(script).await?;
        let policy = Policy::start(decide).await?;
        let hooks = document(self.hooks.iter().map(|make| make(&policy)));
        let upstream = self.upstream.clone().unwrap_or_else(|| server.url());
        let (url, running) = match self.host {
            Host::Layer => self.layer(&hooks, &upstream).await?,
            Host::Proxy => self.proxy(&hooks, &upstream)?,
        };
        let prefix = if self.host == Host::Proxy { "/tools/billing" } else { "" };
        Ok(Stage { server, policy, client: Client::new(&url), prefix, running })
    }

    async fn layer(&self, hooks: &[u8], upstream: &str) -> Result<(String, Running), BoxError> {
        let hooks = HookSet::builder()
            .document("hooks.json", hooks)
            .allowed_hosts(["127.0.0.1"])
            .allow_insecure_loopback(true)
            .deny_tools(self.denied.iter().copied())
            .build()?;
        let mut limits = Limits::default();
        limits.max_request_bytes = MAX_REQUEST;
        let core = Hookgate::builder().hooks(hooks).limits(limits).transport(Arc::new(HyperTransport::new())).build();
        let tool = |(name, method, path): (&str, &str, &str)| -> Result<HttpTool, BoxError> {
            Ok(HttpTool::new(name, method.parse()?, path)?.schema(SCHEMA.as_bytes())?)
        };
        let tools = TOOLS.into_iter().map(tool).collect::<Result<Vec<_>, _>>()?;
        let route =
            Route::http_tool("billing", HttpTools::new(tools)?).allow_uninspected(self.allow_uninspected.clone());
        let host = LayerHost::start(&core, route, upstream, None).await?;
        Ok((host.url(), Running::Layer { _host: host, core }))
    }

    fn proxy(&self, hooks: &[u8], upstream: &str) -> Result<(String, Running), BoxError> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("hookgate.toml");
        std::fs::write(folder.path().join("hooks.json"), hooks)?;
        std::fs::write(folder.path().join("schema.json"), SCHEMA)?;
        let tools = TOOLS.map(|(name, method, path)| {
            format!("{{ name = \"{name}\", method = \"{method}\", path = \"{path}\", schema = \"schema.json\" }}")
        });
        let text = format!(
            r#"
[server]
listen = ["127.0.0.1:0"]
shutdown_grace = "1s"

[hooks]
documents = ["hooks.json"]
allowed_hosts = ["127.0.0.1"]
allow_insecure_loopback = true

[tools]
deny = {}

[limits]
max_request_bytes = {MAX_REQUEST}

[[routes]]
name = "billing"
kind = "http-tool"
path_prefix = "/tools/billing"
upstream = "{upstream}"
allow_uninspected = {}
tools = [{}]
"#,
            json!(self.denied),
            json!(self.allow_uninspected),
            tools.join(", "),
        );
        std::fs::write(&file, text)?;
        let proxy = Proxy::start(Config::load(Some(&file), [])?)?;
        let address = proxy.addresses().first().ok_or("the proxy has no address")?;
        Ok((format!("http://{address}"), Running::Proxy { _proxy: proxy }))
    }
}

/// The largest request.
pub(crate) const MAX_REQUEST: usize = 10_000;

impl Stage {
    /// Sends a request; the path is the tool server's.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Incoming, BoxError> {
        self.client.send(method.parse::<Method>()?, &format!("{}{path}", self.prefix), headers, body.into()).await
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn call(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Read, BoxError> {
        let answer = self.send(method, path, headers, body).await?;
        let (status, headers) = (answer.status.as_u16(), answer.headers.clone());
        Ok(Read { status, headers, body: answer.bytes().await? })
    }

    /// A request that the server got.
    pub(crate) fn request(&self, number: usize) -> Result<Arc<Received>, BoxError> {
        Ok(self.server.requests().get(number).cloned().ok_or("the server was not asked")?)
    }

    /// The audit so far.
    pub(crate) async fn audit(&self) -> Result<Vec<Value>, BoxError> {
        let page = match &self.running {
            Running::Layer { core, .. } => serde_json::to_value(core.audit().all(&Default::default()))?,
            Running::Proxy { .. } => {
                serde_json::from_slice(&self.client.get("/hookgate/v1/audit").await?.bytes().await?)?
            }
        };
        Ok(page["items"].as_array().cloned().unwrap_or_default())
    }
}
