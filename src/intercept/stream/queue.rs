//! Blocks of an answer in order, from the first that is not done with.

use std::collections::VecDeque;

use bytes::Bytes;

use super::record::{Order, Recorder};
use crate::intercept::round::CallVerdict;
use crate::wire::answer::{Block, Call};
use crate::wire::codec::{Codec, Frame};
use crate::wire::json::Rope;

/// A call whose verdict is awaited.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: String,
    pub(super) call: Call,
    pub(super) order: Order,
    /// Whether all of it was understood.
    pub(super) readable: bool,
}

#[derive(Debug)]
pub(super) enum Item {
    /// An event that belongs to no block.
    Loose(Bytes),
    /// A block.
    Block(QueuedBlock),
    /// A block of hookgate's own.
    Whole(Block),
}

#[derive(Debug)]
pub(super) struct QueuedBlock {
    /// Its number in the provider's answer.
    number: u64,
    /// Its number in the client's, once it began to leave.
    client: Option<u64>,
    order: Order,
    /// The slot of a call that must be decided.
    slot: Option<usize>,
    verdict: Option<Decided>,
    text: bool,
    call: bool,
    frames: Vec<Frame>,
    end: Option<Frame>,
    /// Bytes of the frames that are kept back.
    bytes: usize,
}

#[derive(Debug)]
enum Decided {
    Verdict(CallVerdict),
    Withheld,
}

/// What ended with a block.
pub(super) struct Ended {
    pub(super) slot: Option<usize>,
    pub(super) order: Order,
}

impl Item {
    pub(super) fn begin(number: u64, order: Order, slot: Option<usize>, text: bool, call: bool, frame: Frame) -> Self {
        let bytes = frame.raw.len();
        Item::Block(QueuedBlock {
            number,
            client: None,
            order,
            slot,
            verdict: None,
            text,
            call,
            frames: vec![frame],
            end: None,
            bytes,
        })
    }

    pub(super) fn whole(block: Block) -> Self {
        Item::Whole(block)
    }

    fn block(&self) -> Option<&QueuedBlock> {
        match self {
            Item::Block(block) => Some(block),
            _ => None,
        }
    }

    /// Whether the client may act as soon as this has left.
    pub(super) fn releases_call(&self) -> bool {
        self.block().is_some_and(|block| block.call && block.end.is_some() && !block.is_dropped())
    }

    /// Whether the client never sees it.
    pub(super) fn is_denied(&self) -> bool {
        self.block().is_some_and(QueuedBlock::is_dropped)
    }

    /// Gives what can leave to `out`. Returns whether the item stays, because its end has not come or must be kept.
    pub(super) fn emit(
        &mut self,
        keep_end: bool,
        next_number: &mut u64,
        codec: &dyn Codec,
        recorder: &Recorder,
        mut out: impl FnMut(Rope),
    ) -> bool {
        let block = match self {
            Item::Loose(bytes) => {
                out(bytes.clone().into());
                return false;
            }
            Item::Whole(block) => {
                if let Some(events) = codec.block(*next_number, block) {
                    *next_number += 1;
                    out(events);
                }
                return false;
            }
            Item::Block(block) => block,
        };
        if block.is_dropped() {
            block.frames.clear();
            return block.end.is_none();
        }
        let number = *block.client.get_or_insert_with(|| {
            *next_number += 1;
            *next_number - 1
        });
        if let Some(Decided::Verdict(CallVerdict::Modify(_))) = block.verdict {
            if let Some(events) = recorder.block(block.order).and_then(|whole| codec.block(number, whole)) {
                out(events);
            }
            return false;
        }
        let same = number == block.number;
        let end = block.end.clone().filter(|_| !keep_end);
        for frame in block.frames.drain(..).chain(end) {
            out(if same { frame.raw.into() } else { codec.renumber(&frame, number) });
        }
        block.bytes = 0;
        block.end.is_none() || keep_end
    }
}

impl QueuedBlock {
    fn is_dropped(&self) -> bool {
        matches!(
            self.verdict,
            Some(Decided::Withheld | Decided::Verdict(CallVerdict::Deny(_) | CallVerdict::Answer(_)))
        )
    }

    fn is_undecided(&self) -> bool {
        self.slot.is_some() && self.verdict.is_none()
    }
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    items: VecDeque<Item>,
}

impl Queue {
    pub(super) fn push(&mut self, item: Item) {
        self.items.push_back(item);
    }

    pub(super) fn put_back(&mut self, item: Item) {
        self.items.push_front(item);
    }

