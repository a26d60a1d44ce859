//! A pull reader that visits each byte once.

use super::scan::{closing_quote, near_quote};
use super::{JsonError, Span, Str};

/// How deeply arrays and objects may nest; deeper text is refused rather than followed (serde_json's limit).
pub const MAX_DEPTH: usize = 128;

/// The kind of the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// Reads a JSON text front to back. Every method consumes one whole value and the white space before it.
///
/// ```
/// use hookgate::wire::json::Cursor;
/// let text = br#"{"model": "m", "n": 1e400}"#;
/// let mut number = None;
/// Cursor::document(text, |cursor| {
///     cursor.object(|cursor, key| {
///         let span = cursor.skip()?;
///         if key.is("n") {
///             number = Some(span);
///         }
///         Ok(())
///     })
/// })
/// .unwrap();
/// assert_eq!(number.unwrap().of(text), b"1e400");
/// ```
pub struct Cursor<'a> {
    pub(super) text: &'a [u8],
    pub(super) pos: usize,
    pub(super) depth: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `text`, which must be UTF-8: [`Cursor::document`] checks that, this does not.
    pub fn new(text: &'a [u8]) -> Self {
        Self::new_at(text, 0)
    }

    /// A cursor at a byte of `text` where a value starts.
    pub fn new_at(text: &'a [u8], pos: usize) -> Self {
        Cursor { text, pos, depth: 0 }
    }

    /// Reads a whole document: UTF-8, one value taken by `read`, nothing but white space after it.
    ///
    /// # Errors
    /// The first place at which the text is not JSON, or what `read` returned.
    pub fn document<T>(
        text: &'a [u8],
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, JsonError>,
    ) -> Result<T, JsonError> {
        if simdutf8::basic::from_utf8(text).is_err() {
            // The fast check does not say where.
            let offset = std::str::from_utf8(text).err().map_or(0, |error| error.valid_up_to());
            return Err(JsonError { what: "invalid UTF-8", offset });
        }
        let mut cursor = Cursor::new(text);
        let value = read(&mut cursor)?;
        cursor.white();
        if cursor.pos != text.len() {
            return Err(cursor.error("unexpected text after the JSON value"));
        }
        Ok(value)
    }

    /// The text under the cursor.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// The offset of the next value's first byte.
    pub fn position(&mut self) -> usize {
        self.white();
        self.pos
    }

    /// The offset behind what was consumed.
    pub fn offset(&self) -> usize {
        self.pos
    }

    /// The kind of the next value, told by its first byte.
    ///
    /// # Errors
    /// When no value starts here.
    pub fn kind(&mut self) -> Result<Kind, JsonError> {
        self.white();
        match self.text.get(self.pos) {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(_) => Err(self.error("expected a JSON value")),
            None => Err(self.error("unexpected end of the JSON text")),
        }
    }

    /// Reads an object; `member` must consume each member's value.
    ///
    /// # Errors
    /// When the next value is not an object, is malformed, or `member` fails.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Str<'a>) -> Result<(), JsonError>,
    ) -> Result<Span, JsonError> {
        let start = self.open(b'{', "expected an object")?;
        if self.close(b'}') {
            return Ok(Span { start, end: self.pos });
        }
        loop {
            let key = self.name()?;
            member(self, key)?;
            if self.close(b'}') {
                return Ok(Span { start, end: self.pos });
            }
            self.comma("expected ',' or '}'")?;
        }
    }

    /// Reads an array; `element` must consume each element.
    ///
    /// # Errors
    /// When the next value is not an array, is malformed, or `element` fails.
    pub fn array(&mut self, mut element: impl FnMut(&mut Self) -> Result<(), JsonError>) -> Result<Span, JsonError> {
        let start = self.open(b'[', "expected an array")?;
        if self.close(b']') {
            return Ok(Span { start, end: self.pos });
        }
        loop {
            element(self)?;
            if self.close(b']') {
                return Ok(Span { start, end: self.pos });
            }
            self.comma("expected ',' or ']'")?;
        }
    }

    /// Reads a string.
    ///
    /// # Errors
    /// When the next value is not a string or is malformed. A lone surrogate escape is no error: such text exists and
    /// must be passed on as it came.
    #[inline]
    pub fn string(&mut self) -> Result<Str<'a>, JsonError> {
        self.white();
        if self.text.get(self.pos) != Some(&b'"') {
            return Err(self.error("expected a string"));
        }
        self.quoted()
    }

    /// Reads a member's name and the colon behind it.
    #[inline(always)]
    pub(super) fn name(&mut self) -> Result<Str<'a>, JsonError> {
        self.white();
        if self.text.get(self.pos) != Some(&b'"') {
            return Err(self.error("expected a member name in quotes"));
        }
        let name = self.quoted()?;
        self.white();
        if !self.eat(b':') {
            return Err(self.error("expected ':' after a member name"));
        }
        Ok(name)
    }

    /// Reads the string whose first quote is here.
    #[inline(always)]
    pub(super) fn quoted(&mut self) -> Result<Str<'a>, JsonError> {
        let start = self.pos;
        match near_quote(self.text, start + 1) {
            Some(quote) => {
                self.pos = quote + 1;
                Ok(Str::new(self.text, Span { start, end: self.pos }, false))
            }
            None => self.long_quoted(),
        }
    }

    #[inline(never)]
    fn long_quoted(&mut self) -> Result<Str<'a>, JsonError> {
        let start = self.pos;
        let (quote, escaped) = closing_quote(self.text, start + 1).inspect_err(|error| self.pos = error.offset)?;
        self.pos = quote + 1;
        Ok(Str::new(self.text, Span { start, end: self.pos }, escaped))
    }

    /// Reads a string when the next value is one, else skips it.
    ///
    /// # Errors
    /// When the next value is malformed.
    #[inline]
    pub fn string_or_skip(&mut self) -> Result<Option<Str<'a>>, JsonError> {
        self.white();
        match self.text.get(self.pos) {
            Some(b'"') => self.quoted().map(Some),
            _ => self.skip().map(|_| None),
        }
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.text.get(self.pos) == Some(&byte);
        self.pos += usize::from(found);
        found
    }

    fn open(&mut self, bracket: u8, expected: &'static str) -> Result<usize, JsonError> {
        self.white();
        if self.text.get(self.pos) != Some(&bracket) {
            return Err(self.error(expected));
        }
        self.enter()
    }

    /// Goes into the array or object whose bracket is here; returns its offset.
    pub(super) fn enter(&mut self) -> Result<usize, JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        self.pos += 1;
        Ok(self.pos - 1)
    }

    pub(super) fn close(&mut self, bracket: u8) -> bool {
        self.white();
        let closed = self.eat(bracket);
        self.depth -= usize::from(closed);
        closed
    }

    pub(super) fn comma(&mut self, expected: &'static str) -> Result<(), JsonError> {
        if self.eat(b',') { Ok(()) } else { Err(self.error(expected)) }
    }

    #[inline]
    pub(super) fn white(&mut self) {
        // Most texts have none, and every sign of the grammar is above the space.
        if let Some(..=b' ') = self.text.get(self.pos) {
            self.pass_white();
        }
    }

    #[inline(never)]
    fn pass_white(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.pos) {
            self.pos += 1;
        }
    }

    pub(super) fn error(&self, what: &'static str) -> JsonError {
        JsonError { what, offset: self.pos }
    }
}
