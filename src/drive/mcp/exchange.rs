//! One request of an MCP client.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header, request};

use super::calls::Ruling;
use super::state::Pending;
use super::watcher::{Asked, Watcher};
use super::{answer, forward, refusal};
use crate::Body;
use crate::drive::core::Hookgate;
use crate::drive::decode;
use crate::drive::outgoing;
use crate::drive::route::{Route, strip};
use crate::drive::tool::ToolPlane;
use crate::hooks::{Detail, Event};
use crate::id::{Digest, Hasher};
use crate::upstream::Upstream;
use crate::wire::json::{Edits, Span, pointer};
use crate::wire::jsonrpc::{self, Envelope, INVALID_REQUEST, Kind, Malformed, PARSE_ERROR, Payload, read};
use crate::wire::mcp::{Revision, SESSION};

/// Everything that is known about a request once its body is read.
pub(super) struct Exchange {
    pub(super) plane: ToolPlane,
    pub(super) route: Arc<Route>,
    pub(super) upstream: Arc<dyn Upstream>,
    /// The request's head as it goes upstream, without what depends on the body.
    pub(super) head: request::Parts,
    pub(super) revision: Revision,
    /// Names tenant and route.
    pub(super) server: Digest,
    /// Names the server and the client's session with it, which only legacy revisions have.
    pub(super) session: Option<Digest>,
    /// Names the server and the client, as far as its tools may depend on it.
    pub(super) client: Digest,
    /// The parameters of the one message that the body holds.
    pub(super) params: Option<Bytes>,
}

/// Runs an exchange.
pub(in crate::drive) async fn run(
    core: &Hookgate,
    route: &Arc<Route>,
    request: Request<Bytes>,
    upstream: Arc<dyn Upstream>,
) -> Response<Body> {
    let (mut head, sent) = request.into_parts();
    let text = decode::whole(&head.headers, sent.clone(), core.inner.limits.max_request_bytes).await;
    let payload = match &text {
        // Other methods have no body, and no server can be made to take one for a call.
        Ok(text) if head.method == Method::POST || !text.is_empty() => read(text).map(Some),
        Ok(_) => Ok(None),
        Err(why) => Err(Malformed::Envelope(why.clone())),
    };
    let text = text.unwrap_or_default();
    let plane = plane(core, route, &head, &head.headers, &text, payload.as_ref().ok().and_then(Option::as_ref));
    // The session that begins is named by what hookgate takes out of the request, too.
    let received = payload.as_ref().is_ok_and(|payload| payload.as_ref().is_some_and(begins)).then(|| head.clone());
    strip(&mut head.headers);
    head.headers.remove(header::EXPECT);
    let session = head.headers.get(SESSION);
    let server = keyed(&plane, route, None);
    let mut client = Hasher::new().with(b"client");
    client.digest(server);
    for header in [session, head.headers.get(header::AUTHORIZATION)] {
        client.part(header.map_or(&b""[..], |value| value.as_bytes()));
    }
    // Boxed, since it is handed on.
    let exchange = Box::new(Exchange {
        route: route.clone(),
        upstream,
        revision: Revision::of(&head.headers),
        params: payload.as_ref().ok().and_then(|payload| params(&text, payload.as_ref()?)),
        server,
        session: session.map(|session| keyed(&plane, route, Some(session))),
        client: client.finish(),
        plane,
        head,
    });
    match payload {
        Ok(Some(payload)) => exchange.post(&text, &sent, payload, received).await,
        Ok(None) => exchange.without_message(sent).await,
        Err(why) if core.gates() => {
            let code = if matches!(why, Malformed::Json(_)) { PARSE_ERROR } else { INVALID_REQUEST };
            let message = format!("hookgate cannot apply the configured policy to this request: {why}");
            refusal(StatusCode::BAD_REQUEST, None, code, &message)
        }
        Err(_) => exchange.without_message(sent).await,
    }
}

