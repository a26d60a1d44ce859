//! Routes to MCP servers: calls of tools are decided before they are forwarded, their results are told wherever they come.

mod calls;
mod exchange;
mod forward;
mod list;
mod state;
mod watcher;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

pub(super) use self::exchange::run;
pub(super) use self::state::State;
use crate::Body;
use crate::wire::jsonrpc;

/// An answer of hookgate's own that is an error; `id` is the request's, where one is known.
pub(super) fn refusal(status: StatusCode, id: Option<&[u8]>, code: i32, message: &str) -> Response<Body> {
    answer(status, jsonrpc::error(id, code, message))
}

fn answer(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
