//! The prompts of one message. Mostly it is one; but a client that drops an answer, such as a refusal, joins the messages
//! around it, and then the first prompt was decided before.

use std::ops::Range;

use super::anchor::{Anchors, link, of_parts, seams};
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
    /// A prompt at the message's beginning that was decided as one of its own.
    pub(crate) before: Option<Prompt>,
    /// The message's own prompt; `None` when there is none.
    pub(crate) own: Option<Prompt>,
}

impl Spoken {
    /// The prompts in message `index`. What was decided of the whole message, or of the longer beginning, goes before what
    /// was decided of a shorter one: a combination that was refused must not come back as its parts.
    pub(crate) fn in_message(conversation: &Conversation, anchors: &Anchors, index: usize, known: &impl Known) -> Self {
        let message = &conversation.messages[index];
        if !message.is_prompt() {
            return Spoken::default();
        }
        let parts = message.parts.len();
        let whole = Prompt { id: anchors.prompt(index), parts: 0..parts };
        let spoken = message.parts.iter().filter(|part| part.is_prompt() || part.is_typed());
        if spoken.take(2).count() < 2 || !known.has_prompts() || known.prompt(whole.id).is_some() {
            return Spoken { before: None, own: Some(whole) };
        }
        for (at, digests) in seams(conversation, message).into_iter().rev() {
            let ids = digests.into_iter().map(|own| link(anchors.before[index], own));
            // A handler's failure is no decision: it is asked again, about the whole.
            let mut decided = ids.filter(|id| known.prompt(*id).is_some_and(|decision| !decision.failed));
            if let Some(id) = decided.next() {
                let rest = link(id, of_parts(conversation, message.role, &message.parts[at..]));
                let before = Some(Prompt { id, parts: 0..at });
                return Spoken { before, own: Some(Prompt { id: rest, parts: at..parts }) };
            }
        }
        Spoken { before: None, own: Some(whole) }
    }

    /// The prompts with what was decided about them, in order.
    pub(super) fn decided(self, known: &impl Known) -> Vec<(Prompt, PromptDecision)> {
        let prompts = self.before.into_iter().chain(self.own);
        prompts.map(|prompt| (prompt.clone(), known.prompt(prompt.id).unwrap_or_default())).collect()
    }
}
