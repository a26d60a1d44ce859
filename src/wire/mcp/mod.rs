//! The Model Context Protocol over Streamable HTTP: what of its messages hookgate has to understand.
//!
//! Two families of revisions are spoken. The *legacy* ones (2025-03-26 to 2025-11-25) begin with a handshake and have
//! sessions, streams that the client opens and resumes, and requests of the server. The *modern* one (2026-07-28) has none of
//! these: each request stands for itself, names its revision, method and tool in headers too, and one call of a tool may take
//! several of them.

mod answer;
mod call;
mod headers;
mod tools;

pub use answer::{ToolAnswer, add_text, denied, read_answer};
pub use call::CallParams;
pub use headers::{HEADER_MISMATCH, Mirrored, Revision, SESSION, mirrored, mismatch};
pub use tools::{ListedTool, ToolList};
