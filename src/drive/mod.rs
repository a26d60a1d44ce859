//! The one place where the machines of `intercept` meet the dispatcher, the ledger and the upstream.

mod body;
mod core;
mod route;

pub use self::body::GuardedBody;
pub use self::core::{Hookgate, HookgateBuilder, HooksMode};
pub use self::route::{Inspection, OnDeny, Plan, Route, RouteKind, Subagent};
