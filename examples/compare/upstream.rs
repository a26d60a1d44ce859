//! The scripted other side: a model that answers as the request's header says, and a policy that allows everything.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{StreamExt, stream};
use hookgate::testing::Message;
use hookgate::wire::sse;

/// The header that says how to answer.
pub(crate) const ANSWER: &str = "x-answer";
/// Text events of a streamed answer.
pub(crate) const EVENTS: usize = 200;
/// The pause between events that come one by one.
const PAUSE: Duration = Duration::from_millis(2);

/// Serves until the process ends.
pub(crate) async fn serve(address: &str) -> std::io::Result<()> {
    let app = Router::new()
        .route("/v1/messages", post(answer))
        .route("/policy", post(policy))
        .layer(axum::extract::DefaultBodyLimit::disable());
    let listener = tokio::net::TcpListener::bind(address).await?;
    axum::serve(axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true))), app).await
}

async fn policy(_: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], r#"{"schemaVersion":1,"outcome":"pass"}"#).into_response()
}

async fn answer(headers: HeaderMap, _: Bytes) -> Response {
    let message = Message::new("msg_1").text(&"Some words of an answer. ".repeat(20));
    let json = |body: Bytes| ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    match headers.get(ANSWER).map(|value| value.as_bytes()) {
        Some(b"burst") => events(Body::from(streamed().concat())),
        Some(b"events") => {
            let events_ = stream::iter(streamed()).then(|event| async {
                tokio::time::sleep(PAUSE).await;
                Ok::<_, Infallible>(event)
            });
            events(Body::from_stream(events_))
        }
        Some(b"call") => json(message.tool("toolu_1", "deploy", r#"{"to":"staging"}"#).json()),
        _ => json(message.json()),
    }
}

fn events(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// One text in many events.
fn streamed() -> Vec<Bytes> {
    let delta = sse::event(
        "content_block_delta",
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" some words"}}"#,
    );
    let whole = Message::new("msg_1").text("").sse();
    let mut splitter = sse::Splitter::new(1 << 20);
    splitter.push(whole);
    let mut events = Vec::new();
    while let Ok(Some(event)) = splitter.next() {
        let event = splitter.slice(event.raw);
        if event.starts_with(b"event: content_block_stop") {
            events.extend(std::iter::repeat_n(delta.clone(), EVENTS));
        }
        events.push(event);
    }
    events
}
