//! The trail of decisions: one record for each run of a handler, and for what was decided without one.
//!
//! Records say who decided what, when and why. They never hold a prompt, an argument, a result or a transcript.

mod log;
mod query;
mod record;

pub use log::AuditLog;
pub use query::{AuditQuery, Page};
pub use record::{AuditOutcome, AuditRecord};
