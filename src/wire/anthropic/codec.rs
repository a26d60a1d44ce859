//! The Anthropic side of [`Codec`].

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use super::block::{BlockBuilder, read_block};
use super::event::{StreamEvent, read};
use super::render;
use super::repeat::Repeat;
use crate::wire::answer::{Block, BlockKind, Call, Ending, Usage};
use crate::wire::codec::{Codec, Frame, Scan};
use crate::wire::json::{Edits, JsonError, Rope, Span, Str, pointer};

/// Reads one streamed answer.
#[derive(Debug)]
pub struct AnthropicCodec {
    /// Blocks that have begun: one at a time as far as is known, looked up for each event. Boxed, since a map has room for many.
    open: BTreeMap<u64, Option<Box<BlockBuilder>>>,
    /// Whether blocks other than calls are collected.
    collect_all: bool,
    /// Bytes that may still be collected.
    room: usize,
    repeat: Repeat,
}

impl AnthropicCodec {
    /// A codec that collects calls, and all other blocks too with `collect_all`, up to `room` bytes.
    pub fn new(collect_all: bool, room: usize) -> Self {
        AnthropicCodec { open: BTreeMap::new(), collect_all, room, repeat: Repeat::default() }
    }

    fn begin(&mut self, number: u64, start: &[u8]) -> Result<BlockKind, JsonError> {
        let builder = BlockBuilder::new(Bytes::copy_from_slice(start), self.room)?;
        let kind = builder.kind().clone();
        let collect = self.collect_all || matches!(kind, BlockKind::Call(_));
        if self.open.insert(number, collect.then(|| Box::new(builder))).is_some() {
            return Err(JsonError { what: "a block begins twice", offset: 0 });
        }
        Ok(kind)
    }

    fn end(&mut self, number: u64) -> Result<Block, JsonError> {
        let Some(builder) = self.open.remove(&number) else {
            return Err(JsonError { what: "a block ends that never began", offset: 0 });
        };
        let Some(builder) = builder else { return Ok(Block { kind: BlockKind::Other, json: None }) };
        let block = builder.finish()?;
        let size = block.json.as_ref().map_or(0, Bytes::len);
        self.room = self.room.saturating_sub(size);
        Ok(block)
    }
}

impl Codec for AnthropicCodec {
    fn read(&mut self, name: &[u8], data: &[u8], data_at: Option<usize>) -> Result<Scan, JsonError> {
        let place = |span: Span| data_at.map(|at| at + span.start..at + span.end);
        let decoded = |string: Option<Str<'_>>| string.map_or(String::new(), |string| string.decode().into_owned());
        let event = match self.repeat.read(name, data) {
            Some(event) => event,
            None => {
                let event = read(name, data)?;
                self.repeat.keep(name, data, &event);
                event
            }
        };
        Ok(match event {
            StreamEvent::Delta { index, delta } => {
                let block = number(index.of(data))?;
                match self.open.get_mut(&block) {
                    Some(Some(builder)) => builder.add(delta, data),
                    Some(None) => {}
                    None => return Err(JsonError { what: "a delta for a block that is not open", offset: 0 }),
                }
                Scan::Add { block, number: place(index) }
            }
            StreamEvent::BlockStart { index, block } => {
                let number_ = number(index.of(data))?;
                Scan::Begin { block: number_, kind: self.begin(number_, block.of(data))?, number: place(index) }
            }
            StreamEvent::BlockStop { index } => {
                let block = number(index.of(data))?;
                Scan::End { block, number: place(index), whole: AnthropicCodec::end(self, block)? }
            }
            StreamEvent::Start { id, model, usage } => Scan::Head { id: decoded(id), model: decoded(model), usage },
            StreamEvent::MessageDelta { stop_reason, usage, usage_span } => Scan::Ending {
                ending: Ending { stop_reason: decoded(stop_reason), usage },
                usage: usage_span.and_then(place),
            },
            StreamEvent::Stop => Scan::Done,
            StreamEvent::Error { kind, message } => Scan::Error { kind: decoded(kind), message: decoded(message) },
            StreamEvent::Ping => Scan::Idle,
            StreamEvent::Unknown => Scan::Unknown,
        })
    }

    fn renumber(&self, frame: &Frame, number: u64) -> Rope {
        match &frame.number {
            Some(at) => patch(&frame.raw, at, number.to_string()),
            None => frame.raw.clone().into(),
        }
    }

    fn block(&self, number: u64, block: &Block) -> Option<Rope> {
        render::block_events(number, block)
    }

    fn with_input(&self, block: &Block, input: Bytes) -> Option<Block> {
        let (BlockKind::Call(call), Some(json)) = (&block.kind, &block.json) else { return None };
        let mut edits = Edits::default();
        match pointer(json, "/input").ok()? {
            Some(at) => edits.replace(at, input.clone()),
            None => edits.insert(json.len() - 1, [b",\"input\":", &input[..]].concat()),
        }
        let kind = BlockKind::Call(Call { input, ..call.clone() });
        Some(Block { kind, json: Some(edits.apply(json).to_bytes()) })
    }

    fn head(&self, id: &str, model: &str) -> Rope {
        render::message_start(id, model).into()
    }

    fn text(&self, text: &str) -> Block {
        let json = render::text_block(text);
        read_block(&json).unwrap_or(Block { kind: BlockKind::Other, json: None })
    }

    fn open_text(&self, number: u64) -> Bytes {
        render::text_start(number)
    }

    fn empty_text(&self, number: u64) -> Bytes {
        render::empty_text(number)
    }

    fn close(&self, number: u64) -> Bytes {
        render::block_stop(number)
    }

    fn keepalive(&self) -> Bytes {
        render::ping()
    }

    fn end(&self, ending: &Ending) -> Rope {
        render::message_end(ending)
    }

    fn visible_usage(&self, started: &Usage, ended: &Usage, output_before: u64) -> Usage {
        render::visible_usage(started, ended, output_before)
    }

    fn with_usage(&self, event: &Bytes, at: Option<Range<usize>>, usage: &Usage) -> Rope {
        match at {
            Some(at) => patch(event, &at, render::usage_object(usage)),
            None => event.clone().into(),
        }
    }

    fn error(&self, kind: &str, message: &str) -> Bytes {
        render::error_event(kind, message)
    }
}

fn patch(event: &Bytes, at: &Range<usize>, with: String) -> Rope {
    let mut edits = Edits::default();
    edits.replace(Span { start: at.start, end: at.end }, with);
    edits.apply(event)
}

fn number(text: &[u8]) -> Result<u64, JsonError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or(JsonError { what: "a block's index is not a small whole number", offset: 0 })
}
