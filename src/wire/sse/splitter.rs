use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// An event grew over the splitter's limit before it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is longer than {limit} bytes")]
pub struct TooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

/// One whole event, as ranges of the splitter's current buffer: they hold until the next [`Splitter::push`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// All bytes of the event, its final blank line included.
    pub raw: Range<usize>,
    name: Range<usize>,
    data: Lines,
}

/// The lines of an event's data. Nearly all events have one, which takes no allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Lines {
    first: Option<Range<usize>>,
    more: Vec<Range<usize>>,
}

impl Lines {
    fn push(&mut self, line: Range<usize>) {
        match self.first {
            None => self.first = Some(line),
            Some(_) => self.more.push(line),
        }
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Range<usize>> {
        self.first.iter_mut().chain(&mut self.more)
    }
}

/// Cuts a byte stream into server-sent events.
///
/// Call [`push`](Splitter::push) with each chunk, then [`next`](Splitter::next) until it gives `None`; at the end of the
/// stream take the [`rest`](Splitter::rest). Events that arrived in one chunk are ranges of that chunk, so neighbours can
/// be sent on as one slice; only an event that was cut by a chunk's end is copied.
///
/// ```
/// use bytes::Bytes;
/// use hookgate::wire::sse::Splitter;
/// let mut splitter = Splitter::new(1 << 20);
/// splitter.push(Bytes::from_static(b"event: a\ndata: 1\n\ndata: 2"));
/// let event = splitter.next().unwrap().unwrap();
/// assert_eq!(splitter.name(&event), b"a");
/// assert_eq!(&*splitter.data(&event), b"1");
/// assert_eq!(splitter.next(), Ok(None));
/// assert_eq!(splitter.rest(), "data: 2");
/// ```
#[derive(Debug)]
pub struct Splitter {
    limit: usize,
    /// The buffer that ranges point into, unless `carry` is in use.
    whole: Bytes,
    /// Holds an event that more than one chunk contributes to, until that event is whole.
    carry: BytesMut,
    /// Start of the event under the cursor.
    start: usize,
    /// Start of the line under the cursor.
    line: usize,
    /// How far the current line was searched for its end.
    searched: usize,
    /// The last line ended with CR as the last byte known: an LF that follows belongs to it.
    after_cr: bool,
    /// A byte order mark may still come (only before the first line).
    at_stream_start: bool,
    name: Range<usize>,
    data: Lines,
}

impl Splitter {
    /// A splitter that refuses events longer than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Splitter {
            limit,
            whole: Bytes::new(),
            carry: BytesMut::new(),
            start: 0,
            line: 0,
            searched: 0,
            after_cr: false,
            at_stream_start: true,
            name: 0..0,
            data: Lines::default(),
        }
    }

    /// Adds the next chunk. All whole events of the former chunk must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        if self.carry.is_empty() {
            let begun = self.whole.slice(self.start..);
            self.rebase(self.start);
            if begun.is_empty() {
                self.whole = chunk;
                return;
            }
            self.carry.extend_from_slice(&begun);
            self.whole = Bytes::new();
        }
        self.carry.extend_from_slice(&chunk);
    }

    /// The next whole event of what was pushed, or `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`TooLarge`] when the event under the cursor passes the limit; the stream cannot be split further.
    #[allow(clippy::should_implement_trait, reason = "an iterator could not lend its buffer between pushes")]
    pub fn next(&mut self) -> Result<Option<Event>, TooLarge> {
        loop {
            let buffer: &[u8] = if self.carry.is_empty() { &self.whole } else { &self.carry };
            if self.after_cr && self.line < buffer.len() {
                self.after_cr = false;
                if buffer[self.line] == b'\n' {
                    self.line += 1;
                }
                self.searched = self.searched.max(self.line);
            }
            let Some(found) = memchr::memchr2(b'\n', b'\r', &buffer[self.searched..]) else {
                self.searched = buffer.len();
                if buffer.len() - self.start > self.limit {
                    return Err(TooLarge { limit: self.limit });
                }
                return Ok(None);
            };
            let end = self.searched + found;
            let mut next = end + 1;
            if buffer[end] == b'\r' {
                match buffer.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    // The line is over either way: waiting for an LF would delay a stream that ends its lines with CR.
                    None => self.after_cr = true,
                }
            }
            let line = self.line..end;
            self.line = next;
            self.searched = next;
            if !line.is_empty() {
                self.field(line);
                continue;
            }
            self.at_stream_start = false;
            let event = Event {
                raw: self.start..next,
                name: std::mem::replace(&mut self.name, 0..0),
                data: std::mem::take(&mut self.data),
            };
            if event.raw.len() > self.limit {
                return Err(TooLarge { limit: self.limit });
            }
            self.start = next;
            if !self.carry.is_empty() {
                self.whole = self.carry.split().freeze();
            }
            return Ok(Some(event));
        }
    }

    /// Bytes of the current buffer, shared.
    pub fn slice(&self, range: Range<usize>) -> Bytes {
        self.whole.slice(range)
    }

    /// An event's name (its last `event` field); empty when it has none.
    pub fn name(&self, event: &Event) -> &[u8] {
        &self.whole[event.name.clone()]
    }

    /// An event's data: its `data` fields joined by LF; empty when it has none.
    pub fn data(&self, event: &Event) -> Cow<'_, [u8]> {
        let Lines { first, more } = &event.data;
        let Some(first) = first else { return Cow::Borrowed(&[]) };
        if more.is_empty() {
            return Cow::Borrowed(&self.whole[first.clone()]);
        }
        let lines: Vec<&[u8]> = [first].into_iter().chain(more).map(|line| &self.whole[line.clone()]).collect();
        Cow::Owned(lines.join(&b'\n'))
    }

    /// Where an event's data stands in the current buffer, when it is one line.
    pub fn data_range(&self, event: &Event) -> Option<Range<usize>> {
        event.data.first.clone().filter(|_| event.data.more.is_empty())
    }

    /// What is left after the last whole event. At the end of a stream the standard discards it: an event that was not
    /// finished is not an event.
    pub fn rest(&self) -> Bytes {
        if self.carry.is_empty() { self.whole.slice(self.start..) } else { Bytes::copy_from_slice(&self.carry) }
    }

    fn field(&mut self, line: Range<usize>) {
        let buffer: &[u8] = if self.carry.is_empty() { &self.whole } else { &self.carry };
        let mut text = &buffer[line.clone()];
        let mut offset = line.start;
        if std::mem::take(&mut self.at_stream_start)
            && let Some(after) = text.strip_prefix(b"\xef\xbb\xbf")
        {
            text = after;
            offset += 3;
        }
        // Names are short: the colon is among the first bytes.
        let colon = text.iter().position(|byte| *byte == b':').unwrap_or(text.len());
        let mut value = (offset + colon + 1).min(line.end);
        if buffer.get(value) == Some(&b' ') && value < line.end {
            value += 1;
        }
        match &text[..colon] {
            b"data" => self.data.push(value..line.end),
            b"event" => self.name = value..line.end,
            _ => {}
        }
    }

    /// Moves all positions when `cut` bytes are dropped from the buffer's front.
    fn rebase(&mut self, cut: usize) {
        self.start -= cut;
        self.line -= cut;
        self.searched -= cut;
        for range in self.data.iter_mut().chain([&mut self.name]) {
            *range = range.start.saturating_sub(cut)..range.end.saturating_sub(cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event's raw bytes, name and data.
    type Parts = (Vec<u8>, Vec<u8>, Vec<u8>);

    /// Every event, and what is left.
    fn split(chunks: &[&[u8]]) -> (Vec<Parts>, Vec<u8>) {
        let mut splitter = Splitter::new(1 << 16);
        let mut events = Vec::new();
        for chunk in chunks {
            splitter.push(Bytes::copy_from_slice(chunk));
            while let Some(event) = splitter.next().unwrap() {
                let raw = splitter.slice(event.raw.clone()).to_vec();
                events.push((raw, splitter.name(&event).to_vec(), splitter.data(&event).into_owned()));
            }
        }
        (events, splitter.rest().to_vec())
    }

    fn meaning(chunks: &[&[u8]]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let events = split(chunks).0.into_iter();
        events.map(|(_, name, data)| (name, data)).filter(|(_, data)| !data.is_empty()).collect()
    }

    #[test]
    fn every_split_of_every_line_end_gives_the_same_events_and_bytes() {
        for text in [
            "event: a\ndata: {\"t\":\"学\"}\n\n: c\n\ndata: 2\n\n",
            "event: a\r\ndata: {\"t\":\"学\"}\r\n\r\n: c\r\n\r\ndata: 2\r\n\r\n",
            "event: a\rdata: {\"t\":\"学\"}\r\r: c\r\rdata: 2\r\r",
            "\u{feff}event: a\r\ndata: {\"t\":\"学\"}\n\r\n: c\r\n\ndata:2\n\n",
        ] {
            let text = text.as_bytes();
            let expected = vec![(b"a".to_vec(), "{\"t\":\"学\"}".as_bytes().to_vec()), (vec![], b"2".to_vec())];
            assert_eq!(meaning(&[text]), expected);
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    let chunks = [&text[..first], &text[first..second], &text[second..]];
                    assert_eq!(meaning(&chunks), expected, "cut at {first} and {second}");
                    let (events, rest) = split(&chunks);
                    let joined: Vec<u8> = events.into_iter().flat_map(|(raw, ..)| raw).chain(rest).collect();
                    assert_eq!(joined, text);
                }
            }
        }
    }

    #[test]
    fn crlf_over_two_chunks_is_one_line_end() {
        assert_eq!(meaning(&[b"data: a\r", b"\ndata: b\r\n\r\n"]), [(vec![], b"a\nb".to_vec())]);
    }

    #[test]
    fn a_lone_cr_ends_an_event_at_once() {
        assert_eq!(meaning(&[b"data: a\r\r"]).len(), 1);
    }

    #[test]
    fn an_unfinished_event_is_rest() {
        let (events, rest) = split(&[b"data: {\"x\":1}\n"]);
        assert!(events.is_empty());
        assert_eq!(rest, b"data: {\"x\":1}\n");
    }

    #[test]
    fn an_endless_event_is_refused_at_the_limit() {
        let mut splitter = Splitter::new(8);
        splitter.push(Bytes::from_static(b"data: 123"));
        assert_eq!(splitter.next(), Err(TooLarge { limit: 8 }));
    }
}
