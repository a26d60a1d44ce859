//! One configured handler, as a document declared it.

use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::{Event, FailureMode, Matcher};

/// Someone to ask or to tell at one event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Handler {
    /// Unique over all documents; named in reasons, logs, metrics and audit records.
    pub id: Arc<str>,
    /// The event that it handles.
    pub event: Event,
    /// Where it is.
    pub target: Target,
    /// Which names concern it.
    pub matcher: Matcher,
    /// The time for connecting and answering together.
    pub timeout: Duration,
    /// What its failure means.
    pub failure_mode: FailureMode,
    /// How it is spoken to.
    pub dialect: Dialect,
    /// The named connection that holds its credential.
    pub connection: Option<Arc<str>>,
    /// The document that declared it.
    pub source: Arc<str>,
}

/// Where a handler is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// It answers POST requests.
    Http {
        /// The absolute address, without user information and fragment.
        url: Url,
    },
}

/// The JSON that goes to a handler and comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The native contract, version 1.
    Native,
    /// That of Claude Code's HTTP hooks.
    ClaudeCode,
}

impl Dialect {
    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Native => "native",
            Dialect::ClaudeCode => "claude-code",
        }
    }
}
