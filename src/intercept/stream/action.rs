//! What the machine asks of its driver.

use crate::intercept::call::Unjudgeable;
use crate::ledger::{AnswerRecord, Round};
use crate::wire::answer::Call;

/// What the machine needs done. Each is answered by the method that it names.
#[derive(Debug)]
pub(crate) enum Action {
    /// Decide about a call → [`Stream::verdict`].
    Decide {
        /// Which one.
        slot: usize,
        /// The call.
        call: Call,
    },
    /// A call cannot be judged; what do the handlers' failure modes say? → [`Stream::verdict`].
    Undecidable {
        /// Which one.
        slot: usize,
        /// The call, as far as it is known.
        call: Call,
        /// Why.
        why: Unjudgeable,
    },
    /// Decide about the end of the turn → [`Stream::stop_verdict`].
    AskStop {
        /// The text of the answer's last round.
        response: String,
        /// The provider's stop reason.
        stop_reason: String,
    },
    /// The time for holding this answer is used up: stop waiting for the decision about the turn's end, or for the next
    /// round → [`Stream::stop_verdict`] or [`Stream::round_failed`].
    GiveUp,
    /// Record the answer → [`Stream::committed`].
    Commit {
        /// The answer so far.
        record: AnswerRecord,
        /// The client is about to act on a call of it.
        released_call: bool,
    },
    /// Go on with the model: these rounds were said → [`Stream::round`], then its bytes, or [`Stream::round_failed`].
    Continue {
        /// All rounds so far.
        rounds: Vec<Round>,
    },
    /// A call was cut off and withheld; nothing is to be done.
    Truncated {
        /// The call, as far as it came.
        call: Call,
    },
    /// Something came that this version cannot inspect and that was passed on; nothing is to be done.
    NotScanned,
    /// The answer failed; nothing is to be done.
    Failed {
        /// The protocol's error type.
        kind: String,
        /// What is known.
        message: String,
    },
}
