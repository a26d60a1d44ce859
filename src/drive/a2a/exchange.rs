//! One request to an agent.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header, request};

use super::asked::{Asked, What};
use super::watcher::{Expects, Watcher};
use super::{Target, answer, card, forward, refusal, start};
use crate::Body;
use crate::dispatch::Decision;
use crate::drive::core::Hookgate;
use crate::drive::decode;
use crate::drive::outgoing;
use crate::drive::route::{Route, strip};
use crate::drive::tool::ToolPlane;
use crate::hooks::{Event, FailureKind, Occasion};
use crate::id::{Digest, Hasher, random_id};
use crate::upstream::Upstream;
use crate::wire::a2a::{Binding, Ids, Operation, Send, Surface};
use crate::wire::client::ClientIdentity;
use crate::wire::json::Edits;
use crate::wire::jsonrpc::INVALID_REQUEST;
use crate::wire::sse;

/// A longer id of a task or a conversation is told as a digest of it.
const MAX_ID_BYTES: usize = 256;

/// Everything that is known about a request once its body is read.
pub(super) struct Exchange {
    /// What its events have in common: the agent's name, and its conversation as the agent's id.
    pub(super) plane: ToolPlane,
    pub(super) route: Arc<Route>,
    pub(super) upstream: Arc<dyn Upstream>,
    /// The request's head as it goes upstream, without what depends on the body.
    pub(super) head: request::Parts,
    pub(super) binding: Binding,
    /// The id of the JSON-RPC request.
    pub(super) id: Option<Bytes>,
    /// The path without the route's own part.
    pub(super) path: Arc<str>,
}

/// Runs an exchange.
pub(in crate::drive) async fn run(
    core: &Hookgate,
    route: &Arc<Route>,
    target: Target,
    request: Request<Bytes>,
    upstream: Arc<dyn Upstream>,
) -> Response<Body> {
    let (mut head, sent) = request.into_parts();
    let received = head.clone();
    strip(&mut head.headers);
    head.headers.remove(header::EXPECT);
    head.headers.remove(header::UPGRADE);
    let Target { surface, path } = target;
    if let Surface::Card { of } = &surface {
        return card::pass(core, route, of, head, sent, upstream).await;
    }
    let text = decode::whole(&head.headers, sent.clone(), core.inner.limits.max_request_bytes).await;
    let asked = Asked::read(&surface, &path, &text);
    let text = text.unwrap_or_default();
    let plane = plane(core, route, &received, &path, &asked.what);
    let Asked { what, binding, id } = asked;
    // Boxed, since it is handed on.
    let exchange = Box::new(Exchange { plane, route: route.clone(), upstream, head, binding, id, path });
    match what {
        What::Send { send, stream } => exchange.send(&text, sent, &send, stream).await,
        What::Known { operation, task } => exchange.pass(sent, operation, task).await,
        What::Batch if core.gates() => {
            let message = "hookgate cannot apply the configured policy to a batch: send each request on its own";
            refusal(binding, StatusCode::BAD_REQUEST, None, INVALID_REQUEST, message)
        }
        What::Batch => exchange.pass(sent, Operation::Other, None).await,
        What::Undecidable { why, code } => match exchange.undecidable(&why) {
            Some(reason) => refusal(binding, StatusCode::BAD_REQUEST, exchange.id.as_deref(), code, &reason),
            None => exchange.pass(sent, Operation::Other, None).await,
        },
    }
}

/// Whose traffic it is: the session that a header names, else the conversation, else what else stays the same.
fn plane(core: &Hookgate, route: &Arc<Route>, received: &request::Parts, path: &str, what: &What) -> ToolPlane {
    let (context, fallback) = match what {
        What::Send { send, .. } => {
            let own = send.message.as_deref().unwrap_or(&send.prompt);
            (send.context.as_deref(), [&b"message"[..], own.as_bytes()])
        }
        What::Known { task: Some(task), .. } => (None, [&b"task"[..], task.as_bytes()]),
        What::Known { .. } | What::Undecidable { .. } | What::Batch => (None, [&b"agent"[..], &b""[..]]),
    };
    let plane = ToolPlane::new(core, route, received, &fallback);
    let state = &core.inner.a2a;
    plane.with(|base| {
        base.name = Some(state.agent(&route.name, path).unwrap_or_else(|| route.name.clone()));
        // Who delegates is the parent of whom it delegates to.
        base.parent_agent_id = base.agent_id.take().or(base.parent_agent_id.take());
        let Some(context) = context else { return };
        let id = bounded(context);
        base.agent_id = Some(id.clone());
        if ClientIdentity::of(&received.headers).session.is_none() {
            base.session.session = state.session(&key(base, b"context", context)).unwrap_or(id);
        }
    })
}

