//! One stage for every scenario: a scripted agent, a policy, and hookgate between a client and the agent.

use bytes::Bytes;
use hookgate::testing::{Answer, Client, Envelope, Incoming, Model, Policy, Received, Ruling};
use hookgate::{BoxError, Route};
use serde_json::{Value, json};

use super::dialect::{Dialect, Request};
use crate::hosts::{self, Gateway};
pub(super) use crate::suite::{Host, Outcome};

/// One run of a scenario: on which host, in which words, and whether answers to messages are streamed.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) host: Host,
    pub(super) dialect: Dialect,
    pub(super) stream: bool,
}

/// A stage that is not set up yet.
pub(super) type Plan = hosts::Plan<Own>;

/// What the plans of this suite say of their own.
pub(super) struct Own {
    at: At,
    public_origin: Option<&'static str>,
}

/// Everything running. Dropping it ends everything.
pub(super) struct Stage {
    pub(super) agent: Model,
    pub(super) policy: Policy,
    /// Where the route is for clients.
    pub(super) url: String,
    pub(super) gateway: Gateway,
    at: At,
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
        Plan::new(self.host, Own { at: self, public_origin: None }, script).hooks(EVENTS)
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
    /// How the policy decides about delegations; it passes everything otherwise.
    pub(super) fn deciding(self, decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> Self {
        self.policy_on("SubagentStart", decide)
    }

    /// The route's own name for its origin.
    pub(super) fn public_origin(mut self, origin: &'static str) -> Self {
        self.own.public_origin = Some(origin);
        self
    }

    /// Starts everything.
    pub(super) async fn start(self) -> Result<Stage, BoxError> {
        let (cast, Own { at, public_origin }) = self.cast().await?;
        let upstream = &cast.upstream;
        let gateway = match cast.host {
            Host::Layer => {
                let route = Route::a2a("billing");
                let route = public_origin.iter().fold(route, |route, origin| route.public_origin(origin));
                Gateway::layer(cast.core()?.build(), [(route, upstream)], None).await?
            }
            Host::Proxy => {
                let public_origin = public_origin.map(|origin| format!("public_origin = {origin:?}"));
                Gateway::proxy(cast.config(&format!(
                    r#"
[[routes]]
name = "billing"
kind = "a2a"
path_prefix = "{PREFIX}"
upstream = "{upstream}{BASE}"
{}
"#,
                    public_origin.unwrap_or_default()
                ))?)?
            }
        };
        Ok(Stage { agent: cast.server, policy: cast.policy, url: gateway.url(0, PREFIX), gateway, at })
    }
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
