//! What follows when all calls of a round are decided: the same rules for streamed and whole answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::ledger::{Round, SuppliedResult};
use crate::limits::MAX_PROXY_ROUNDS;
use crate::wire::answer::Usage;
use crate::wire::protocol::Protocol;

/// Says of a tool's name whether its calls must be decided.
pub(crate) type Gated = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What may happen to one answer.
#[derive(Clone)]
pub(crate) struct Policy {
    /// The protocol.
    pub(crate) protocol: Protocol,
    /// Whether a call of this name must be decided before it is released. `None` when no call must.
    pub(crate) gated: Option<Gated>,
    /// Whether the end of the turn must be decided.
    pub(crate) stop_gated: bool,
    /// Whether the blocks are recorded, because something may have to be said again.
    pub(crate) record: bool,
    /// Whether refused calls are told to the model in the same answer.
    pub(crate) feedback: bool,
    /// How often that may happen in one answer.
    pub(crate) max_deny_rounds: u32,
    /// The most bytes held or recorded.
    pub(crate) max_held: usize,
    /// The pause between keep-alives.
    pub(crate) keepalive: Duration,
    /// The longest time that the answer may be held in all.
    pub(crate) max_hold: Duration,
}

impl Policy {
    /// Whether a call of this name must be decided.
    pub(crate) fn is_gated(&self, name: &str) -> bool {
        self.gated.as_ref().is_some_and(|gated| gated(name))
    }
}

/// What was decided about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    /// It goes to the client as it is.
    Allow,
    /// It goes to the client with these arguments.
    Modify(Bytes),
    /// The client never sees it; the model reads why it was refused.
    Deny(String),
    /// hookgate answers it: the client never sees it; the model reads the result.
    Answer(String),
}

impl SuppliedResult {
    /// What the model reads of a call that the client does not get.
    pub(crate) fn of(call_id: &str, verdict: &CallVerdict) -> Option<Self> {
        let (text, refused) = match verdict {
            CallVerdict::Deny(reason) => (reason.clone(), true),
            CallVerdict::Answer(result) => (result.clone(), false),
            CallVerdict::Allow | CallVerdict::Modify(_) => return None,
        };
        Some(SuppliedResult { call_id: call_id.to_owned(), text, refused })
    }
}

/// What was decided about the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopVerdict {
    /// The turn ends.
    End,
    /// The model goes on, told this as if by the user.
    Continue(String),
    /// The turn must not count as complete, for this reason.
    Block(String),
}

/// What a finished round consists of.
#[derive(Debug)]
pub(crate) struct Finished<'a> {
    /// Calls that the client got or will get.
    pub(crate) shown_calls: usize,
    /// Calls that it did not get, with what the model is to read.
    pub(crate) supplied: &'a [SuppliedResult],
    /// Something was withheld because it was cut off.
    pub(crate) truncated: bool,
    /// Everything in it can be said again.
    pub(crate) repeatable: bool,
    /// The rounds of this answer so far.
    pub(crate) past: &'a [Round],
    /// The provider's stop reason.
    pub(crate) stop_reason: &'a str,
}

/// What follows a finished round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conclusion {
    /// The answer is complete as it stands.
    Deliver,
    /// The model is told the results and goes on in the same answer.
    Feedback,
    /// The answer ends with the refusals as its text.
    EndWithReason,
    /// The end of the turn is to be decided.
    AskStop,
}

/// The rules: a refusal that leaves the client nothing to do must reach the model or the user at once; a call that the
/// client will run ends neither the turn nor the answer's honesty; what was cut off is not an end.
pub(crate) fn conclude(policy: &Policy, round: &Finished<'_>) -> Conclusion {
    if round.shown_calls > 0 {
        return Conclusion::Deliver;
    }
    if !round.supplied.is_empty() {
        let refused = round.supplied.iter().any(|result| result.refused);
        let such = round.past.iter().filter(|past| past.refused() == Some(refused)).count() as u32;
        let more = match refused {
            true => policy.feedback && such < policy.max_deny_rounds,
            false => such < MAX_PROXY_ROUNDS,
        };
        return if more && round.repeatable { Conclusion::Feedback } else { Conclusion::EndWithReason };
    }
    if policy.stop_gated && !round.truncated && policy.protocol.ends_turn(round.stop_reason) {
        return Conclusion::AskStop;
    }
    Conclusion::Deliver
}

/// The refusals as one text for the user. Other results are for the model alone.
pub(crate) fn reasons(supplied: &[SuppliedResult]) -> String {
    let refusals: Vec<&str> =
        supplied.iter().filter(|result| result.refused).map(|result| result.text.as_str()).collect();
    match refusals.is_empty() {
        true => "hookgate answered calls of the model, which could not go on in the same answer.".to_owned(),
        false => refusals.join("\n"),
    }
}

/// What the provider bills for one answer: all its rounds, of which the client's figures show only a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Billed {
    /// Rounds with the model.
    pub(crate) rounds: u64,
    /// Tokens that went in.
    pub(crate) input: u64,
    /// Tokens that came out.
    pub(crate) output: u64,
}

impl Billed {
    /// Adds a round.
    pub(crate) fn add(&mut self, protocol: Protocol, started: &Usage, ended: &Usage) {
        let (input, output) = (protocol.input_figure(), protocol.output_figure());
        self.rounds += 1;
        self.input += ended.number(input).max(started.number(input));
        self.output += ended.number(output);
    }
}
