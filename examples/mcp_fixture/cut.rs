//! Ends the stream of a call of `test_reconnection` after its first event, which only says how to come again, and holds the
//! result back until the client has. Servers do that with long calls, so that no connection stays open for them.

use std::collections::HashSet;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header, request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::sync::watch;

const TOOL: &str = "test_reconnection";
const SESSION: &str = "mcp-session-id";
const MAX_REQUEST: usize = 4 << 20;
/// How long a result is held back at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// The sessions whose client came again.
#[derive(Clone, Default)]
pub(crate) struct Again(watch::Sender<HashSet<String>>);

impl Again {
    /// Waits until the client of a call came again. rmcp keeps no result for one that comes after it.
    pub(crate) async fn wait(&self, context: &RequestContext<RoleServer>) {
        let head = context.extensions.get::<request::Parts>();
        // Without sessions nothing is cut.
        let Some(session) = head.and_then(|head| head.headers.get(SESSION)?.to_str().ok()) else { return };
        let mut sessions = self.0.subscribe();
        drop(tokio::time::timeout(PATIENCE, sessions.wait_for(|sessions| sessions.contains(session))).await);
        self.0.send_if_modified(|sessions| sessions.remove(session));
    }
}

pub(crate) async fn streams(State(again): State<Again>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let session = head.headers.get(SESSION).and_then(|session| session.to_str().ok()).map(str::to_owned);
    let comes_again = head.headers.contains_key("last-event-id");
    let cut = session.is_some() && calls_it(&body);
    let response = next.run(Request::from_parts(head, Body::from(body))).await;
    if let Some(session) = session.filter(|_| comes_again) {
        again.0.send_if_modified(|sessions| sessions.insert(session));
    }
    let is_stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    if !(cut && is_stream) {
        return response;
    }
    response.map(|body| Body::from_stream(body.into_data_stream().take(1)))
}

fn calls_it(body: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    message["method"] == "tools/call" && message["params"]["name"] == TOOL
}
