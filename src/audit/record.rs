//! One audit record.

use std::sync::Arc;

use serde::Serialize;

use crate::hooks::{Event, FailureKind, Occasion, OutcomeKind, Plane};
use crate::limits::MAX_REASON_BYTES;
use crate::time::Timestamp;

/// What came of a handler's run, or what was decided without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuditOutcome {
    /// No objection.
    Pass,
    /// Refused.
    Deny,
    /// Changed.
    Modify,
    /// The turn goes on.
    Continue,
    /// A person is asked.
    Ask,
    /// Left to ordinary policy.
    Defer,
    /// The turn ends.
    Stop,
    /// The handler failed, and its failure mode let it pass.
    FailedOpen,
    /// The handler failed, and its failure mode refused.
    FailedClosed,
    /// The client went away before the decision.
    Cancelled,
    /// A call was cut off by its own answer.
    Truncated,
    /// Something passed that no scanner knows.
    NotScanned,
    /// The input cannot be read without doubt.
    MalformedInput,
    /// A bound on repetitions ended it.
    Capped,
    /// Something was hidden.
    Redacted,
    /// Records or dispatches were lost here.
    Gap,
}

impl AuditOutcome {
    /// Every outcome.
    pub const ALL: [AuditOutcome; 16] = [
        AuditOutcome::Pass,
        AuditOutcome::Deny,
        AuditOutcome::Modify,
        AuditOutcome::Continue,
        AuditOutcome::Ask,
        AuditOutcome::Defer,
        AuditOutcome::Stop,
        AuditOutcome::FailedOpen,
        AuditOutcome::FailedClosed,
        AuditOutcome::Cancelled,
        AuditOutcome::Truncated,
        AuditOutcome::NotScanned,
        AuditOutcome::MalformedInput,
        AuditOutcome::Capped,
        AuditOutcome::Redacted,
        AuditOutcome::Gap,
    ];

    /// The name in records, filters and metrics.
    pub fn name(self) -> &'static str {
        match self {
            AuditOutcome::Pass => "pass",
            AuditOutcome::Deny => "deny",
            AuditOutcome::Modify => "modify",
            AuditOutcome::Continue => "continue",
            AuditOutcome::Ask => "ask",
            AuditOutcome::Defer => "defer",
            AuditOutcome::Stop => "stop",
            AuditOutcome::FailedOpen => "failed_open",
            AuditOutcome::FailedClosed => "failed_closed",
            AuditOutcome::Cancelled => "cancelled",
            AuditOutcome::Truncated => "truncated",
            AuditOutcome::NotScanned => "not_scanned",
            AuditOutcome::MalformedInput => "malformed_input",
            AuditOutcome::Capped => "capped",
            AuditOutcome::Redacted => "redacted",
            AuditOutcome::Gap => "gap",
        }
    }

    /// The outcome of a name.
    ///
    /// ```
    /// use hookgate::audit::AuditOutcome;
    /// assert_eq!(AuditOutcome::parse("failed_open"), Some(AuditOutcome::FailedOpen));
    /// ```
    pub fn parse(name: &str) -> Option<AuditOutcome> {
        AuditOutcome::ALL.into_iter().find(|outcome| outcome.name() == name)
    }
}

impl From<OutcomeKind> for AuditOutcome {
    fn from(outcome: OutcomeKind) -> Self {
        match outcome {
            OutcomeKind::Pass => AuditOutcome::Pass,
            OutcomeKind::Deny => AuditOutcome::Deny,
            OutcomeKind::Modify => AuditOutcome::Modify,
            OutcomeKind::Continue => AuditOutcome::Continue,
        }
    }
}

/// One decision, as `GET …/hooks` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AuditRecord {
    /// The record's own id, given by [`AuditLog::record`](super::AuditLog::record); ids sort as the records were made.
    pub id: String,
    /// The dispatch that it belongs to: the same for all handlers of one event.
    pub event_id: Arc<str>,
    /// The event.
    pub event: Event,
    /// The handler; `None` for what was decided without one.
    pub handler_id: Option<Arc<str>>,
    /// The session.
    pub session_id: Arc<str>,
    /// Whose session it is.
    pub tenant: Arc<str>,
    /// The turn.
    pub turn_id: Option<Arc<str>>,
    /// The tool call.
    pub tool_call_id: Option<Arc<str>>,
    /// The tool's name, or the sub-agent's id.
    pub tool_name: Option<Arc<str>>,
    /// The sub-agent that the request came from.
    pub agent_id: Option<Arc<str>>,
    /// The background task.
    pub task_id: Option<Arc<str>>,
    /// The route's name.
    pub route: Arc<str>,
    /// Where it was seen.
    pub plane: Plane,
    /// What came of it.
    pub outcome: AuditOutcome,
    /// How the handler failed, if it did.
    pub failure: Option<FailureKind>,
    /// Why, at most [`MAX_REASON_BYTES`] long.
    pub reason: Option<String>,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The size of the request to the handler, without its head.
    pub request_bytes: u64,
    /// The size of what was read of its answer, without its head.
    pub response_bytes: u64,
}

impl AuditRecord {
    /// A record about an occasion that names no handler: `truncated`, `not_scanned`, `capped` and the like. Its fields
    /// can be filled in further.
    pub fn of(occasion: &Occasion, event_id: Arc<str>, outcome: AuditOutcome, started_at: Timestamp) -> Self {
        AuditRecord {
            id: String::new(),
            event_id,
            event: occasion.event,
            handler_id: None,
            session_id: occasion.session.session.clone(),
            tenant: occasion.session.tenant.clone(),
            turn_id: occasion.turn_id.clone(),
            tool_call_id: occasion.tool_call_id.clone(),
            tool_name: occasion.name.clone(),
            agent_id: occasion.agent_id.clone(),
            task_id: occasion.task_id.clone(),
            route: occasion.route.clone(),
            plane: occasion.plane,
            outcome,
            failure: None,
            reason: None,
            attempt: 1,
            started_at,
            duration_ms: 0,
            request_bytes: 0,
            response_bytes: 0,
        }
    }

    /// Sets the reason, cut at [`MAX_REASON_BYTES`] on a character boundary.
    #[must_use]
    pub fn because(mut self, reason: &str) -> Self {
        self.reason = Some(reason[..reason.floor_char_boundary(MAX_REASON_BYTES)].to_owned());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_serialised_form() {
        for outcome in AuditOutcome::ALL {
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.name());
            assert_eq!(AuditOutcome::parse(outcome.name()), Some(outcome));
        }
    }
}
