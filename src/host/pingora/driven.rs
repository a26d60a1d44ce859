//! The inspected exchange: the whole request is read, the core runs it, its answer is written as it comes.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response, request};
use pingora::prelude::timeout;
use pingora::protocols::http::ServerSession;
use pingora::{Error, ErrorType, Result};

use super::public::Public;
use super::respond;
use crate::body::Body;
use crate::upstream::Upstream;
use crate::{Hookgate, Inspection};

/// The longest silence within a request body.
const BODY_SILENCE: Duration = Duration::from_secs(60);
/// The buffer for a request body starts at what the client declares, but not above this: a declaration costs nothing.
const MAX_FIRST_BUFFER: u64 = 4 << 20;

/// Runs one inspected exchange to its end. `head` is the request's with the path that the core is to see; `public` is where the
/// outside reaches the route, and the path behind its prefix.
///
/// # Errors
/// The client went away or the answer broke off; see [`respond::answer`].
pub(super) async fn exchange(
    session: &mut ServerSession,
    core: &Hookgate,
    inspection: Inspection,
    head: request::Parts,
    upstream: Arc<dyn Upstream>,
    public: Option<(&Public, &str)>,
) -> Result<()> {
    let body = match read_body(session, &inspection).await? {
        Ok(body) => body,
        Err(refusal) => return respond::refuse(session, refusal).await,
    };
    let request = Request::from_parts(head, body);
    let mut response = respond::unless_gone(session, || core.exchange(inspection, request, upstream)).await?;
    if let Some((public, rest)) = public {
        public.rewrite(&mut response, rest);
    }
    respond::answer(session, response).await
}

/// Reads the request's body, or says what to answer instead. A body whose length is declared too large is refused
/// before any of it is read or asked for.
async fn read_body(
    session: &mut ServerSession,
    inspection: &Inspection,
) -> Result<std::result::Result<Bytes, Response<Body>>> {
    let limit = inspection.body_limit();
    let declared = respond::declared_length(session);
    if declared.is_some_and(|length| length > limit as u64) {
        return Ok(Err(inspection.too_large(declared)));
    }
    if session.is_body_done() {
        return Ok(Ok(Bytes::new()));
    }
    if respond::waits_for_continue(session) {
        respond::ask_for_body(session).await?;
    }
    let mut body = BytesMut::with_capacity(declared.unwrap_or(0).min(MAX_FIRST_BUFFER) as usize);
    loop {
        let read = timeout(BODY_SILENCE, session.read_request_body()).await;
        match read {
            Ok(Ok(Some(data))) if data.len() > limit - body.len() => return Ok(Err(inspection.too_large(None))),
            Ok(Ok(Some(data))) => body.extend_from_slice(&data),
            Ok(Ok(None)) => return Ok(Ok(body.freeze())),
            Ok(Err(error)) if is_closed(&error) => return Err(error.into_down()),
            Ok(Err(error)) if *error.etype() != ErrorType::ReadTimedout => {
                return Ok(Err(inspection.unreadable("its framing is not valid HTTP")));
            }
            Ok(Err(_)) | Err(_) => {
                let why = format!("nothing came for {} s", BODY_SILENCE.as_secs());
                return Ok(Err(inspection.unreadable(&why)));
            }
        }
    }
}

fn is_closed(error: &Error) -> bool {
    matches!(error.etype(), ErrorType::ConnectionClosed | ErrorType::ReadError | ErrorType::H2Error)
}
