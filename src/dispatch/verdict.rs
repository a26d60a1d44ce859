//! What the handlers of one event decided together.

use std::sync::Arc;

use crate::hooks::Replacement;

/// The decision of one dispatch, with the text that handlers added for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What is to be done.
    pub decision: Decision,
    /// What the model is to read, in the handlers' order. A refusal has none.
    pub context: Vec<AddedContext>,
    /// Nobody judged: the decision is that of a failed handler's failure mode, and asking again may give another.
    pub failed: bool,
}

impl Verdict {
    /// No objection and nothing added.
    pub fn allow() -> Self {
        Verdict { decision: Decision::Allow, context: Vec::new(), failed: false }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on. For `Stop`: the turn may end.
    Allow,
    /// Go on with this in place of the prompt or the input.
    Modify(Replacement),
    /// Do not. For `Stop`: a closed handler failed, so the turn must not count as complete.
    Deny {
        /// Why, for the model and the user to read.
        reason: String,
        /// Who decided.
        handler: Arc<str>,
    },
    /// `Stop` only: the turn goes on.
    Continue {
        /// What is still to be done, for the model to read.
        reason: String,
        /// Who decided.
        handler: Arc<str>,
    },
}

/// Text that a handler added for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedContext {
    /// Who added it.
    pub handler: Arc<str>,
    /// The text, as the handler wrote it.
    pub text: String,
}
