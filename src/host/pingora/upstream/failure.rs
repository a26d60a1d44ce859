//! What went wrong with an upstream, in words that are fit for the client.

use pingora::{Error, ErrorType, RetryType};

use crate::upstream::{UpstreamError, UpstreamErrorKind};

/// How pingora says that the answer had not begun. (No number but 0 starts with a 0.)
const NOTHING_READ: &str = "bytes already read: 0";

/// Says it in terms of the upstream. pingora's own text is not shown: it may quote what was sent or received.
pub(in crate::host::pingora) fn explain(upstream: &str, error: &Error) -> UpstreamError {
    use UpstreamErrorKind::{Connect, Other, Protocol, Timeout};
    let (kind, what) = match error.etype() {
        ErrorType::ConnectTimedout | ErrorType::TLSHandshakeTimedout => (Timeout, "connecting took too long"),
        ErrorType::ConnectRefused => (Connect, "the connection was refused"),
        ErrorType::ConnectNoRoute => (Connect, "there is no route to it"),
        ErrorType::TLSHandshakeFailure | ErrorType::HandshakeError => (Connect, "the TLS handshake failed"),
        ErrorType::InvalidCert => (Connect, "its certificate cannot be used"),
        ErrorType::ConnectError | ErrorType::SocketError | ErrorType::ConnectProxyFailure => {
            (Connect, "there is no connection to it")
        }
        ErrorType::ReadTimedout => (Timeout, "it was silent for too long"),
        ErrorType::WriteTimedout => (Timeout, "it did not take the request in time"),
        ErrorType::ConnectionClosed | ErrorType::ReadError => {
            (Protocol, "it closed the connection before its answer was complete")
        }
        ErrorType::WriteError => (Protocol, "it closed the connection before it had the request"),
        ErrorType::InvalidHTTPHeader | ErrorType::H1Error => (Protocol, "its answer is not valid HTTP"),
        ErrorType::H2Error | ErrorType::H2Downgrade | ErrorType::InvalidH2 => {
            (Protocol, "it broke off the HTTP/2 stream")
        }
        _ => (Other, "the exchange failed"),
    };
    match cause(error).filter(|_| kind == Connect) {
        Some(cause) => UpstreamError::new(kind, format!("{upstream}: {what} ({cause})")),
        None => UpstreamError::new(kind, format!("{upstream}: {what}")),
    }
}

/// The system's or the TLS library's own words about a connection that was not made: nothing was sent yet.
fn cause(error: &Error) -> Option<String> {
    let mut cause = error.cause.as_deref()?;
    while let Some(wrapper) = cause.downcast_ref::<Error>() {
        cause = wrapper.cause.as_deref()?;
    }
    Some(cause.to_string())
}

/// Whether a request may be sent again although it is not idempotent: the upstream said that it did nothing with it, or
/// it went out on a kept connection that turned out to be closed, and not one byte of an answer came.
pub(in crate::host::pingora) fn may_retry(error: &Error, reused: bool) -> bool {
    match (error.etype(), &error.retry) {
        (ErrorType::H2Error | ErrorType::H2Downgrade, RetryType::Decided(retry)) => *retry,
        (ErrorType::WriteError, _) => reused,
        // pingora marks these whether or not a part of the answer came, and has the count in its text only.
        (ErrorType::ConnectionClosed | ErrorType::ReadError, RetryType::ReusedOnly) => {
            reused && (error.to_string().contains(NOTHING_READ) || !error.to_string().contains("bytes already read"))
        }
        _ => false,
    }
}
