//! A scripted tool server, a policy, and hookgate between them on either host.

use std::sync::Arc;

use bytes::Bytes;
use hookgate::testing::{Answer, Client, Envelope, Incoming, Model, Policy, Received, Ruling};
use hookgate::{BoxError, HttpTool, HttpTools, Route};
use http::Method;
use serde_json::{Value, json};

use crate::config_support::Folder;
use crate::hosts::{self, Gateway};
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

/// The route's path at the proxy; the layer of these tests takes all paths.
const PREFIX: &str = "/tools/billing";

/// The largest request.
pub(crate) const MAX_REQUEST: usize = 10_000;

/// A stage that is not set up yet, with the paths that may pass uninspected.
pub(crate) type Plan = hosts::Plan<Vec<String>>;

/// Everything running.
pub(crate) struct Stage {
    pub(crate) server: Model,
    pub(crate) policy: Policy,
    pub(crate) gateway: Gateway,
    client: Client,
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
        let plan = Plan::new(host, Vec::new(), |_, _| Answer::json(200, r#"{"done": true}"#));
        plan.limits(|limits| limits.max_request_bytes = MAX_REQUEST)
    }

    /// A closed handler of `PreToolUse` that decides so.
    pub(crate) fn gate(self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        self.hooks(["PreToolUse"]).policy(decide)
    }

    pub(crate) fn allow_uninspected(mut self, path: &str) -> Self {
        self.own.push(path.to_owned());
        self
    }

    pub(crate) async fn start(self) -> Result<Stage, BoxError> {
        let (cast, allow_uninspected) = self.cast().await?;
        let upstream = &cast.upstream;
        let gateway = match cast.host {
            Host::Layer => {
                let tool = |(name, method, path): (&str, &str, &str)| -> Result<HttpTool, BoxError> {
                    Ok(HttpTool::new(name, method.parse()?, path)?.schema(SCHEMA.as_bytes())?)
                };
                let tools = TOOLS.into_iter().map(tool).collect::<Result<Vec<_>, _>>()?;
                let route = Route::http_tool("billing", HttpTools::new(tools)?).allow_uninspected(allow_uninspected);
                Gateway::layer(cast.core()?.build(), [(route, upstream)], None).await?
            }
            Host::Proxy => {
                let folder = Folder::with("");
                let schema = folder.file("schema.json", SCHEMA);
                let tools = TOOLS.map(|(name, method, path)| {
                    format!("{{ name = {name:?}, method = {method:?}, path = {path:?}, schema = {schema:?} }}")
                });
                Gateway::proxy(cast.config(&format!(
                    r#"
[[routes]]
name = "billing"
kind = "http-tool"
path_prefix = "{PREFIX}"
upstream = "{upstream}"
allow_uninspected = {}
tools = [{}]
"#,
                    json!(allow_uninspected),
                    tools.join(", "),
                ))?)?
            }
        };
        let client = Client::new(&gateway.url(0, PREFIX));
        Ok(Stage { server: cast.server, policy: cast.policy, gateway, client })
    }
}

impl Stage {
    /// Sends a request; the path is the tool server's.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Incoming, BoxError> {
        self.client.send(method.parse::<Method>()?, path, headers, body.into()).await
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
}
