//! Printing envelopes: JSON objects in which received JSON texts stand byte for byte.

use crate::limits::MAX_OBSERVED_TEXT_BYTES;
use crate::wire::json::{Cursor, quote_into};

/// Prints one object, member by member.
pub(super) struct ObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
    /// Whether a text was cut.
    pub(super) truncated: bool,
}

impl<'a> ObjectWriter<'a> {
    /// Prints an object whose members `write` adds.
    pub(super) fn object(out: &'a mut Vec<u8>, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        out.push(b'{');
        write(&mut ObjectWriter { out, first: true, truncated: false });
        out.push(b'}');
    }

    fn key(&mut self, key: &str) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        quote_into(self.out, key);
        self.out.push(b':');
    }

    /// A JSON text as it is.
    pub(super) fn raw(&mut self, key: &str, json: &[u8]) {
        self.key(key);
        self.out.extend_from_slice(json);
    }

    pub(super) fn string(&mut self, key: &str, text: &str) {
        self.key(key);
        quote_into(self.out, text);
    }

    /// A string, or null.
    pub(super) fn nullable(&mut self, key: &str, text: Option<&str>) {
        match text {
            Some(text) => self.string(key, text),
            None => self.raw(key, b"null"),
        }
    }

    /// A string, or nothing.
    pub(super) fn optional(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.string(key, text);
        }
    }

    pub(super) fn number(&mut self, key: &str, number: u32) {
        self.raw(key, number.to_string().as_bytes());
    }

    pub(super) fn bool(&mut self, key: &str, value: bool) {
        self.raw(key, if value { b"true" } else { b"false" });
    }

    /// A member that is there when something is so.
    pub(super) fn flag(&mut self, key: &str, value: bool) {
        if value {
            self.bool(key, true);
        }
    }

    pub(super) fn member(&mut self, key: &str, write: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.key(key);
        ObjectWriter::object(self.out, write);
    }

    pub(super) fn array<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Vec<u8>, T),
    ) {
        self.key(key);
        self.out.push(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            write(self.out, item);
        }
        self.out.push(b']');
    }

    /// A string that is cut at [`MAX_OBSERVED_TEXT_BYTES`].
    pub(super) fn bounded(&mut self, key: &str, text: &str) {
        let cut = text.floor_char_boundary(MAX_OBSERVED_TEXT_BYTES);
        self.truncated |= cut < text.len();
        self.string(key, &text[..cut]);
    }

    /// A JSON text that is cut: of a string its decoded text, of anything else the JSON text itself, as a string.
    pub(super) fn bounded_raw(&mut self, key: &str, json: &[u8]) {
        if json.len() <= MAX_OBSERVED_TEXT_BYTES {
            return self.raw(key, json);
        }
        match Cursor::document(json, |cursor| Ok(cursor.string()?.decode())) {
            Ok(text) => self.bounded(key, &text),
            Err(_) => self.bounded(key, &String::from_utf8_lossy(json)),
        }
    }
}
