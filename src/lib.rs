//! hookgate: lifecycle hooks for AI agents, on the wire.
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub, unnameable_types)]

mod body;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "pingora")]
pub mod host;
pub mod id;
pub mod limits;
pub mod time;
mod upstream;
pub mod wire;

pub use body::{Body, BoxError};
pub use upstream::{Upstream, UpstreamError, UpstreamErrorKind};
