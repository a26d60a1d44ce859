//! Requests to the upstream.

use http::{HeaderValue, Request, header, request};

use super::rebodied;
use crate::Body;
use crate::wire::json::Rope;

/// A request with this body. `inspect_answer`: the answer is to come in a form that can be read; `edited`: the body is not
/// the one that was received.
pub(super) fn request(head: &request::Parts, body: Rope, inspect_answer: bool, edited: bool) -> Request<Body> {
    let mut head = head.clone();
    if edited {
        rebodied::strip_of_body(&mut head.headers);
    }
    if inspect_answer {
        head.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let framed = head.headers.remove(header::TRANSFER_ENCODING).is_some();
    // A request that never had a body does not get a length either.
    if !body.is_empty() || framed || edited || head.headers.contains_key(header::CONTENT_LENGTH) {
        head.headers.insert(header::CONTENT_LENGTH, body.len().into());
    }
    Request::from_parts(head, Body::from(body))
}
