//! A pull reader that visits each byte once.

use wide::u8x16;

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
    text: &'a [u8],
    pos: usize,
    depth: usize,
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
            self.white();
            if self.text.get(self.pos) != Some(&b'"') {
                return Err(self.error("expected a member name in quotes"));
            }
            let key = self.string()?;
            self.white();
            if self.text.get(self.pos) != Some(&b':') {
                return Err(self.error("expected ':' after a member name"));
            }
            self.pos += 1;
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
    pub fn string(&mut self) -> Result<Str<'a>, JsonError> {
        self.white();
        let start = self.pos;
        if self.text.get(start) != Some(&b'"') {
            return Err(self.error("expected a string"));
        }
        let mut pos = start + 1;
        let mut escaped = false;
        while let Some(block) = self.text.get(pos..).and_then(<[u8]>::first_chunk) {
            let mut left = special_bytes(block);
            loop {
                if left == 0 {
                    pos += BLOCK;
                    break;
                }
                let at = pos + left.trailing_zeros() as usize;
                match self.text[at] {
                    b'"' => return Ok(self.string_to(start, at, escaped)),
                    b'\\' => {}
                    _ => return Err(self.error_at(at, CONTROL)),
                }
                escaped = true;
                let after = self.escape(at)?;
                if after >= pos + BLOCK {
                    pos = after;
                    break;
                }
                left &= u32::MAX << (after - pos);
            }
        }
        // What is left of the text is shorter than a block.
        loop {
            match self.text.get(pos) {
                Some(b'"') => return Ok(self.string_to(start, pos, escaped)),
                Some(b'\\') => {
                    escaped = true;
                    pos = self.escape(pos)?;
                }
                Some(0..0x20) => return Err(self.error_at(pos, CONTROL)),
                Some(_) => pos += 1,
                None => return Err(self.error_at(pos, "unterminated string")),
            }
        }
    }

    fn string_to(&mut self, start: usize, quote: usize, escaped: bool) -> Str<'a> {
        self.pos = quote + 1;
        Str::new(self.text, Span { start, end: self.pos }, escaped)
    }

    /// Checks the escape whose backslash is at `pos`; returns the offset after it.
    fn escape(&mut self, pos: usize) -> Result<usize, JsonError> {
        match self.text.get(pos + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(pos + 2),
            Some(b'u') => match self.text.get(pos + 2..pos + 6) {
                Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => Ok(pos + 6),
                _ => Err(self.error_at(pos, "malformed \\u escape")),
            },
            _ => Err(self.error_at(pos, "unknown escape in a string")),
        }
    }

    /// Reads a string when the next value is one, else skips it.
    ///
    /// # Errors
    /// When the next value is malformed.
    pub fn string_or_skip(&mut self) -> Result<Option<Str<'a>>, JsonError> {
        match self.kind()? {
            Kind::String => self.string().map(Some),
            _ => self.skip().map(|_| None),
        }
    }

    /// Skips the next value, checking it.
    ///
    /// # Errors
    /// When it is malformed or nests deeper than [`MAX_DEPTH`].
    pub fn skip(&mut self) -> Result<Span, JsonError> {
        match self.kind()? {
            Kind::Object => self.object(|cursor, _| cursor.skip().map(drop)),
            Kind::Array => self.array(|cursor| cursor.skip().map(drop)),
            Kind::String => self.string().map(|string| string.span()),
            Kind::Number => self.number(),
            Kind::Bool if self.text[self.pos] == b't' => self.literal(b"true"),
            Kind::Bool => self.literal(b"false"),
            Kind::Null => self.literal(b"null"),
        }
    }

    fn number(&mut self) -> Result<Span, JsonError> {
        let start = self.pos;
        self.eat(b'-');
        if !self.eat(b'0') && !self.digits() {
            return Err(self.error("malformed number"));
        }
        if self.eat(b'.') && !self.digits() {
            return Err(self.error("malformed number"));
        }
        if self.eat(b'e') || self.eat(b'E') {
            let _ = self.eat(b'+') || self.eat(b'-');
            if !self.digits() {
                return Err(self.error("malformed number"));
            }
        }
        Ok(Span { start, end: self.pos })
    }

    fn literal(&mut self, literal: &[u8]) -> Result<Span, JsonError> {
        let start = self.pos;
        if !self.text[start..].starts_with(literal) {
            return Err(self.error("expected a JSON value"));
        }
        self.pos += literal.len();
        Ok(Span { start, end: self.pos })
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.text.get(self.pos) == Some(&byte);
        self.pos += usize::from(found);
        found
    }

    fn digits(&mut self) -> bool {
        let count = self.text[self.pos..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.pos += count;
        count > 0
    }

    fn open(&mut self, bracket: u8, expected: &'static str) -> Result<usize, JsonError> {
        self.white();
        if self.text.get(self.pos) != Some(&bracket) {
            return Err(self.error(expected));
        }
        if self.depth == MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        self.depth += 1;
        self.pos += 1;
        Ok(self.pos - 1)
    }

    fn close(&mut self, bracket: u8) -> bool {
        self.white();
        let closed = self.eat(bracket);
        self.depth -= usize::from(closed);
        closed
    }

    fn comma(&mut self, expected: &'static str) -> Result<(), JsonError> {
        if self.eat(b',') { Ok(()) } else { Err(self.error(expected)) }
    }

    fn white(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.text.get(self.pos) {
            self.pos += 1;
        }
    }

    fn error(&self, what: &'static str) -> JsonError {
        JsonError { what, offset: self.pos }
    }

    fn error_at(&mut self, pos: usize, what: &'static str) -> JsonError {
        self.pos = pos;
        self.error(what)
    }
}

