//! hookgate: lifecycle hooks for AI agents, on the wire.
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub, unnameable_types)]

pub mod audit;
mod body;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "control")]
pub mod control;
pub mod dispatch;
mod drive;
pub mod hooks;
pub mod host;
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
#[cfg(feature = "tower")]
pub use host::tower::{HookFuture, HookLayer, HookService};
pub use upstream::{Upstream, UpstreamError, UpstreamErrorKind};

/// The README's example is compiled and run.
#[cfg(all(doctest, feature = "tower", feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
