//! One stage for every scenario: a scripted model, a policy, and hookgate between them on either host.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use hookgate::callback::{Settings, TmpHooks, TokenKey};
use hookgate::control::{ControlState, Metrics, Readiness, router};
use hookgate::store::MemoryStore;
use hookgate::testing::{Agent, Answer, Client, Message, Model, Policy, Received};
use hookgate::{BoxError, OnDeny, Route, Subagent};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use crate::hosts::{self, Cast, Gateway};
pub(crate) use crate::suite::{Host, Outcome};

/// The session of a stage's own agent.
pub(crate) const SESSION: &str = "session-1";

/// One run of a scenario: on which host, and whether answers are streamed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) host: Host,
    pub(crate) stream: bool,
}

/// A stage that is not set up yet.
pub(crate) type Plan = hosts::Plan<Own>;

/// What the plans of this suite say of their own.
pub(crate) struct Own {
    stream: bool,
    on_deny: OnDeny,
    allow_uninspected: Vec<String>,
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
    pub(crate) gateway: Gateway,
    stream: bool,
    /// The control surface; the proxy has its own.
    control: Option<Router>,
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
        let own =
            Own { stream: self.stream, on_deny: OnDeny::Feedback, allow_uninspected: Vec::new(), callbacks: None };
        Plan::new(self.host, own, script)
    }
}

impl Plan {
    /// An answer ends when all its calls are denied.
    pub(crate) fn on_deny_end(mut self) -> Self {
        self.own.on_deny = OnDeny::End;
        self
    }

    /// Lets a path pass uninspected.
    pub(crate) fn allow_uninspected(mut self, path: &str) -> Self {
        self.own.allow_uninspected.push(path.to_owned());
        self
    }

    /// Offers one-time callbacks, and holds the end of a turn so many seconds for them.
    pub(crate) fn callbacks(mut self, hold_stop_seconds: u64) -> Self {
        self.own.callbacks = Some(hold_stop_seconds);
        self
    }

    /// Starts everything.
    pub(crate) async fn start(self) -> Result<Stage, BoxError> {
        let (cast, own) = self.cast().await?;
        let (gateway, control) = match cast.host {
            Host::Layer => own.start_layer(&cast).await?,
            Host::Proxy => (Gateway::proxy(cast.config(&own.configuration(&cast.upstream))?)?, None),
        };
        let url = gateway.url(0, "/model");
        Ok(Stage { url, model: cast.server, policy: cast.policy, gateway, stream: own.stream, control })
    }
}

impl Own {
    async fn start_layer(&self, cast: &Cast) -> Result<(Gateway, Option<Router>), BoxError> {
        let mut core = cast.core()?.subagents(vec![Subagent {
            tool: "Agent".into(),
            id: "/subagent_type".to_owned(),
            prompt: "/prompt".to_owned(),
        }]);
        let offered = TmpHooks::new(
            Settings::default().base_url(CALLBACKS)?,
            Arc::new(MemoryStore::new()),
            TokenKey::random(),
            None,
        );
        if let Some(seconds) = self.callbacks {
            core = core.callbacks(offered.clone(), Duration::from_secs(seconds));
        }
        let core = core.build();
        let route = Route::model("model")
            .allow_uninspected(self.allow_uninspected.clone())
            .on_deny(self.on_deny)
            .tmp_hooks(self.callbacks.is_some());
        let control = router(ControlState {
            core: core.clone(),
            tmp_hooks: offered.clone(),
            readiness: Readiness::new(),
            metrics: Metrics::detached(),
        });
        let callbacks = self.callbacks.map(|_| offered);
        Ok((Gateway::layer(core, [(route, &cast.upstream)], callbacks).await?, Some(control)))
    }

    fn configuration(&self, upstream: &str) -> String {
        let on_deny = match self.on_deny {
            OnDeny::Feedback => "feedback",
            OnDeny::End => "end",
        };
        let allow_uninspected = json!(self.allow_uninspected);
        let (tmp_hooks, hold_stop) = (self.callbacks.is_some(), self.callbacks.unwrap_or(0));
        format!(
            r#"
[[routes]]
name = "model"
kind = "model"
path_prefix = "/model"
upstream = "{upstream}"
on_deny = "{on_deny}"
allow_uninspected = {allow_uninspected}
tmp_hooks = {tmp_hooks}

[tmp_hooks]
base_url = "{CALLBACKS}"

[delivery]
hold_stop_seconds = {hold_stop}

[[subagents]]
tool = "Agent"
id = "/subagent_type"
prompt = "/prompt"
"#
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
        let body = match &self.control {
            Some(control) => {
                let answer = control.clone().oneshot(request.body(axum::body::Body::from(call))?).await?;
                answer.into_body().collect().await?.to_bytes()
            }
            None => {
                let headers = [("accept", "application/json, text/event-stream"), ("x-hookgate-session", session)];
                let client = Client::new(&self.gateway.url(0, ""));
                client.post("/hookgate/mcp", &headers, call).await?.bytes().await?
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
