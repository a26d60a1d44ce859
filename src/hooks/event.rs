//! The twelve lifecycle events and what each of them allows: the one table that everything else reads.

use super::outcome::OutcomeKind;

/// A moment in an agent's life at which hooks are asked or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The first request of a session, or its first in this deployment.
    SessionStart,
    /// A background task is claimed.
    TaskStart,
    /// A new prompt of the user, before anything of it reaches the model.
    UserPromptSubmit,
    /// Just before work is delegated to a sub-agent.
    SubagentStart,
    /// Just before a tool call.
    PreToolUse,
    /// After a tool call succeeded.
    PostToolUse,
    /// After a tool call failed.
    PostToolUseFailure,
    /// After a delegation ended.
    SubagentStop,
    /// A background task came to its end.
    TaskStop,
    /// A complete answer, before it is accepted as the end of the turn.
    Stop,
    /// The provider, the stream or the proxy failed.
    StopFailure,
    /// Just before a session is deleted for good.
    SessionEnd,
}

/// What becomes of the traffic when a handler fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureMode {
    /// As if the handler had passed.
    Open,
    /// The event's refusal.
    Closed,
}

impl FailureMode {
    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            FailureMode::Open => "open",
            FailureMode::Closed => "closed",
        }
    }
}

/// What the `matcher` of a handler is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Tool names.
    Tools,
    /// Ids of sub-agents.
    Subagents,
    /// The event has no name to compare.
    None,
}

impl Event {
    /// Every event, in the order of a session's life.
    pub const ALL: [Event; 12] = [
        Event::SessionStart,
        Event::TaskStart,
        Event::UserPromptSubmit,
        Event::SubagentStart,
        Event::PreToolUse,
        Event::PostToolUse,
        Event::PostToolUseFailure,
        Event::SubagentStop,
        Event::TaskStop,
        Event::Stop,
        Event::StopFailure,
        Event::SessionEnd,
    ];

    /// The name in documents, envelopes and audit records.
    pub fn name(self) -> &'static str {
        match self {
            Event::SessionStart => "SessionStart",
            Event::TaskStart => "TaskStart",
            Event::UserPromptSubmit => "UserPromptSubmit",
            Event::SubagentStart => "SubagentStart",
            Event::PreToolUse => "PreToolUse",
            Event::PostToolUse => "PostToolUse",
            Event::PostToolUseFailure => "PostToolUseFailure",
            Event::SubagentStop => "SubagentStop",
            Event::TaskStop => "TaskStop",
            Event::Stop => "Stop",
            Event::StopFailure => "StopFailure",
            Event::SessionEnd => "SessionEnd",
        }
    }

    /// The event of a name; names are compared exactly.
    ///
    /// ```
    /// use hookgate::hooks::Event;
    /// assert_eq!(Event::parse("PreToolUse"), Some(Event::PreToolUse));
    /// assert_eq!(Event::parse("preToolUse"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Event> {
        Event::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Whether its handlers can refuse or change something, so that the traffic waits for them.
    pub fn gates(self) -> bool {
        matches!(self, Event::UserPromptSubmit | Event::SubagentStart | Event::PreToolUse | Event::Stop)
    }

    /// Whether a handler of this event may answer so.
    ///
    /// ```
    /// use hookgate::hooks::{Event, OutcomeKind};
    /// assert!(Event::Stop.allows(OutcomeKind::Continue) && !Event::Stop.allows(OutcomeKind::Deny));
    /// ```
    pub fn allows(self, outcome: OutcomeKind) -> bool {
        match outcome {
            OutcomeKind::Pass => true,
            OutcomeKind::Deny | OutcomeKind::Modify => self.gates() && self != Event::Stop,
            OutcomeKind::Continue => self == Event::Stop,
        }
    }

    /// The outcomes that a handler of this event has.
    pub fn outcomes(self) -> impl Iterator<Item = OutcomeKind> {
        OutcomeKind::ALL.into_iter().filter(move |outcome| self.allows(*outcome))
    }

    /// The failure mode of a handler that names none.
    pub fn default_failure_mode(self) -> FailureMode {
        if self.gates() { FailureMode::Closed } else { FailureMode::Open }
    }

    /// Whether the failure mode cannot be chosen: nothing can be refused after the fact.
    pub fn failure_mode_is_fixed(self) -> bool {
        !self.gates()
    }

    /// Whether handlers may add text for the model to read.
    pub fn accepts_context(self) -> bool {
        matches!(
            self,
            Event::SessionStart | Event::TaskStart | Event::UserPromptSubmit | Event::SubagentStart | Event::PreToolUse
        )
    }

    /// What a matcher on this event names.
    pub fn names(self) -> Names {
        match self {
            Event::PreToolUse | Event::PostToolUse | Event::PostToolUseFailure => Names::Tools,
            Event::SubagentStart | Event::SubagentStop => Names::Subagents,
            _ => Names::None,
        }
    }
}

impl serde::Serialize for Event {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The design's table, row by row: event, outcomes, closed by default, fixed mode, context.
    #[test]
    fn the_table_holds() {
        use OutcomeKind::{Continue, Deny, Modify, Pass};
        let table: [(Event, &[OutcomeKind], bool, bool); 12] = [
            (Event::SessionStart, &[Pass], false, true),
            (Event::TaskStart, &[Pass], false, true),
            (Event::UserPromptSubmit, &[Pass, Deny, Modify], true, true),
            (Event::SubagentStart, &[Pass, Deny, Modify], true, true),
            (Event::PreToolUse, &[Pass, Deny, Modify], true, true),
            (Event::PostToolUse, &[Pass], false, false),
            (Event::PostToolUseFailure, &[Pass], false, false),
            (Event::SubagentStop, &[Pass], false, false),
            (Event::TaskStop, &[Pass], false, false),
            (Event::Stop, &[Pass, Continue], true, false),
            (Event::StopFailure, &[Pass], false, false),
            (Event::SessionEnd, &[Pass], false, false),
        ];
        assert_eq!(table.map(|row| row.0), Event::ALL);
        for (event, outcomes, gate, context) in table {
            assert_eq!(event.outcomes().collect::<Vec<_>>(), outcomes, "{event:?}");
            let mode = if gate { FailureMode::Closed } else { FailureMode::Open };
            assert_eq!(event.default_failure_mode(), mode, "{event:?}");
            assert_eq!(event.failure_mode_is_fixed(), !gate, "{event:?}");
            assert_eq!(event.accepts_context(), context, "{event:?}");
            assert_eq!(Event::parse(event.name()), Some(event));
        }
    }
}