/// Whose traffic it is: the session that a header names, else the one with the server, else the client by its own name.
fn plane(
    core: &Hookgate,
    route: &Route,
    head: &request::Parts,
    session_in: &HeaderMap,
    text: &[u8],
    payload: Option<&Payload>,
) -> ToolPlane {
    if let Some(session) = session_in.get(SESSION) {
        return ToolPlane::new(core, route, head, &[b"session", session.as_bytes()]);
    }
    let client = match payload {
        Some(Payload::One(Envelope { kind: Kind::Request { params: Some(params), .. }, .. })) => {
            let meta = pointer(params.of(text), "/_meta/io.modelcontextprotocol~1clientInfo").ok().flatten();
            meta.map(|client| client.of(params.of(text)))
        }
        _ => None,
    };
    ToolPlane::new(core, route, head, &[b"client", client.unwrap_or_default()])
}

impl Exchange {
    /// Reading a stream, ending a session, or what cannot be read and concerns no policy.
    async fn without_message(self: Box<Self>, sent: Bytes) -> Response<Body> {
        let ends = self.head.method == Method::DELETE;
        let request = outgoing::request(&self.head, sent.into(), true, false);
        let watcher = Watcher::new(&self, Vec::new());
        let (session, plane) = (self.session, self.plane.clone());
        let response = forward::run(self, request, watcher).await;
        // Whatever the server says to it: the client is done with the session.
        let over = session.filter(|session| ends && plane.core.inner.mcp.close_session(session));
        if over.is_some() {
            let detail = Detail::SessionEnd { reason: "the client ended it".into() };
            plane.core.inner.dispatcher.observe(&plane.hooks, plane.occasion(Event::SessionEnd), detail);
        }
        response
    }

    /// `received` is the head as it came, where a session may begin.
    async fn post(
        mut self: Box<Self>,
        text: &Bytes,
        sent: &Bytes,
        payload: Payload,
        received: Option<request::Parts>,
    ) -> Response<Body> {
        let (messages, is_batch) = match payload {
            Payload::One(message) => (vec![message], false),
            Payload::Batch(messages) => (messages, true),
        };
        let batches = matches!(self.revision, Revision::Legacy { batches: true });
        if is_batch && !batches && self.plane.core.gates() {
            let message = "a request holds one message: batches left the protocol in 2025-06-18";
            return refusal(StatusCode::BAD_REQUEST, None, INVALID_REQUEST, message);
        }
        let rulings = join_all(messages.iter().map(|message| self.rule(text, message))).await;
        if rulings.iter().any(|ruling| matches!(ruling, Ruling::Answer(..))) {
            return refuse(text, &messages, rulings, is_batch);
        }
        let (mut asked, mut edits, mut mirrors) = (Vec::new(), Edits::default(), Vec::new());
        for ruling in rulings {
            let Ruling::Go { asked: question, input, mirrored } = ruling else { continue };
            if let Some((params, input)) = input {
                params.replace_input(&input, &mut edits);
            }
            asked.extend(question);
            mirrors.extend(mirrored);
        }
        for mirror in mirrors {
            match mirror.value {
                Some(value) => drop(self.head.headers.insert(mirror.name, value)),
                None => drop(self.head.headers.remove(mirror.name)),
            }
        }
        let reads = !asked.is_empty() || self.session.is_some();
        let request = match edits.is_empty() {
            true => outgoing::request(&self.head, sent.clone().into(), reads, false),
            false => outgoing::request(&self.head, edits.apply(text), reads, true),
        };
        let watcher = Watcher::new(&self, asked);
        let (core, route) = (self.plane.core.clone(), self.route.clone());
        let response = forward::run(self, request, watcher).await;
        if let Some(received) = received.filter(|_| response.status().is_success()) {
            begin_session(&core, &route, &received, response.headers());
        }
        response
    }

