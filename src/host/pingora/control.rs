//! The control surface: hookgate's own paths, answered by its router.

use std::time::Duration;

use axum::Router;
use bytes::BytesMut;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use pingora::Result;
use pingora::protocols::http::ServerSession;
use tower::ServiceExt as _;

use super::gateway::{NO_URI, authority};
use super::guard::Guard;
use super::respond;
use crate::body::Body;
use crate::problem::problem;

/// The largest request that the control surface reads.
const MAX_BODY: usize = 1 << 20;
/// The longest time for it to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Answers one request. `target` is the path that was routed, with the query: the gate and the router see the same.
pub(super) async fn serve(session: &mut ServerSession, router: &Router, guard: &Guard, target: &str) -> Result<()> {
    let Ok(uri) = Uri::try_from(target) else {
        return respond::refuse(session, problem(StatusCode::BAD_REQUEST, NO_URI)).await;
    };
    let mut head = session.req_header().as_owned_parts();
    head.uri = uri;
    // HTTP/2 has it in the URI.
    let host = authority(session.req_header()).and_then(|host| HeaderValue::from_str(host).ok());
    if let (false, Some(host)) = (head.headers.contains_key(header::HOST), host) {
        head.headers.insert(header::HOST, host);
    }
    if let Some(refusal) = guard.control(session, &mut head).await {
        return respond::refuse(session, refusal).await;
    }
    let Some(body) = read_body(session).await? else {
        let detail = format!("the control surface takes at most {MAX_BODY} bytes, within {} s", BODY_TIME.as_secs());
        return respond::refuse(session, problem(StatusCode::PAYLOAD_TOO_LARGE, &detail)).await;
    };
    let request = Request::from_parts(head, axum::body::Body::from(body.freeze()));
    // Whoever left while it was waited for a message does not take it. A router answers everything; its error has no values.
    let Ok(response) = respond::unless_gone(session, || router.clone().oneshot(request)).await?;
    respond::answer(session, response.map(Body::wrap)).await
}

async fn read_body(session: &mut ServerSession) -> Result<Option<BytesMut>> {
    let mut body = BytesMut::new();
    if respond::declared_length(session).is_some_and(|length| length > MAX_BODY as u64) {
        return Ok(None);
    }
    if respond::waits_for_continue(session) {
        respond::ask_for_body(session).await?;
    }
    let read = async {
        while let Some(data) = session.read_request_body().await? {
            body.extend_from_slice(&data);
            if body.len() > MAX_BODY {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match tokio::time::timeout(BODY_TIME, read).await {
        Ok(read) => Ok(read.map_err(|error: Box<pingora::Error>| error.into_down())?.then_some(body)),
        Err(_) => Ok(None),
    }
}
