//! A protocol's streamed answer, event by event: what each event means, and how hookgate says things itself.

use std::ops::Range;

use bytes::Bytes;

use super::answer::{Block, BlockKind, Ending, Usage};
use super::json::{JsonError, Rope};

/// What an event of a streamed answer means.
#[derive(Debug)]
pub enum Scan {
    /// The answer begins.
    Head {
        /// Its id.
        id: String,
        /// The model that answers.
        model: String,
        /// The figures known so far.
        usage: Usage,
    },
    /// A block begins.
    Begin {
        /// The block's number in this answer.
        block: u64,
        /// What it is, as far as its beginning tells.
        kind: BlockKind,
        /// Where the block's number stands in the event.
        number: Option<Range<usize>>,
    },
    /// A block goes on.
    Add {
        /// The block's number.
        block: u64,
        /// Where it stands in the event.
        number: Option<Range<usize>>,
    },
    /// A block is finished.
    End {
        /// The block's number.
        block: u64,
        /// Where it stands in the event.
        number: Option<Range<usize>>,
        /// The whole block.
        whole: Block,
    },
    /// Why the answer ends. More events follow.
    Ending {
        /// The reason and the figures.
        ending: Ending,
        /// Where the figures stand in the event.
        usage: Option<Range<usize>>,
    },
    /// The last event of a whole answer.
    Done,
    /// The provider gives up.
    Error {
        /// The protocol's error type.
        kind: String,
        /// What it says.
        message: String,
    },
    /// Nothing: a keep-alive.
    Idle,
    /// Something that this version does not know.
    Unknown,
}

/// A frame: one event as received, and where the number of its block stands in it.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The event.
    pub raw: Bytes,
    /// Where its block's number stands.
    pub number: Option<Range<usize>>,
}

/// Reads and writes the events of one protocol. One codec reads one answer of the provider.
pub trait Codec: Send + Sync {
    /// Reads an event: its name, its data, and where the data begins in the event (`None` when it is spread over lines).
    ///
    /// # Errors
    /// When the event cannot be read, or could be read in two ways.
    fn read(&mut self, name: &[u8], data: &[u8], data_at: Option<usize>) -> Result<Scan, JsonError>;

    /// The same event for a block with another number.
    fn renumber(&self, frame: &Frame, number: u64) -> Rope;
    /// The events of a whole block; `None` when it cannot be said again.
    fn block(&self, number: u64, block: &Block) -> Option<Rope>;
    /// The block with other arguments; `None` when it is no call that can be said again.
    fn with_input(&self, block: &Block, input: Bytes) -> Option<Block>;
    /// The first events of an answer.
    fn head(&self, id: &str, model: &str) -> Rope;
    /// A text block.
    fn text(&self, text: &str) -> Block;
    /// Opens an empty text block.
    fn open_text(&self, number: u64) -> Bytes;
    /// Adds nothing to an open text block: the keep-alive that counts as content.
    fn empty_text(&self, number: u64) -> Bytes;
    /// Closes a block.
    fn close(&self, number: u64) -> Bytes;
    /// A keep-alive.
    fn keepalive(&self) -> Bytes;
    /// The last events of an answer.
    fn end(&self, ending: &Ending) -> Rope;
    /// The figures that the client is shown after several rounds.
    fn visible_usage(&self, started: &Usage, ended: &Usage, output_before: u64) -> Usage;
    /// The ending's event with other figures.
    fn with_usage(&self, event: &Bytes, at: Option<Range<usize>>, usage: &Usage) -> Rope;
    /// The protocol's error ending.
    fn error(&self, kind: &str, message: &str) -> Bytes;
}
