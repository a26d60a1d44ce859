//! What is remembered of an answer, so that the conversation stays true when the client sends it back.

use bytes::Bytes;

use super::anchor;
use crate::id::Digest;
use crate::wire::answer::{Block, BlockKind};

/// One answer as the client got it, and as it really was.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerRecord {
    /// Its rounds: what the model said each time, and what hookgate told it after.
    pub(crate) rounds: Vec<Round>,
}

/// One round of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// The model's blocks in order.
    pub(crate) blocks: Vec<RecordedBlock>,
    /// What hookgate said after them.
    pub(crate) after: After,
    /// Tokens that the model gave in this round.
    pub(crate) output_tokens: u64,
}

/// What hookgate tells the model after a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum After {
    /// Nothing: the round is the answer's last, and all its calls are the client's.
    #[default]
    Nothing,
    /// Results of calls that the client did not get.
    Results(Vec<SuppliedResult>),
    /// A message as if by the user.
    User(String),
}

/// A result that hookgate gives in the place of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SuppliedResult {
    /// The call.
    pub(crate) call_id: String,
    /// What the model reads.
    pub(crate) text: String,
    /// The call was refused.
    pub(crate) refused: bool,
}

/// A block of a round.
#[derive(Clone, Debug)]
pub(crate) struct RecordedBlock {
    /// What it is. Texts of calls' inputs are those that the client got.
    pub(crate) block: Block,
    /// Who knows it.
    pub(crate) shown: Shown,
}

/// Who knows a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The model said it and the client got it.
    Both,
    /// The model said it; the client never saw it.
    ModelOnly,
    /// hookgate made it for the client; the model must not see it.
    ClientOnly,
}

impl AnswerRecord {
    /// Whether the client's view of this answer differs from the model's.
    pub(crate) fn differs(&self) -> bool {
        self.rounds.len() > 1
            || self.rounds.iter().any(|round| {
                round.after != After::Nothing || round.blocks.iter().any(|block| block.shown != Shown::Both)
            })
    }

    /// The digest of the message that the client will send back.
    pub(crate) fn shown_digest(&self) -> Digest {
        anchor::of_answer(self.shown().map(|block| &block.block.kind))
    }

    /// What the client got, in order.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &RecordedBlock> {
        self.rounds.iter().flat_map(|round| &round.blocks).filter(|block| block.shown != Shown::ModelOnly)
    }

    /// The digest of the ids of the calls that the client got; `None` when it got none.
    pub(crate) fn calls_digest(&self) -> Option<Digest> {
        calls_digest(self.shown().filter_map(|recorded| match &recorded.block.kind {
            BlockKind::Call(call) => Some(call.id.as_str()),
            _ => None,
        }))
    }

    /// The results that belong beside the client's own in its next message.
    pub(crate) fn open_results(&self) -> &[SuppliedResult] {
        match self.rounds.last().map(|round| &round.after) {
            Some(After::Results(results)) => results,
            _ => &[],
        }
    }
}

impl Round {
    /// Whether a call of this round was refused; `None` when hookgate supplied no result after it.
    pub(crate) fn refused(&self) -> Option<bool> {
        match &self.after {
            After::Results(results) => Some(results.iter().any(|result| result.refused)),
            _ => None,
        }
    }

    /// The blocks as they stand in a message to the model; `None` when one of them cannot be said again.
    pub(crate) fn model_parts(&self) -> Option<Vec<Bytes>> {
        self.model_blocks().map(|block| block.json.clone()).collect()
    }

    /// The blocks that the model said.
    pub(crate) fn model_blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| block.shown != Shown::ClientOnly).map(|block| &block.block)
    }
}

/// The digest of a list of call ids; `None` when it is empty.
pub(crate) fn calls_digest<'a>(ids: impl Iterator<Item = &'a str>) -> Option<Digest> {
    let mut hasher = crate::id::Hasher::new().with(b"calls");
    let mut any = false;
    for id in ids {
        any = true;
        hasher.part(id.as_bytes());
    }
    any.then(|| hasher.finish())
}
