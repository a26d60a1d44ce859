//! Bytes on their way to the client. Neighbouring ranges of one received chunk leave as one slice.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use crate::wire::json::Rope;
use crate::wire::sse::Splitter;

#[derive(Debug, Default)]
pub(super) struct Out {
    ready: VecDeque<Bytes>,
    /// A range of the splitter's buffer that is not sliced yet.
    range: Option<Range<usize>>,
}

impl Out {
    /// Adds bytes of the splitter's current buffer.
    pub(super) fn range(&mut self, range: Range<usize>, splitter: &Splitter) {
        match &mut self.range {
            Some(open) if open.end == range.start => open.end = range.end,
            _ => {
                self.flush(splitter);
                self.range = Some(range);
            }
        }
    }

    pub(super) fn bytes(&mut self, bytes: Bytes, splitter: &Splitter) {
        self.flush(splitter);
        if !bytes.is_empty() {
            self.ready.push_back(bytes);
        }
    }

    pub(super) fn rope(&mut self, rope: Rope, splitter: &Splitter) {
        self.flush(splitter);
        self.ready.extend(rope.into_pieces());
    }

    /// Slices the open range: to be called before the splitter's buffer changes.
    pub(super) fn flush(&mut self, splitter: &Splitter) {
        if let Some(range) = self.range.take() {
            self.ready.push_back(splitter.slice(range));
        }
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        self.ready.pop_front()
    }
}
