//! How requests reach handlers: a seam, so that a service can bring its own client and tests need no network.

use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, StatusCode};

/// Carries a request to a handler.
///
/// An implementation follows no redirect, obeys no proxy variable of the environment, adds nothing of the agent's
/// request, and stops reading as soon as the answer's body has passed `limit` bytes. The caller bounds the time and
/// drops the future when it is over.
pub trait HandlerTransport: Send + Sync + 'static {
    /// Sends the request and reads the answer.
    fn send(
        &self,
        request: http::Request<Bytes>,
        limit: usize,
    ) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>>;
}

/// What came back.
#[derive(Clone, Debug)]
pub struct HandlerAnswer {
    /// The status.
    pub status: StatusCode,
    /// The header.
    pub headers: HeaderMap,
    /// The body, as far as it was read.
    pub body: AnswerBody,
}

/// The body of an answer.
#[derive(Clone, Debug)]
pub enum AnswerBody {
    /// All of it.
    Complete(Bytes),
    /// It passed the limit: its first bytes.
    TooLarge(Bytes),
}

/// Why no answer came.
#[derive(Clone, Debug)]
pub struct TransportError {
    cause: String,
}

impl TransportError {
    /// An error with its cause in a few words: it ends up in reasons and audit records, so it must hold no secret.
    pub fn new(cause: impl Into<String>) -> Self {
        TransportError { cause: cause.into() }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for TransportError {}

/// The named connection whose credential a request is to carry: an extension of the request, resolved by the transport
/// at the last moment, so that no other part of hookgate ever holds the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionName(pub std::sync::Arc<str>);
