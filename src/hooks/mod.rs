//! What operators write about hooks, and what handlers are told and may answer. Nothing here waits or reads a clock.

mod allowed_hosts;
mod dialect;
mod document;
mod document_url;
mod envelope;
mod errors;
mod event;
mod handler;
mod matcher;
mod outcome;
mod redact;
mod set;
mod writer;

pub(crate) use dialect::Received;
pub(crate) use envelope::Envelope;
pub use envelope::{Attachment, Detail, Occasion, Plane};
pub use errors::{HookError, HookErrors};
pub use event::{Event, FailureMode, Names};
pub use handler::{Dialect, Handler, Target};
pub use matcher::{Matcher, qualified};
pub use outcome::{Answer, Failure, FailureKind, OutcomeKind, Replacement, Salvaged};
pub use redact::{Redact, Redaction};
pub use set::{HookSet, HookSetBuilder};