    /// Whether what comes now leaves now: nothing is kept back in front of it.
    pub(super) fn passes(&self) -> bool {
        match (self.items.front(), self.items.len()) {
            (None, _) => true,
            (Some(Item::Block(block)), 1) => {
                block.client.is_some() && block.frames.is_empty() && block.end.is_none() && !block.is_dropped()
            }
            _ => false,
        }
    }

    /// Bytes that are kept back.
    pub(super) fn bytes(&self) -> usize {
        self.items
            .iter()
            .map(|item| match item {
                Item::Block(block) => block.bytes,
                Item::Loose(bytes) => bytes.len(),
                Item::Whole(..) => 0,
            })
            .sum()
    }

    fn blocks(&self) -> impl Iterator<Item = &QueuedBlock> {
        self.items.iter().filter_map(Item::block)
    }

    fn open_block(&mut self, number: u64) -> Option<&mut QueuedBlock> {
        self.items.iter_mut().rev().find_map(|item| match item {
            Item::Block(block) if block.number == number && block.end.is_none() => Some(block),
            _ => None,
        })
    }

    /// The client's number of the block at the front, when that is this block and its frames leave as they come.
    pub(super) fn front_number(&self, number: u64) -> Option<u64> {
        let front = self.items.front()?.block()?;
        let passing = front.number == number && front.end.is_none() && !front.is_undecided() && !front.is_dropped();
        front.client.filter(|_| passing)
    }

    /// Adds a frame to an open block. Returns its slot when the call, still undecided, has grown over `most` bytes.
    pub(super) fn push_frame(&mut self, number: u64, frame: Frame, most: usize) -> Option<usize> {
        let block = self.open_block(number)?;
        if block.is_dropped() {
            return None;
        }
        let before = block.bytes;
        block.bytes += frame.raw.len();
        block.frames.push(frame);
        (before <= most && block.bytes > most && block.is_undecided()).then_some(block.slot).flatten()
    }

    pub(super) fn end(&mut self, number: u64, frame: Frame) -> Option<Ended> {
        let block = self.open_block(number)?;
        block.bytes += frame.raw.len();
        block.end = Some(frame);
        Some(Ended { slot: block.slot, order: block.order })
    }

    pub(super) fn decide(&mut self, slot: usize, verdict: CallVerdict) {
        self.set(slot, Decided::Verdict(verdict));
    }

    pub(super) fn withhold(&mut self, slot: usize) {
        self.set(slot, Decided::Withheld);
    }

    fn set(&mut self, slot: usize, decided: Decided) {
        for item in &mut self.items {
            if let Item::Block(block) = item
                && block.slot == Some(slot)
            {
                block.verdict = Some(decided);
                return;
            }
        }
    }

    /// Takes the front when something of it can leave, and says whether its end must stay. With `keep_text_open`, the end
    /// of a text stays until what follows it leaves: while the client waits, an open text is where signs of life can go.
    pub(super) fn pop_ready(&mut self, keep_text_open: bool) -> Option<(Item, bool)> {
        let mut keep_end = false;
        if let Item::Block(block) = self.items.front()? {
            if block.is_undecided() {
                return None;
            }
            keep_end = keep_text_open && block.text && block.end.is_some() && !self.leaves_after_front();
            let begun = block.client.is_some() || block.is_dropped();
            if begun && block.frames.is_empty() && (block.end.is_none() || keep_end) {
                return None;
            }
        }
        self.items.pop_front().map(|item| (item, keep_end))
    }

    /// Whether something behind the front can leave now.
    fn leaves_after_front(&self) -> bool {
        for item in self.items.iter().skip(1) {
            match item {
                Item::Block(block) if block.is_undecided() => return false,
                Item::Block(block) if block.is_dropped() => {}
                _ => return true,
            }
        }
        false
    }

    /// Whether something waits for a verdict.
    pub(super) fn is_held(&self) -> bool {
        self.blocks().any(QueuedBlock::is_undecided)
    }

    /// Whether a block that the client gets has no end.
    pub(super) fn has_open_block(&self) -> bool {
        self.blocks().any(|block| block.end.is_none() && !block.is_dropped())
    }

    /// The calls without an end that must be decided.
    pub(super) fn open_slots(&self) -> Vec<usize> {
        self.blocks().filter(|block| block.end.is_none()).filter_map(|block| block.slot).collect()
    }

    /// Calls that will leave.
    pub(super) fn waiting_calls(&self) -> usize {
        self.items.iter().filter(|item| item.releases_call()).count()
    }

    /// The client's number of a text at the front whose end is kept back.
    pub(super) fn open_text(&self) -> Option<u64> {
        self.items.front()?.block().filter(|block| block.text)?.client
    }

    /// The place of the block at the front.
    pub(super) fn front_order(&self) -> Option<Order> {
        self.items.front()?.block().map(|block| block.order)
    }
}
