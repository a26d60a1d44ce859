//! Bytes and typed views of them. Nothing here waits, reads a clock or knows a hook.

pub mod a2a;
pub mod answer;
pub mod anthropic;
pub mod client;
pub mod codec;
pub mod conversation;
pub mod http_tool;
pub mod json;
pub mod jsonrpc;
pub mod mcp;
pub mod protocol;
pub(crate) mod same;
pub mod sse;
pub mod trace;
