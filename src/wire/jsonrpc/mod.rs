//! JSON-RPC 2.0 envelopes, as spans of the received text: what MCP and A2A have in common.
//!
//! Nothing is repaired. An envelope that two readers could read differently (a member that stands twice) is malformed.

mod answer;
mod envelope;

pub use answer::{error, result};
pub use envelope::{Envelope, Kind, Malformed, Payload, read};

/// The text is not JSON.
pub const PARSE_ERROR: i32 = -32700;
/// The JSON is no request.
pub const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// The method cannot be called with these parameters.
pub const INVALID_PARAMS: i32 = -32602;
/// The server failed, or hookgate could not reach it.
pub const INTERNAL_ERROR: i32 = -32603;
