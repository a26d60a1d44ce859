//! Passing over a value: all its text is checked, and nothing of it is kept.

use super::{Cursor, JsonError, MAX_DEPTH, Span};

/// The brackets that are open within a skipped value, the innermost as the lowest bit: set for an object.
type Brackets = u128;

const _: () = assert!(MAX_DEPTH <= Brackets::BITS as usize);

impl Cursor<'_> {
    /// Skips the next value, checking it.
    ///
    /// # Errors
    /// When it is malformed or nests deeper than [`MAX_DEPTH`].
    pub fn skip(&mut self) -> Result<Span, JsonError> {
        let start = self.position();
        let around = self.depth;
        let mut brackets: Brackets = 0;
        'value: loop {
            self.white();
            match self.text.get(self.pos) {
                Some(b'"') => drop(self.quoted()?),
                Some(b'{') => {
                    self.enter()?;
                    if !self.close(b'}') {
                        brackets = brackets << 1 | 1;
                        self.name()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.enter()?;
                    if !self.close(b']') {
                        brackets <<= 1;
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // A value ends here, and with it perhaps what is around it.
            while self.depth > around {
                let object = brackets & 1 != 0;
                if self.close(if object { b'}' } else { b']' }) {
                    brackets >>= 1;
                    continue;
                }
                if object {
                    self.comma("expected ',' or '}'")?;
                    self.name()?;
                } else {
                    self.comma("expected ',' or ']'")?;
                }
                continue 'value;
            }
            return Ok(Span { start, end: self.pos });
        }
    }

    /// Skips a value that is neither a string nor has others in it.
    fn scalar(&mut self) -> Result<(), JsonError> {
        match self.text.get(self.pos) {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(_) => Err(self.error("expected a JSON value")),
            None => Err(self.error("unexpected end of the JSON text")),
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
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
        Ok(())
    }

    fn digits(&mut self) -> bool {
        let count = self.text[self.pos..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.pos += count;
        count > 0
    }

    fn literal(&mut self, literal: &[u8]) -> Result<(), JsonError> {
        if !self.text[self.pos..].starts_with(literal) {
            return Err(self.error("expected a JSON value"));
        }
        self.pos += literal.len();
        Ok(())
    }
}
