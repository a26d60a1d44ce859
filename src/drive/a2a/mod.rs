//! Routes to agents that speak A2A: delegations are decided before they are forwarded, what becomes of them is told wherever it
//! is seen, and the agents' cards lead to the route.

mod asked;
mod card;
mod exchange;
mod forward;
mod outcome;
mod start;
mod state;
mod watcher;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header, request};

pub(super) use self::exchange::run;
pub(super) use self::state::State;
use crate::Body;
use crate::wire::a2a::{Binding, Surface, grpc_message, rest_error};
use crate::wire::jsonrpc;

/// What a request is for, as far as its head tells.
#[derive(Clone, Debug)]
pub(super) struct Target {
    surface: Surface,
    /// The path without the route's own part.
    path: Arc<str>,
}

impl Target {
    pub(super) fn of(head: &request::Parts, path: &str) -> Self {
        Target { surface: Surface::of(&head.method, path), path: path.into() }
    }

    /// Whether an agent's card is asked for. It leads to the route whether there are hooks or not: clients keep it.
    pub(super) fn is_card(&self) -> bool {
        matches!(self.surface, Surface::Card { .. })
    }

    /// Whether there is nothing to be read in the request, nor in its answer. While a handler gates, no other protocol may
    /// follow: nobody would read that.
    pub(super) fn is_nothing(&self, head: &request::Parts, gates: bool) -> bool {
        self.surface == Surface::Bodiless && !(gates && head.headers.contains_key(header::UPGRADE))
    }

    /// An error answer in the shape of the binding.
    pub(super) fn refusal(&self, status: StatusCode, code: i32, message: &str) -> Response<Body> {
        refusal(self.binding(), status, None, code, message)
    }

    fn binding(&self) -> Binding {
        match self.surface {
            Surface::Rest(_) | Surface::Card { .. } => Binding::Rest,
            Surface::Rpc | Surface::Bodiless => Binding::Rpc,
        }
    }
}

/// Whether a request is of the gRPC binding, which hookgate cannot read.
pub(super) fn is_grpc(head: &request::Parts) -> bool {
    let media = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    media.get(..16).is_some_and(|start| start.eq_ignore_ascii_case(b"application/grpc"))
}

/// The answer to a request of the gRPC binding, in its own form.
pub(super) fn refuse_grpc() -> Response<Body> {
    let why = "hookgate does not read the gRPC binding of A2A, and a hook that may refuse or change something is \
               configured; use JSON-RPC or HTTP+JSON";
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    // UNIMPLEMENTED
    headers.insert("grpc-status", HeaderValue::from_static("12"));
    headers.extend(
        HeaderValue::from_str(&grpc_message(why)).map(|why| (http::HeaderName::from_static("grpc-message"), why)),
    );
    response
}

/// An error answer of hookgate's own; `id` is the request's, where one is known. An answer of JSON-RPC to a request that was
/// read has status 200, as clients expect it.
fn refusal(binding: Binding, status: StatusCode, id: Option<&[u8]>, code: i32, message: &str) -> Response<Body> {
    match binding {
        Binding::Rest => answer(status, "application/json", rest_error(status, message)),
        Binding::Rpc if id.is_some() && status.is_client_error() => {
            answer(StatusCode::OK, "application/json", jsonrpc::error(id, code, message))
        }
        Binding::Rpc => answer(status, "application/json", jsonrpc::error(id, code, message)),
    }
}

fn answer(status: StatusCode, media_type: &'static str, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
