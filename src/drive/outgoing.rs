//! Requests to the upstream.

use http::{HeaderValue, Request, header, request};

use crate::Body;
use crate::wire::json::Rope;

/// A request with this body. `inspect_answer`: the answer is to come in a form that can be read; `edited`: the body is not
/// the one that was received.
pub(super) fn request(head: &request::Parts, body: Rope, inspect_answer: bool, edited: bool) -> Request<Body> {
    let mut head = head.clone();
    if edited {
        for name in ["content-encoding", "content-md5", "digest", "content-digest", "repr-digest"] {
            head.headers.remove(name);
        }
    }
    if inspect_answer {
        head.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    head.headers.remove(header::TRANSFER_ENCODING);
    head.headers.insert(header::CONTENT_LENGTH, body.len().into());
    Request::from_parts(head, Body::from(body))
}
