//! What a handler can answer, and the ways in which it can fail.

use bytes::Bytes;

/// A handler's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutcomeKind {
    /// No objection.
    Pass,
    /// Refuse.
    Deny,
    /// Go on with something else in its place.
    Modify,
    /// Do not end the turn yet.
    Continue,
}

impl OutcomeKind {
    /// Every outcome.
    pub const ALL: [OutcomeKind; 4] =
        [OutcomeKind::Pass, OutcomeKind::Deny, OutcomeKind::Modify, OutcomeKind::Continue];

    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            OutcomeKind::Pass => "pass",
            OutcomeKind::Deny => "deny",
            OutcomeKind::Modify => "modify",
            OutcomeKind::Continue => "continue",
        }
    }

    /// The outcome of a name.
    pub fn parse(name: &str) -> Option<OutcomeKind> {
        OutcomeKind::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

/// What a handler puts in the place of the prompt or the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// A prompt.
    Text(String),
    /// A tool's input: the JSON text of an object, as the handler wrote it.
    Object(Bytes),
}

/// A handler's answer, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No objection.
    Pass {
        /// Text for the model.
        context: Option<String>,
    },
    /// Refuse.
    Deny {
        /// Why, for the model to read.
        reason: Option<String>,
    },
    /// Go on with something else.
    Modify {
        /// What to go on with.
        replacement: Replacement,
        /// Text for the model.
        context: Option<String>,
    },
    /// Do not end the turn yet.
    Continue {
        /// What is still to be done, for the model to read.
        reason: Option<String>,
    },
}

/// The classes of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// It could not be reached, or the connection broke.
    Transport,
    /// It took too long.
    Timeout,
    /// Its answer's status was another one.
    Status,
    /// Its answer did not follow the contract.
    Malformed,
    /// Its outcome is not one of the event's.
    Outcome,
    /// Its answer, reason or context was over its cap.
    TooLarge,
    /// Its host is not on the list of allowed hosts.
    BlockedHost,
    /// What it should have judged is over `max_gated_bytes`.
    TooLargeInput,
    /// Its replacement does not fit the tool's own schema.
    Schema,
    /// What it should have judged cannot be read without doubt.
    MalformedInput,
}

impl FailureKind {
    /// The name in audit records and metrics.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Transport => "transport",
            FailureKind::Timeout => "timeout",
            FailureKind::Status => "status",
            FailureKind::Malformed => "malformed",
            FailureKind::Outcome => "outcome",
            FailureKind::TooLarge => "too_large",
            FailureKind::BlockedHost => "blocked_host",
            FailureKind::TooLargeInput => "too_large_input",
            FailureKind::Schema => "schema",
            FailureKind::MalformedInput => "malformed_input",
        }
    }
}

impl serde::Serialize for FailureKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// That a handler failed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class.
    pub kind: FailureKind,
    /// The cause in a few words, for a reason or a log: nothing of the payload, no secret.
    pub cause: String,
    /// A refusal that could be read in spite of the failure: it stands, whatever the failure mode.
    pub deny: Option<Salvaged>,
}

/// A refusal read from an answer that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// Its reason, cut at the cap.
    pub reason: Option<String>,
}

impl Failure {
    /// A failure without a readable refusal.
    pub fn new(kind: FailureKind, cause: impl Into<String>) -> Self {
        Failure { kind, cause: cause.into(), deny: None }
    }
}
