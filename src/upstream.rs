//! The seam to the servers behind hookgate: what a host supplies so that the core can call them.

use std::fmt;

use futures_util::future::BoxFuture;
use http::StatusCode;

use crate::body::Body;

/// One route's way to its upstream.
///
/// The core calls it once for what the client asked and again for each continuation. A host supplies it.
///
/// The rules:
/// 1. The request's URI is path and query only; what the upstream's own URL adds is the implementation's business,
///    and so are `host`, hop-by-hop headers, framing and the upstream's credential.
/// 2. The future ends when the head of the final answer is there. Dropping it before gives the call up: the connection
///    is closed or the stream reset at once.
/// 3. The answer's body ends with an error when it broke off. Dropping it early gives the call up as in rule 2.
/// 4. An answer is an answer, whatever its status; an error means that there was none.
pub trait Upstream: Send + Sync + 'static {
    /// Sends one request.
    fn call(&self, request: http::Request<Body>) -> BoxFuture<'static, Result<http::Response<Body>, UpstreamError>>;
}

/// Why there is no answer of an upstream.
///
/// The message names the upstream and the cause, for logs and for the client. It never holds a credential, a path or a
/// query.
///
/// ```
/// use hookgate::{UpstreamError, UpstreamErrorKind};
/// let error = UpstreamError::new(UpstreamErrorKind::Connect, "api.example.com: connection refused");
/// assert_eq!(error.to_string(), "api.example.com: connection refused");
/// ```
#[derive(Debug)]
pub struct UpstreamError {
    kind: UpstreamErrorKind,
    message: String,
}

/// What kind of failure an [`UpstreamError`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpstreamErrorKind {
    /// There was no connection: name not found, refused, unreachable, TLS failed. Nothing was sent.
    Connect,
    /// A limit of time passed: connecting, waiting for the first byte, or within the answer.
    Timeout,
    /// What came is not HTTP, or it broke off.
    Protocol,
    /// Anything else.
    Other,
}

impl UpstreamError {
    /// An error of that kind. `message` must be fit for the client: see [`UpstreamError`].
    pub fn new(kind: UpstreamErrorKind, message: impl Into<String>) -> Self {
        UpstreamError { kind, message: message.into() }
    }

    /// The status of an answer that stands for the missing one.
    pub(crate) fn status(&self) -> StatusCode {
        match self.kind {
            UpstreamErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> UpstreamErrorKind {
        self.kind
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for UpstreamError {}
