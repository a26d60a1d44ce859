//! Ends the stream of a call of `test_reconnection` after its first event, which only says how to come again: the client
//! gets the result when it does. Servers do that with long calls, so that no connection stays open for them.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde_json::Value;

const TOOL: &str = "test_reconnection";
const MAX_REQUEST: usize = 4 << 20;

pub(crate) async fn streams(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    // Only sessions keep what their client did not get.
    let cut = head.headers.contains_key("mcp-session-id") && calls_it(&body);
    let response = next.run(Request::from_parts(head, Body::from(body))).await;
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
