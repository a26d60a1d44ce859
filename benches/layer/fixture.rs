//! An exchange through the layer without a network: what the agent asks, what the model answers, what handlers say.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream;
use hookgate::audit::AuditLog;
use hookgate::dispatch::{
    AnswerBody, DispatchKey, Dispatcher, HandlerAnswer, HandlerTransport, TransportError, Verdict,
};
use hookgate::hooks::{Detail, Event, HookSet, Occasion, Plane};
use hookgate::id::SessionKey;
use hookgate::limits::Limits;
use hookgate::testing::{Hook, Message, document};
use hookgate::wire::sse;
use hookgate::{Body, HookLayer, Hookgate, Route};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tower::{Layer, ServiceExt, service_fn};

/// The most bytes that the network gives at once: an HTTP/2 frame's usual size.
const CHUNK: usize = 16 << 10;
/// Text events of a streamed answer.
pub(crate) const EVENTS: usize = 200;

/// Answers at once that a call may run.
struct Allow;

impl HandlerTransport for Allow {
    fn send(&self, _: Request<Bytes>, _: usize) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
        let body = AnswerBody::Complete(Bytes::from_static(br#"{"schemaVersion":1,"outcome":"pass"}"#));
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        Box::pin(std::future::ready(Ok(HandlerAnswer { status: StatusCode::OK, headers, body })))
    }
}

/// So many handlers of `PreToolUse` for the tool of that name.
fn hooks(handlers: usize, tool: &str) -> HookSet {
    let handler = |index| {
        Hook::new("PreToolUse", "https://hooks.example.com/policy").id(&format!("policy-{index}")).matcher([tool])
    };
    HookSet::builder()
        .allowed_hosts(["hooks.example.com"])
        .document("hooks.json", &document((0..handlers).map(handler)))
        .build()
        .expect("the document is valid")
}

/// A core with that many handlers for the tool of that name.
pub(crate) fn gate(handlers: usize, tool: &str) -> Hookgate {
    Hookgate::builder().hooks(hooks(handlers, tool)).transport(Arc::new(Allow)).build()
}

/// One call of the tool `read` that handlers are asked about, without anything around it.
pub(crate) struct Call {
    dispatcher: Dispatcher,
    hooks: Arc<HookSet>,
    occasion: Occasion,
    detail: Detail,
}

impl Call {
    /// With that many handlers for the tool of that name.
    pub(crate) fn new(handlers: usize, tool: &str) -> Self {
        let limits = Limits::default();
        let log = AuditLog::new(limits.audit_per_session, limits.max_sessions);
        let session = SessionKey { tenant: "default".into(), session: "s".into() };
        Call {
            dispatcher: Dispatcher::new(Arc::new(Allow), log, DispatchKey::random(), &limits),
            hooks: Arc::new(hooks(handlers, tool)),
            occasion: Occasion {
                name: Some("read".into()),
                ..Occasion::new(Event::PreToolUse, session, Plane::Model, "model")
            },
            detail: Detail::PreToolUse {
                tool_name: "read".to_owned(),
                input: Bytes::from_static(br#"{"path":"a.txt"}"#),
                server: None,
                declared: false,
            },
        }
    }

    pub(crate) async fn decide(&self) -> Verdict {
        self.dispatcher.gate(&self.hooks, &self.occasion, self.detail.clone(), None).await
    }
}

/// An answer of the model, as the pieces in which it arrives.
#[derive(Clone)]
pub(crate) struct Answer {
    media_type: &'static str,
    pieces: Arc<[Bytes]>,
}

impl Answer {
    /// A whole answer: some text, and a call when `call` is set.
    pub(crate) fn json(call: bool) -> Self {
        let message = Message::new("msg_1").text(&"Some words of an answer. ".repeat(20));
        let message = if call { message.tool("toolu_1", "read", r#"{"path":"a.txt"}"#) } else { message };
        Answer { media_type: "application/json", pieces: [message.json()].into() }
    }

    /// A streamed answer: one text in [`EVENTS`] events, and a call when `call` is set. The events arrive one by one, or
    /// as many at once as the network takes.
    pub(crate) fn streamed(call: bool, one_by_one: bool) -> Self {
        let delta = sse::event(
            "content_block_delta",
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some words"}}"#,
        );
        let message = Message::new("msg_1").text("");
        let message = if call { message.tool("toolu_1", "read", r#"{"path":"a.txt"}"#) } else { message };
        let mut events: Vec<Bytes> = split(&message.sse());
        let first_text = events.iter().position(|event| event.starts_with(b"event: content_block_stop"));
        let first_text = first_text.expect("the text block ends");
        events.splice(first_text..first_text, std::iter::repeat_n(delta, EVENTS));
        let pieces = if one_by_one {
            events
        } else {
            let stream = Bytes::from(events.concat());
            (0..stream.len()).step_by(CHUNK).map(|at| stream.slice(at..stream.len().min(at + CHUNK))).collect()
        };
        Answer { media_type: "text/event-stream", pieces: pieces.into() }
    }

    fn response(&self) -> Response<Body> {
        let frames: Vec<Result<Frame<Bytes>, Infallible>> =
            self.pieces.iter().map(|piece| Ok(Frame::data(piece.clone()))).collect();
        let mut response = Response::new(Body::wrap(StreamBody::new(stream::iter(frames))));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        response
    }
}

fn split(stream: &Bytes) -> Vec<Bytes> {
    let mut splitter = sse::Splitter::new(1 << 20);
    splitter.push(stream.clone());
    let mut events = Vec::new();
    while let Ok(Some(event)) = splitter.next() {
        events.push(splitter.slice(event.raw));
    }
    events
}

/// A request with a history of about that many bytes: calls and their results, then a prompt.
pub(crate) fn request(size: usize) -> Bytes {
    let result = "A line of a tool's result with \\\"quotes\\\" and \\n in it. ".repeat(20);
    let thought = "What the model says before it calls a tool. ".repeat(4);
    let mut messages = String::from(r#"{"role":"user","content":[{"type":"text","text":"Begin."}]}"#);
    let mut call = 0;
    while messages.len() < size {
        call += 1;
        messages.push_str(&format!(
            r#",{{"role":"assistant","content":[{{"type":"text","text":"{thought}"}},{{"type":"tool_use","id":"toolu_{call}","name":"read","input":{{"path":"a","limit":100}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{call}","content":"{result}"}}]}}"#
        ));
    }
    messages.push_str(r#",{"role":"user","content":"Go on."}"#);
    let tools = r#"{"name":"read","input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}"#;
    let head = r#""model":"m","max_tokens":1024,"stream":true,"system":"Be brief.""#;
    format!(r#"{{{head},"tools":[{tools}],"messages":[{messages}]}}"#).into()
}

/// One exchange from the agent's request to the last byte of the answer; gives the number of bytes.
pub(crate) async fn exchange(gate: &Hookgate, request: Bytes, answer: &Answer) -> usize {
    let answer = answer.clone();
    let upstream = service_fn(move |request: Request<Body>| {
        let answer = answer.clone();
        async move {
            drain(request.into_body()).await;
            Ok::<_, Infallible>(answer.response())
        }
    });
    let service = HookLayer::new(gate.clone(), Route::model("anthropic")).layer(upstream);
    let request = Request::post("/v1/messages").body(Body::from(request)).expect("the request is well formed");
    match service.oneshot(request).await {
        Ok(response) => {
            assert_eq!(response.status(), StatusCode::OK);
            drain(response.into_body()).await
        }
        Err(never) => match never {},
    }
}

async fn drain<B: http_body::Body<Data = Bytes> + Unpin>(mut body: B) -> usize {
    let mut bytes = 0;
    while let Some(Ok(frame)) = body.frame().await {
        bytes += frame.data_ref().map_or(0, Bytes::len);
    }
    bytes
}
