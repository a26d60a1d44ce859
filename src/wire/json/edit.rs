//! Replacing spans of a received text without copying the rest.

use bytes::Bytes;

use super::Span;

/// A set of replacements in one text.
///
/// ```
/// use hookgate::wire::json::{Edits, Span};
/// let text = bytes::Bytes::from_static(b"[1, 2, 3]");
/// let mut edits = Edits::default();
/// edits.replace(Span { start: 4, end: 5 }, "20");
/// edits.insert(8, ", 4");
/// assert_eq!(edits.apply(&text).to_bytes(), "[1, 20, 3, 4]");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Edits {
    list: Vec<(Span, Bytes)>,
}

impl Edits {
    /// Puts `with` in the place of `span`; a later replacement of the same span takes its place. Of two replacements of
    /// which one contains the other, the containing one counts. Several insertions at one offset stay in the order given.
    pub fn replace(&mut self, span: Span, with: impl Into<Bytes>) {
        let same = |(known, _): &&mut (Span, Bytes)| *known == span && span.start < span.end;
        match self.list.iter_mut().find(same) {
            Some((_, known)) => *known = with.into(),
            None => self.list.push((span, with.into())),
        }
    }

    /// Puts `what` before the byte at `offset`.
    pub fn insert(&mut self, offset: usize, what: impl Into<Bytes>) {
        self.replace(Span::at(offset), what);
    }

    /// Takes `span` out.
    pub fn remove(&mut self, span: Span) {
        self.replace(span, Bytes::new());
    }

    /// Whether nothing is to be changed.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The edited text: unchanged stretches are slices of `text`.
    pub fn apply(mut self, text: &Bytes) -> Rope {
        // A stable sort keeps insertions at one place in their order, and puts them before a replacement that starts there.
        self.list.sort_by_key(|(span, _)| (span.start, span.end));
        let mut rope = Rope::default();
        let mut at = 0;
        for (span, with) in self.list {
            if span.start < at {
                continue;
            }
            rope.push(text.slice(at..span.start));
            rope.push(with);
            at = span.end;
        }
        rope.push(text.slice(at..));
        rope
    }
}

/// A text in pieces that are sent one after another.
#[derive(Clone, Debug, Default)]
pub struct Rope {
    pieces: Vec<Bytes>,
    len: usize,
}

impl Rope {
    /// Appends a piece; an empty one is dropped.
    pub fn push(&mut self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        self.len += piece.len();
        if !piece.is_empty() {
            self.pieces.push(piece);
        }
    }

    /// Appends all pieces of another rope.
    pub fn append(&mut self, other: Rope) {
        self.len += other.len;
        self.pieces.extend(other.pieces);
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pieces in order.
    pub fn into_pieces(self) -> Vec<Bytes> {
        self.pieces
    }

    /// The text in one piece: copied when there are several.
    pub fn to_bytes(&self) -> Bytes {
        match self.pieces.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => many.concat().into(),
        }
    }
}

impl From<Bytes> for Rope {
    fn from(bytes: Bytes) -> Self {
        let mut rope = Rope::default();
        rope.push(bytes);
        rope
    }
}
