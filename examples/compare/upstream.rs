//! The scripted other side: a model that answers as the request's header says, a policy that allows everything, and an MCP
//! server with one tool.

use std::convert::Infallible;
use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{Stream, StreamExt, stream};
use hookgate::testing::Message;
use hookgate::wire::sse;
use tokio::time::{Instant, sleep_until};

/// The header that says how to answer.
pub(crate) const ANSWER: &str = "x-answer";
/// Text events of a streamed answer.
pub(crate) const EVENTS: usize = 200;
/// From one of them to the next, when they come one by one.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);
/// Text events of a slow answer, and from one to the next.
pub(crate) const SLOW_EVENTS: usize = 7;
const SLOW_PAUSE: Duration = Duration::from_secs(2);

/// A whole answer of about 1 KB.
static JSON: LazyLock<Bytes> = LazyLock::new(|| said().json());
/// The same with a call that the policy is asked about.
static CALL: LazyLock<Bytes> = LazyLock::new(|| called(said()).json());
/// The events before and after the text of a streamed answer.
static TEXT: LazyLock<Frame> = LazyLock::new(|| Frame::of(&Message::new("msg_1").text("").sse(), "content_block_stop"));
/// The same with a call after the text.
static TEXT_AND_CALL: LazyLock<Frame> =
    LazyLock::new(|| Frame::of(&called(Message::new("msg_1").text("")).sse(), "content_block_stop"));
/// The events before a call ends.
static UNFINISHED: LazyLock<Frame> =
    LazyLock::new(|| Frame::of(&called(Message::new("msg_1")).sse(), "content_block_stop"));

/// Serves until the process ends.
pub(crate) async fn serve(address: &str) -> std::io::Result<()> {
    let app = Router::new()
        .route("/v1/messages", post(answer))
        .route("/policy", post(policy))
        .route("/mcp", post(mcp))
        // hookgate's path behind its route's prefix is "/".
        .route("/mcp/", post(mcp))
        .layer(axum::extract::DefaultBodyLimit::disable());
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true))), app).await
}

async fn policy(_: Bytes) -> Response {
    json(Bytes::from_static(br#"{"schemaVersion":1,"outcome":"pass"}"#))
}

async fn mcp(axum::Json(call): axum::Json<Call>) -> Response {
    json(Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":"What the file says."}}],"isError":false}}}}"#,
        call.id
    )))
}

/// The call of a tool, whose result names it.
#[derive(serde::Deserialize)]
struct Call {
    id: u64,
}

async fn answer(headers: HeaderMap, _: Bytes) -> Response {
    match headers.get(ANSWER).map(|value| value.as_bytes()) {
        Some(b"call") => json(CALL.clone()),
        Some(b"at-once") => TEXT.around(stream::iter((0..EVENTS).map(|_| stamped()))),
        Some(b"one-by-one") => TEXT.around(paced(EVENTS, PAUSE)),
        Some(b"one-by-one, call") => TEXT_AND_CALL.around(paced(EVENTS, PAUSE)),
        Some(b"slow") => TEXT.around(paced(SLOW_EVENTS, SLOW_PAUSE)),
        Some(b"unfinished call") => UNFINISHED.around(stream::pending()),
        _ => json(JSON.clone()),
    }
}

fn json(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn said() -> Message {
    Message::new("msg_1").text(&"Some words of an answer. ".repeat(36))
}

fn called(message: Message) -> Message {
    message.tool("toolu_1", "deploy", r#"{"to":"staging"}"#)
}

/// Text events at fixed times, so that a slow reader does not slow them.
fn paced(events: usize, pause: Duration) -> impl Stream<Item = Bytes> {
    let start = Instant::now();
    stream::iter(0..events).then(move |event| async move {
        sleep_until(start + pause * event as u32).await;
        stamped()
    })
}

/// A text event that says when it was sent.
fn stamped() -> Bytes {
    let now = jiff::Timestamp::now().as_nanosecond();
    let data = format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":" some words @{now}@"}}}}"#
    );
    sse::event("content_block_delta", &data)
}

/// How long ago the event was sent, when it says so.
pub(crate) fn age(data: &[u8]) -> Option<Duration> {
    let sent: i128 = std::str::from_utf8(data).ok()?.split('@').nth(1)?.parse().ok()?;
    Some(Duration::from_nanos((jiff::Timestamp::now().as_nanosecond() - sent).try_into().ok()?))
}

/// The events of a streamed answer around those in its middle.
struct Frame {
    before: Vec<Bytes>,
    after: Vec<Bytes>,
}

impl Frame {
    /// Parts a stream before the first event of that name.
    fn of(answer: &Bytes, name: &str) -> Frame {
        let mut splitter = sse::Splitter::new(answer.len());
        splitter.push(answer.clone());
        let mut frame = Frame { before: Vec::new(), after: Vec::new() };
        while let Ok(Some(event)) = splitter.next() {
            let part = if frame.after.is_empty() && splitter.name(&event) != name.as_bytes() {
                &mut frame.before
            } else {
                &mut frame.after
            };
            part.push(splitter.slice(event.raw));
        }
        frame
    }

    fn around(&'static self, events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
        let before = stream::iter(self.before.iter().cloned());
        let after = stream::iter(self.after.iter().cloned());
        let body = before.chain(events).chain(after).map(Ok::<_, Infallible>);
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(body)).into_response()
    }
}
