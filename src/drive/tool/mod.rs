//! What all routes to tools have in common: whose traffic it is, asking about a call, telling what came of it, and looking
//! at answers while they pass.

mod plane;
mod tap;

pub(super) use plane::{Outcome, ToolCall, ToolPlane, ToolVerdict};
pub(super) use tap::{Watch, watch};
