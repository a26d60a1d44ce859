//! Answers that hookgate gives itself.

use bytes::Bytes;

use crate::wire::json::quote_into;

/// An error answer. `id` is the request's id as it was written; without one it is `null`, as the standard asks for what
/// could not be read.
///
/// ```
/// use hookgate::wire::jsonrpc::{INVALID_REQUEST, error};
/// let body = error(Some(b"\"q-1\""), INVALID_REQUEST, "no");
/// assert_eq!(body, r#"{"jsonrpc":"2.0","id":"q-1","error":{"code":-32600,"message":"no"}}"#);
/// ```
pub fn error(id: Option<&[u8]>, code: i32, message: &str) -> Bytes {
    let mut out = begin(id);
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    quote_into(&mut out, message);
    out.extend_from_slice(b"}}");
    out.into()
}

/// A good answer; `result` is JSON text.
///
/// ```
/// assert_eq!(hookgate::wire::jsonrpc::result(b"7", b"{}"), r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
/// ```
pub fn result(id: &[u8], result: &[u8]) -> Bytes {
    let mut out = begin(Some(id));
    out.extend_from_slice(b",\"result\":");
    out.extend_from_slice(result);
    out.push(b'}');
    out.into()
}

fn begin(id: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.unwrap_or(b"null"));
    out
}
