//! JSON strings as they stand in the text.

use std::borrow::Cow;

use super::Span;

/// A string in a JSON text: its place, quotes included, and whether it has escapes.
#[derive(Clone, Copy, Debug)]
pub struct Str<'a> {
    text: &'a [u8],
    span: Span,
    escapes: Escapes,
}

/// Whether a string has escapes. As wide as what stands beside it: of a smaller one the bytes left free are copied, too,
/// and in two halves, which takes longer than reading a member's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Escapes {
    None,
    Some,
}

impl<'a> Str<'a> {
    #[inline]
    pub(super) fn new(text: &'a [u8], span: Span, escaped: bool) -> Self {
        Str { text, span, escapes: if escaped { Escapes::Some } else { Escapes::None } }
    }

    fn escaped(&self) -> bool {
        self.escapes == Escapes::Some
    }

    /// The string at a span that a [`Cursor`](super::Cursor) gave for this text.
    pub fn at(text: &'a [u8], span: Span) -> Self {
        Self::new(text, span, memchr::memchr(b'\\', span.of(text)).is_some())
    }

    /// A stretch of a string, which is within its quotes and cuts no escape.
    pub fn within(text: &'a [u8], stretch: Span) -> Self {
        Self::at(text, Span { start: stretch.start - 1, end: stretch.end + 1 })
    }

    /// The span with its quotes.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The bytes between the quotes, escapes as written.
    #[inline]
    pub fn raw(&self) -> &'a [u8] {
        &self.text[self.span.start + 1..self.span.end - 1]
    }

    /// Whether the decoded string equals `other`.
    #[inline]
    pub fn is(&self, other: &str) -> bool {
        if self.escaped() { self.decodes_to(other) } else { self.raw() == other.as_bytes() }
    }

    #[cold]
    fn decodes_to(&self, other: &str) -> bool {
        let mut rest = other.as_bytes();
        let mut equal = true;
        self.chunks(|chunk| match rest.strip_prefix(chunk) {
            Some(after) => rest = after,
            None => equal = false,
        });
        equal && rest.is_empty()
    }

    /// The decoded string as bytes: what a name is compared by, since nothing has to check that they are text.
    #[inline]
    pub fn bytes(&self) -> Cow<'a, [u8]> {
        if self.escaped() { Cow::Owned(self.decode().into_owned().into_bytes()) } else { Cow::Borrowed(self.raw()) }
    }

    /// The decoded string; a lone surrogate becomes U+FFFD.
    ///
    /// ```
    /// use hookgate::wire::json::Cursor;
    /// let text = br#""a\n\ud83d\ude00\ud800""#;
    /// let string = Cursor::new(text).string().unwrap();
    /// assert_eq!(string.decode(), "a\n😀\u{fffd}");
    /// ```
    pub fn decode(&self) -> Cow<'a, str> {
        if !self.escaped() {
            // Checked as a whole first: the lossy way goes character by character.
            return simdutf8::basic::from_utf8(self.raw())
                .map_or_else(|_| String::from_utf8_lossy(self.raw()), Cow::Borrowed);
        }
        let mut decoded = String::with_capacity(self.raw().len());
        self.chunks(|chunk| decoded.push_str(std::str::from_utf8(chunk).unwrap_or("\u{fffd}")));
        Cow::Owned(decoded)
    }

    /// Gives the decoded bytes piece by piece, so that a digest needs no copy. A lone surrogate comes as a piece of its
    /// own in generalised UTF-8 (three bytes), so that two strings give equal bytes only when they are equal.
    pub fn chunks(&self, mut take: impl FnMut(&[u8])) {
        let mut rest = self.raw();
        while let Some(at) = memchr::memchr(b'\\', rest) {
            if at > 0 {
                take(&rest[..at]);
            }
            rest = &rest[at..];
            let simple = match rest.get(1) {
                Some(b'b') => 0x08,
                Some(b'f') => 0x0c,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'u') => {
                    let (code, used) = unicode_escape(rest);
                    match char::from_u32(code) {
                        Some(character) => take(character.encode_utf8(&mut [0; 4]).as_bytes()),
                        None => take(&[
                            0xe0 | (code >> 12) as u8,
                            0x80 | (code >> 6 & 0x3f) as u8,
                            0x80 | (code & 0x3f) as u8,
                        ]),
                    }
                    rest = &rest[used..];
                    continue;
                }
                Some(other) => *other,
                None => return,
            };
            take(&[simple]);
            rest = &rest[2..];
        }
        if !rest.is_empty() {
            take(rest);
        }
    }
}

/// The code point of the `\uXXXX` at the start, a surrogate pair joined, and how many bytes it took.
fn unicode_escape(text: &[u8]) -> (u32, usize) {
    let unit = |at: usize| {
        let hex = text.get(at + 2..at + 6)?;
        (text[at..].starts_with(b"\\u"))
            .then(|| std::str::from_utf8(hex).ok().and_then(|hex| u32::from_str_radix(hex, 16).ok()))?
    };
    let Some(high) = unit(0) else { return (0xfffd, text.len().min(6)) };
    match unit(6) {
        Some(low) if (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low) => {
            (0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00), 12)
        }
        _ => (high, 6),
    }
}

/// Prints a string as a JSON string, quotes included.
///
/// ```
/// assert_eq!(hookgate::wire::json::quote("a\"b"), r#""a\"b""#);
/// ```
pub fn quote(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote_into(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends a string as a JSON string, quotes included.
pub fn quote_into(out: &mut Vec<u8>, text: &str) {
    // Writing a str to a Vec cannot fail.
    let _ = serde_json::to_writer(out, text);
}
