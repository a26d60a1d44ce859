//! Server-sent events as received bytes.
//!
//! [`Splitter`] cuts a stream into whole events at the line ends that the standard knows (LF, CRLF, CR, mixed, and cut
//! anywhere by the network) without changing a byte: the ranges of the events, put together, are the stream.

mod splitter;

pub use splitter::{Event, Splitter, TooLarge};

use bytes::Bytes;

/// Prints one event with a name and a line of data, as the Anthropic and Responses protocols have it.
///
/// ```
/// assert_eq!(hookgate::wire::sse::event("ping", "{}"), "event: ping\ndata: {}\n\n");
/// ```
pub fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// Prints one event with nothing but a line of data.
///
/// ```
/// assert_eq!(hookgate::wire::sse::data(b"{}"), "data: {}\n\n");
/// ```
pub fn data(data: &[u8]) -> Bytes {
    [b"data: ", data, b"\n\n"].concat().into()
}