const CONTROL: &str = "control character in a string";

/// Strings are looked through in blocks of so many bytes.
const BLOCK: usize = 16;

/// Which bytes of a block do not stand for themselves in a string, the first as the lowest bit: quotes, backslashes and
/// control characters.
fn special_bytes(block: &[u8; BLOCK]) -> u32 {
    let bytes = u8x16::new(*block);
    let equal = |byte: u8| bytes.simd_eq(u8x16::splat(byte));
    (equal(b'"') | equal(b'\\') | bytes.simd_lt(u8x16::splat(0x20))).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_of_a_block_are_those_of_its_bytes() {
        for byte in 0..=255_u8 {
            for at in 0..BLOCK {
                let mut block = *b"a!#[ \x7f\x80\xff]~0z\xc3\xa9(\"";
                block[at] = byte;
                let marks = special_bytes(&block);
                for (at, byte) in block.into_iter().enumerate() {
                    let special = byte < 0x20 || byte == b'"' || byte == b'\\';
                    assert_eq!(marks >> at & 1 == 1, special, "{byte} at {at}");
                }
                assert_eq!(marks >> BLOCK, 0);
            }
        }
    }

    /// Every byte, plain and behind a backslash, at every place of strings of every length around the block's.
    #[test]
    fn a_string_ends_where_serde_ends_it() {
        for len in 0..BLOCK * 2 + 4 {
            for at in 0..len {
                for byte in 0..0x80_u8 {
                    for escaped in [false, true] {
                        let mut text = vec![b'a'; len];
                        text[at] = byte;
                        if escaped && at > 0 {
                            text[at - 1] = b'\\';
                        }
                        let text = [b"\"", &text[..], b"\" \"and more, longer than a block\""].concat();
                        let mut ours = Cursor::new(&text);
                        let read = ours.string().map(|string| string.decode().into_owned());
                        let mut theirs = serde_json::Deserializer::from_slice(&text).into_iter::<String>();
                        match theirs.next() {
                            Some(Ok(expected)) => {
                                assert_eq!((read.as_deref(), ours.offset()), (Ok(&*expected), theirs.byte_offset()));
                            }
                            _ => assert!(read.is_err(), "{}", text.escape_ascii()),
                        }
                    }
                }
            }
        }
    }
}
