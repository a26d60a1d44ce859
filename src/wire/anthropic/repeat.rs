//! Reading the many deltas of one block, which differ in their text only.

use super::event::{Delta, StreamEvent};
use crate::wire::json::{Cursor, Span, Str};

/// The last delta that was read, cut at its text. An event with the same bytes before and after another text means the
/// same: the text cannot end early, so a reader comes out of it where it came out of the last one.
#[derive(Debug, Default)]
pub(super) struct Repeat {
    name: Vec<u8>,
    /// The data up to the text's first quote, included; empty when there is nothing to compare with.
    before: Vec<u8>,
    /// The data from the text's last quote.
    after: Vec<u8>,
    index: Option<Span>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    Text,
    Input,
    Thinking,
}

impl Repeat {
    /// Keeps an event that was read in full.
    pub(super) fn keep(&mut self, name: &[u8], data: &[u8], event: &StreamEvent<'_>) {
        let StreamEvent::Delta { index, delta } = event else { return };
        let (kind, text) = match delta {
            Delta::Text(text) => (Kind::Text, text.span()),
            Delta::Input(text) => (Kind::Input, text.span()),
            Delta::Thinking(text) => (Kind::Thinking, text.span()),
            Delta::Signature(_) | Delta::Citation(_) | Delta::Other => return,
        };
        self.before.clear();
        // Behind the text, the index would stand somewhere else each time.
        if index.end > text.start {
            return;
        }
        let set = |part: &mut Vec<u8>, bytes: &[u8]| {
            part.clear();
            part.extend_from_slice(bytes);
        };
        set(&mut self.name, name);
        set(&mut self.before, &data[..=text.start]);
        set(&mut self.after, &data[text.end - 1..]);
        self.index = Some(*index);
        self.kind = kind;
    }

    /// Reads an event that repeats the last one with another text; `None` for all others, which must be read in full.
    pub(super) fn read<'a>(&self, name: &[u8], data: &'a [u8]) -> Option<StreamEvent<'a>> {
        let quote = self.before.len().checked_sub(1)?;
        if name != self.name || !data.starts_with(&self.before) {
            return None;
        }
        let text = Cursor::new_at(data, quote).string().ok()?;
        if data[text.span().end - 1..] != self.after || std::str::from_utf8(text.raw()).is_err() {
            return None;
        }
        let delta: fn(Str<'a>) -> Delta<'a> = match self.kind {
            Kind::Text => Delta::Text,
            Kind::Input => Delta::Input,
            Kind::Thinking => Delta::Thinking,
        };
        Some(StreamEvent::Delta { index: self.index?, delta: delta(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::read;
    use super::*;

    const FIRST: &[u8] = br#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"a"}, "x":1}"#;

    fn after_first(name: &[u8], data: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let mut repeat = Repeat::default();
        assert!(repeat.read(b"", FIRST).is_none());
        repeat.keep(b"", FIRST, &read(b"", FIRST).unwrap());
        match repeat.read(name, data)? {
            StreamEvent::Delta { index, delta: Delta::Text(text) } => {
                Some((index.of(data).to_vec(), text.decode().into_owned().into_bytes()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_text_is_read() {
        let data = br#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"b\"\\"}, "x":1}"#;
        assert_eq!(after_first(b"", data), Some((b"3".to_vec(), b"b\"\\".to_vec())));
    }

    #[test]
    fn whatever_else_differs_is_read_in_full() {
        let head = br#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":""#;
        for tail in [
            &b"a"[..],
            br#"a"}}"#,
            br#"a"}, "x":2}"#,
            br#"a","text":"b"}, "x":1}"#,
            br#"a\"}, "x":1}"#,
            br#"\x"}, "x":1}"#,
            b"\x01\"}, \"x\":1}",
            b"\xff\"}, \"x\":1}",
        ] {
            assert_eq!(after_first(b"", &[head, tail].concat()), None, "{:?}", String::from_utf8_lossy(tail));
        }
        assert_eq!(after_first(b"ping", FIRST), None);
        let other = br#"{"type":"content_block_delta","index":4,"delta":{"type":"text_delta","text":"a"}, "x":1}"#;
        assert_eq!(after_first(b"", other), None);
    }

    /// Whatever the fast way reads, the full way reads alike.
    #[test]
    fn both_ways_agree() {
        for cut in 0..=FIRST.len() {
            for byte in [b'"', b'\\', b'}', b' ', b'a', 0, 0xff] {
                let data = [&FIRST[..cut], &[byte], &FIRST[cut..]].concat();
                let Some((index, text)) = after_first(b"", &data) else { continue };
                let StreamEvent::Delta { index: full, delta: Delta::Text(decoded) } = read(b"", &data).unwrap() else {
                    panic!("read in two ways");
                };
                assert_eq!((full.of(&data).to_vec(), decoded.decode().as_bytes()), (index, &text[..]));
            }
        }
    }
}
