//! The prompt of one message.

use std::ops::Range;

use super::anchor::Anchors;
use super::rewrite::{Known, PromptDecision};
use crate::id::Digest;
use crate::wire::conversation::Conversation;

/// A prompt within a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// Its identity.
    pub(crate) id: Digest,
    /// The message's parts that it is of.
    pub(crate) parts: Range<usize>,
}

/// What a user says in one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spoken {
    /// The message's prompt; `None` when there is none.
    pub(crate) own: Option<Prompt>,
}

impl Spoken {
    /// The prompt in message `index`.
    pub(crate) fn in_message(conversation: &Conversation, anchors: &Anchors, index: usize) -> Self {
        let message = &conversation.messages[index];
        let whole = || Prompt { id: anchors.prompt(index), parts: 0..message.parts.len() };
        Spoken { own: message.is_prompt().then(whole) }
    }

    /// The prompt with what was decided about it.
    pub(super) fn decided(self, known: &impl Known) -> Vec<(Prompt, PromptDecision)> {
        self.own.into_iter().map(|prompt| (prompt.clone(), known.prompt(prompt.id).unwrap_or_default())).collect()
    }
}
