//! hookgate: lifecycle hooks for AI agents, on the wire.
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub, unnameable_types)]

pub mod audit;
mod body;
pub mod dispatch;
mod drive;
pub mod hooks;
pub mod id;
mod intercept;
mod ledger;
pub mod limits;
#[cfg(feature = "test-util")]
pub mod testing;
pub mod time;
mod upstream;
pub mod wire;

pub use body::{Body, BoxError};
pub use drive::{
    GuardedBody, Hookgate, HookgateBuilder, HooksMode, Inspection, OnDeny, Plan, Route, RouteKind, Subagent,
};
pub use upstream::{Upstream, UpstreamError, UpstreamErrorKind};
