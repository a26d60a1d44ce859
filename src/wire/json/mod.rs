//! JSON as received bytes: spans, not values.
//!
//! hookgate must never re-print what it did not change, so it works on the positions of values inside the received
//! text. [`Cursor`] walks a document once, front to back, and checks it as strictly as RFC 8259 asks; the caller says at
//! every member whether to look inside or to skip. [`Edits`] then replaces spans and leaves all other bytes shared.

mod cursor;
mod edit;
mod scan;
mod skip;
mod splice;
mod string;
mod tree;
mod unique;

pub use cursor::{Cursor, Kind, MAX_DEPTH};
pub use edit::{Edits, Rope};
pub use splice::{Inserts, splice};
pub use string::{Str, quote, quote_into};
pub use tree::{Member, Node, Value, parse_tree};
pub(crate) use unique::Names;
pub use unique::{DuplicateKey, find_duplicate};

/// Where a value stands in the text: byte offsets, `end` exclusive, quotes and brackets included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// The span's bytes in the text that it was taken from.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.start..self.end]
    }

    /// An empty span: the place before the byte at `offset`.
    pub fn at(offset: usize) -> Self {
        Span { start: offset, end: offset }
    }
}

/// Why a text is not JSON, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct JsonError {
    /// What was wrong, in words.
    pub what: &'static str,
    /// Byte offset of the first wrong byte.
    pub offset: usize,
}

/// Line and column (both from 1, columns counted in characters) of a byte offset.
///
/// ```
/// use hookgate::wire::json::position;
/// assert_eq!(position(b"{\n  \"a\": 1}", 4), (2, 3));
/// ```
pub fn position(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
}

/// The span of the value that a JSON Pointer (RFC 6901) names, if it is there.
///
/// Of duplicate keys the last one counts, as most parsers have it; look for [`find_duplicate`] first where that matters.
///
/// ```
/// use hookgate::wire::json::pointer;
/// let text = br#"{"a": [1, {"b/c": "x"}]}"#;
/// let span = pointer(text, "/a/1/b~1c").unwrap().unwrap();
/// assert_eq!(span.of(text), br#""x""#);
/// ```
///
/// # Errors
/// When the text is not JSON up to the end of the named value.
pub fn pointer(text: &[u8], pointer: &str) -> Result<Option<Span>, JsonError> {
    let mut span = Cursor::document(text, |cursor| cursor.skip())?;
    if pointer.is_empty() {
        return Ok(Some(span));
    }
    let Some(rest) = pointer.strip_prefix('/') else { return Ok(None) };
    for token in rest.split('/') {
        let token = token.replace("~1", "/").replace("~0", "~");
        let mut cursor = Cursor::new_at(text, span.start);
        let mut found = None;
        match cursor.kind()? {
            Kind::Object => cursor.object(|cursor, key| {
                let value = cursor.skip()?;
                if key.is(&token) {
                    found = Some(value);
                }
                Ok(())
            })?,
            Kind::Array => {
                let wanted = token.parse::<usize>().ok();
                let mut index = 0;
                cursor.array(|cursor| {
                    let value = cursor.skip()?;
                    if wanted == Some(index) {
                        found = Some(value);
                    }
                    index += 1;
                    Ok(())
                })?
            }
            _ => return Ok(None),
        };
        match found {
            Some(value) => span = value,
            None => return Ok(None),
        }
    }
    Ok(Some(span))
}
