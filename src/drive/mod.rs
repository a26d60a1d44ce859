//! The one place where the machines of `intercept` meet the dispatcher, the ledger and the upstream.

mod a2a;
mod answer;
mod body;
mod callbacks;
mod core;
mod correlation;
mod decide;
mod decode;
mod exchange;
mod http_tool;
mod identity;
mod mcp;
mod meter;
mod origin;
mod outgoing;
mod prompts;
pub(crate) mod rebodied;
mod results;
mod route;
#[cfg(feature = "mcp")]
mod screen;
mod sessions;
mod stream;
mod tasks;
mod tool;
mod whole;

pub use self::body::GuardedBody;
pub use self::core::{Hookgate, HookgateBuilder, HooksMode};
#[cfg(feature = "tower")]
pub(crate) use self::exchange::NoAnswer;
pub use self::http_tool::{DuplicateTool, HttpTool, HttpTools};
#[cfg(feature = "control")]
pub(crate) use self::origin::Origin;
pub use self::route::{Inspection, OnDeny, Plan, Route, RouteKind, Subagent};
pub use self::tasks::{StartedTask, TaskError};
