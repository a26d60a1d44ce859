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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::Kind;

    /// The same value read with the methods that callers have.
    fn walk(cursor: &mut Cursor<'_>) -> Result<Span, JsonError> {
        match cursor.kind()? {
            Kind::Object => cursor.object(|cursor, _| walk(cursor).map(drop)),
            Kind::Array => cursor.array(|cursor| walk(cursor).map(drop)),
            Kind::String => cursor.string().map(|string| string.span()),
            _ => cursor.skip(),
        }
    }

    /// An example with a byte missing, added or replaced at every place, and cut there.
    #[test]
    fn skipping_finds_what_walking_finds() {
        let text = "{ \"a\" :[1,-0.5e+1,{},[ ] ,{\"b\":{\"\\u00e9\\n\":[true,[[false],null]]}, \"c\":\"d\"}],\n\"\":0}"
            .as_bytes();
        let check = |text: &[u8]| {
            let (mut skipping, mut walking) = (Cursor::new(text), Cursor::new(text));
            assert_eq!(skipping.skip(), walk(&mut walking), "{}", text.escape_ascii());
            assert_eq!(skipping.offset(), walking.offset(), "{}", text.escape_ascii());
            assert_eq!(skipping.depth, walking.depth, "{}", text.escape_ascii());
        };
        check(text);
        for at in 0..text.len() {
            let (before, after) = text.split_at(at);
            check(before);
            check(&[before, &after[1..]].concat());
            for sign in b"{}[]\",:\\ \n0-.et\x00x" {
                check(&[before, &[*sign], after].concat());
                check(&[before, &[*sign], &after[1..]].concat());
            }
        }
    }

    #[test]
    fn values_nest_up_to_the_limit() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":", "}]")] {
            let levels = MAX_DEPTH / if open.len() > 5 { 2 } else { 1 };
            let nested = |levels: usize| format!("{}1{}", open.repeat(levels), close.repeat(levels));
            let text = nested(levels);
            assert_eq!(Cursor::new(text.as_bytes()).skip(), Ok(Span { start: 0, end: text.len() }));
            let text = nested(levels + 1);
            let error = Err(JsonError { what: "nested too deeply", offset: levels * open.len() });
            assert_eq!(Cursor::new(text.as_bytes()).skip(), error);
            let empty = format!("{}[]{}", open.repeat(levels), close.repeat(levels));
            assert_eq!(Cursor::new(empty.as_bytes()).skip(), error);
        }
    }

    /// What is around the skipped value is not taken for its own.
    #[test]
    fn a_value_within_others_ends_where_it_ends() {
        let text = br#"[[{"a": [1]}], 2]"#;
        let mut spans = Vec::new();
        let read = Cursor::document(text, |cursor| cursor.array(|cursor| cursor.skip().map(|span| spans.push(span))));
        assert_eq!(read, Ok(Span { start: 0, end: text.len() }));
        assert_eq!(spans, [Span { start: 1, end: 13 }, Span { start: 15, end: 16 }]);
    }
}
