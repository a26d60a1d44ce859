//! What a model answers, whatever its protocol: finished blocks in a common vocabulary.

use bytes::Bytes;

use super::json::Span;

/// A finished block of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub kind: BlockKind,
    /// The block as it stands in a message of the history. `None` when it cannot be said again, because its deltas were of
    /// an unknown kind or because it is over the bound of what is kept.
    pub json: Option<Bytes>,
}

/// What a [`Block`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Text for the user.
    Text(String),
    /// Reasoning, never touched.
    Thinking,
    /// A tool call that the client will run.
    Call(Call),
    /// A tool call that the provider has run by itself.
    ProviderCall(Call),
    /// The result of such a call.
    ProviderResult {
        /// The call's id.
        id: String,
        /// Whether it failed.
        failed: bool,
        /// The result as it stands (JSON).
        content: Bytes,
    },
    /// Anything else.
    Other,
}

/// A tool call in an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them; `{}` when it wrote nothing.
    pub input: Bytes,
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Ending {
    /// The provider's stop reason, an open set; empty when there was none.
    pub stop_reason: String,
    /// The usage figures, name and number text, as far as they are simple numbers.
    pub usage: Usage,
}

/// Usage figures in the provider's own names.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Name and value (JSON text) in order of appearance.
    pub figures: Vec<(String, Bytes)>,
}

impl Usage {
    /// A figure as a number; 0 when it is not there.
    pub fn number(&self, name: &str) -> u64 {
        let figure = self.figures.iter().find(|(known, _)| known == name);
        figure.and_then(|(_, text)| std::str::from_utf8(text).ok()?.parse().ok()).unwrap_or(0)
    }

    /// Sets a figure, in place when it is there.
    pub fn set(&mut self, name: &str, value: impl Into<Bytes>) {
        let value = value.into();
        match self.figures.iter_mut().find(|(known, _)| known == name) {
            Some((_, text)) => *text = value,
            None => self.figures.push((name.to_owned(), value)),
        }
    }

    /// Takes over the figures of `newer`; those that it does not have stay.
    pub fn update(&mut self, newer: Usage) {
        for (name, value) in newer.figures {
            self.set(&name, value);
        }
    }
}

/// A whole answer and the places of what may be changed in it.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The answer as received.
    pub text: Bytes,
    /// Its id.
    pub id: String,
    /// The model.
    pub model: String,
    /// Its blocks and where they stand.
    pub blocks: Vec<(Span, Block)>,
    /// Why and with what figures it ended.
    pub ending: Ending,
    /// The top-level members by name, and where their values stand.
    pub members: Vec<(String, Span)>,
}

impl Message {
    /// Where the value of a top-level member stands.
    pub fn member(&self, name: &str) -> Option<Span> {
        self.members.iter().find(|(known, _)| known == name).map(|(_, span)| *span)
    }
}