    async fn rule(&self, text: &Bytes, message: &Envelope) -> Ruling {
        let (method, params) = match &message.kind {
            Kind::Request { method, params } => (method, params),
            // The protocol has no such message, but a server may run the tool all the same.
            Kind::Notification { method, .. } if method == "tools/call" && self.plane.core.gates() => {
                let refused = jsonrpc::error(None, INVALID_REQUEST, "a call of a tool needs an id");
                return Ruling::Answer(StatusCode::BAD_REQUEST, refused);
            }
            _ => return Ruling::go(None),
        };
        let id = text.slice_ref(message.id_text(text).unwrap_or_default());
        match method.as_str() {
            "tools/call" => self.rule_call(text, id, *params).await,
            "tools/list" => Ruling::go(Some(Asked::List { id })),
            "initialize" => Ruling::go(Some(Asked::Initialize)),
            "tasks/result" | "tasks/get" | "tasks/cancel" => {
                Ruling::go(self.task(text, *params).map(|(key, of)| Asked::Task {
                    id,
                    key,
                    of,
                    gets: method != "tasks/result",
                }))
            }
            _ => Ruling::go(None),
        }
    }

    /// The task that parameters name, if a call goes on as that task.
    fn task(&self, text: &[u8], params: Option<Span>) -> Option<(Digest, Arc<Pending>)> {
        let id = crate::drive::results::string_at(params?.of(text), "/taskId")?;
        let key = task_key(self.server, &id);
        Some((key, self.plane.core.inner.mcp.task(&key)?))
    }
}

/// Whether a session may begin.
fn begins(payload: &Payload) -> bool {
    let begins = |message: &Envelope| matches!(&message.kind, Kind::Request { method, .. } if method == "initialize");
    match payload {
        Payload::One(message) => begins(message),
        Payload::Batch(messages) => messages.iter().any(begins),
    }
}

/// The parameters of the one message that a body holds.
fn params(text: &Bytes, payload: &Payload) -> Option<Bytes> {
    match payload {
        Payload::One(Envelope { kind: Kind::Request { params: Some(params), .. }, .. }) => {
            Some(text.slice(params.start..params.end))
        }
        _ => None,
    }
}

/// Names a task of a server.
pub(super) fn task_key(server: Digest, id: &str) -> Digest {
    let mut key = Hasher::new().with(b"task").with(id.as_bytes());
    key.digest(server);
    key.finish()
}

/// Names a request of a session.
pub(super) fn call_key(session: Digest, id: &[u8]) -> Digest {
    let mut key = Hasher::new().with(b"call").with(id);
    key.digest(session);
    key.finish()
}

/// Nothing of a body is forwarded of which something is refused. In a batch, the others are told so.
fn refuse(text: &[u8], messages: &[Envelope], rulings: Vec<Ruling>, is_batch: bool) -> Response<Body> {
    let mut answers = Vec::new();
    for (message, ruling) in messages.iter().zip(rulings) {
        match ruling {
            Ruling::Answer(status, body) if !is_batch => return answer(status, body),
            Ruling::Answer(_, body) => answers.push(body),
            Ruling::Go { .. } => {
                let what = "not forwarded, because another call of the same batch was refused: send it on its own";
                let id = message.id_text(text).filter(|_| matches!(message.kind, Kind::Request { .. }));
                answers.extend(id.map(|id| jsonrpc::error(Some(id), INVALID_REQUEST, what)));
            }
        }
    }
    let mut body = b"[".to_vec();
    for (index, answer) in answers.iter().enumerate() {
        body.extend_from_slice(if index == 0 { b"" } else { b"," });
        body.extend_from_slice(answer);
    }
    body.push(b']');
    answer(StatusCode::OK, body.into())
}

/// The server took a client in.
fn begin_session(core: &Hookgate, route: &Route, received: &request::Parts, answer: &HeaderMap) {
    let plane = plane(core, route, received, answer, b"", None);
    if let Some(session) = answer.get(SESSION) {
        core.inner.mcp.open_session(keyed(&plane, route, Some(session)));
    }
    let detail = Detail::SessionStart { source: "new" };
    core.inner.dispatcher.observe(&plane.hooks, plane.occasion(Event::SessionStart), detail);
}

/// Names the server, and a session with it.
fn keyed(plane: &ToolPlane, route: &Route, session: Option<&HeaderValue>) -> Digest {
    let mut key = Hasher::new().with(b"mcp").with(plane.session().tenant.as_bytes()).with(route.name.as_bytes());
    if let Some(session) = session {
        key.part(session.as_bytes());
    }
    key.finish()
}
