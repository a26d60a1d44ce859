//! Keeping what was said, for as long as it may have to be said again.

use super::queue::Queued;
use crate::intercept::round::CallVerdict;
use crate::ledger::{After, AnswerRecord, RecordedBlock, Round, Shown, SuppliedResult};
use crate::wire::answer::{Block, BlockKind};
use crate::wire::codec::Codec;

/// Where a block stands among the blocks of its round. Blocks of the model have even numbers; what hookgate puts between
/// them has odd ones.
pub(super) type Order = u32;

#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// The finished rounds.
    pub(super) past: Vec<Round>,
    /// The blocks of the round under way.
    blocks: Vec<(Order, RecordedBlock)>,
    next: Order,
    bytes: usize,
    /// Something was added since the last commit.
    pub(super) dirty: bool,
}

impl Recorder {
    /// A block begins: its place.
    pub(super) fn begin(&mut self, kind: &BlockKind) -> Order {
        self.next += 2;
        let block = Block { kind: kind.clone(), json: None };
        self.blocks.push((self.next, RecordedBlock { block, shown: Shown::Both }));
        self.next
    }

    /// A block is whole. Over `most` bytes it is known by its kind only.
    pub(super) fn end(&mut self, order: Order, mut whole: Block, most: usize) {
        self.bytes += whole.json.as_ref().map_or(0, bytes::Bytes::len);
        if self.bytes > most {
            whole.json = None;
        }
        if let Some(recorded) = self.find(order) {
            recorded.block = whole;
            self.dirty = true;
        }
    }

    pub(super) fn decide(&mut self, queued: &Queued, verdict: &CallVerdict, codec: &dyn Codec) {
        let Some(recorded) = self.find(queued.order) else { return };
        match verdict {
            CallVerdict::Allow => {}
            CallVerdict::Deny(_) | CallVerdict::Answer(_) => recorded.shown = Shown::ModelOnly,
            CallVerdict::Modify(input) => {
                if let Some(block) = codec.with_input(&recorded.block, input.clone()) {
                    recorded.block = block;
                }
            }
        }
        self.dirty = true;
    }

    /// A block is left out of the conversation.
    pub(super) fn forget(&mut self, order: Order) {
        self.blocks.retain(|(known, _)| *known != order);
    }

    /// A block of hookgate's own, in front of the block `before`, or behind all.
    pub(super) fn filler(&mut self, before: Option<Order>, block: Block) {
        let order = before.map_or(self.next + 1, |order| order - 1);
        self.blocks.push((order, RecordedBlock { block, shown: Shown::ClientOnly }));
        self.dirty = true;
    }

    fn find(&mut self, order: Order) -> Option<&mut RecordedBlock> {
        self.blocks.iter_mut().find(|(known, _)| *known == order).map(|(_, recorded)| recorded)
    }

    /// A block by its place.
    pub(super) fn block(&self, order: Order) -> Option<&Block> {
        self.blocks.iter().find(|(known, _)| *known == order).map(|(_, recorded)| &recorded.block)
    }

    /// Whether all blocks of the round can be said again.
    pub(super) fn is_repeatable(&self) -> bool {
        self.blocks.iter().all(|(_, recorded)| recorded.block.json.is_some())
    }

    /// The texts of the round, as the user reads them.
    pub(super) fn text(&self) -> String {
        let texts: Vec<&str> = self
            .blocks
            .iter()
            .filter_map(|(_, recorded)| match &recorded.block.kind {
                BlockKind::Text(text) if recorded.shown == Shown::Both => Some(text.as_str()),
                _ => None,
            })
            .collect();
        texts.join("\n")
    }

    pub(super) fn close_round(&mut self, after: After, output_tokens: u64) {
        let blocks = self.sorted();
        self.blocks.clear();
        self.past.push(Round { blocks, after, output_tokens });
        self.dirty = true;
    }

    /// The last round goes on being the answer's end.
    pub(super) fn reopen(&mut self) {
        if let Some(round) = self.past.last_mut() {
            round.after = After::Nothing;
        }
    }

    fn sorted(&self) -> Vec<RecordedBlock> {
        let mut blocks = self.blocks.clone();
        blocks.sort_by_key(|(order, _)| *order);
        blocks.into_iter().map(|(_, recorded)| recorded).collect()
    }

    pub(super) fn record(&self, supplied: &[SuppliedResult]) -> AnswerRecord {
        let mut rounds = self.past.clone();
        if !self.blocks.is_empty() {
            let after = if supplied.is_empty() { After::Nothing } else { After::Results(supplied.to_vec()) };
            rounds.push(Round { blocks: self.sorted(), after, output_tokens: 0 });
        }
        AnswerRecord { rounds }
    }

    /// Whether the client's view differs from the model's in a way that is not committed yet.
    pub(super) fn must_commit(&self, supplied: &[SuppliedResult]) -> bool {
        let filled = || self.blocks.iter().any(|(_, recorded)| recorded.shown != Shown::Both);
        self.dirty && (!self.past.is_empty() || !supplied.is_empty() || filled())
    }
}