/// Names something of an agent.
pub(super) fn key(base: &Occasion, kind: &[u8], id: &str) -> Digest {
    let parts = [base.session.tenant.as_bytes(), base.route.as_bytes(), kind, id.as_bytes()];
    parts.into_iter().fold(Hasher::new().with(b"a2a"), Hasher::with).finish()
}

/// An id as events tell it.
pub(super) fn bounded(id: &str) -> Arc<str> {
    if id.len() <= MAX_ID_BYTES { id.into() } else { Digest::of(id.as_bytes()).to_uuid().into() }
}

impl Exchange {
    async fn send(self: Box<Self>, text: &Bytes, sent: Bytes, send: &Send, stream: bool) -> Response<Body> {
        // A task that hookgate did not see begin is nothing that anybody allowed.
        let known = |task: &String| self.plane.core.inner.a2a.knows(&key(self.plane.base(), b"task", task));
        let delegates = !send.task.as_ref().is_some_and(known);
        let mut edits = Edits::default();
        if delegates {
            match start::decide(&self.plane, send).await {
                Ok(decided) => edits = decided,
                Err(reason) => return self.deny(send, stream, &reason),
            }
        }
        let expects = if delegates { Expects::Delegation } else { Expects::Task };
        let watcher = Watcher::new(&self, expects);
        let inspect = watcher.is_needed();
        let request = match edits.is_empty() {
            true => outgoing::request(&self.head, sent.into(), inspect, false),
            false => outgoing::request(&self.head, edits.apply(text), inspect, true),
        };
        forward::run(self, request, watcher).await
    }

    /// What delegates nothing.
    async fn pass(self: Box<Self>, sent: Bytes, operation: Operation, task: Option<String>) -> Response<Body> {
        let expects = match operation {
            Operation::Task if task.is_some() => Expects::Task,
            Operation::Tasks => Expects::Tasks,
            Operation::Card => Expects::Card(card::place(&self.route, &self.head)),
            Operation::Task | Operation::Other | Operation::Send { .. } => Expects::Nothing,
        };
        let watcher = Watcher::new(&self, expects);
        let request = outgoing::request(&self.head, sent.into(), watcher.is_needed(), false);
        forward::run(self, request, watcher).await
    }

    /// Why a request does not pass that may delegate something, or not.
    fn undecidable(&self, why: &str) -> Option<String> {
        let occasion = self.plane.occasion(Event::SubagentStart);
        let what = format!("the request to the agent cannot be judged: {why}");
        let dispatcher = &self.plane.core.inner.dispatcher;
        match dispatcher.undecidable(&self.plane.hooks, &occasion, FailureKind::MalformedInput, &what).decision {
            Decision::Deny { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// A refused delegation is answered as if by the agent, so that its client shows the reason or reads it.
    fn deny(&self, send: &Send, stream: bool, reason: &str) -> Response<Body> {
        let (message, own) = (random_id(), random_id());
        let context = send.context.as_deref().unwrap_or(&own);
        if send.context.is_none() {
            let base = self.plane.base();
            self.plane.core.inner.a2a.join(key(base, b"context", context), base.session.session.clone());
        }
        let ids = Ids { message: &message, context };
        let body = send.reply(self.id.as_deref(), &ids, reason);
        let mut response = match stream {
            false => answer(StatusCode::OK, send.media_type(), body),
            true => answer(StatusCode::OK, "text/event-stream", sse::data(&body)),
        };
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}
