//! Duplicate member names: two readers of such a text may see two different values.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Cursor, JsonError, Kind, Str};

/// A member name that stands twice in one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// The name, decoded.
    pub name: String,
    /// Byte offset of its second appearance.
    pub offset: usize,
}

/// Looks for a duplicate member name at any depth; names are compared after unescaping.
///
/// ```
/// use hookgate::wire::json::find_duplicate;
/// assert_eq!(find_duplicate(br#"{"host": 1, "x": {"host": 2}}"#).unwrap(), None);
/// assert_eq!(find_duplicate(br#"{"host": 1, "ho\u0073t": 2}"#).unwrap().unwrap().name, "host");
/// ```
///
/// # Errors
/// When the text is not JSON.
pub fn find_duplicate(text: &[u8]) -> Result<Option<DuplicateKey>, JsonError> {
    let mut found = None;
    Cursor::document(text, |cursor| value(cursor, &mut found))?;
    Ok(found)
}

fn value(cursor: &mut Cursor<'_>, found: &mut Option<DuplicateKey>) -> Result<(), JsonError> {
    match cursor.kind()? {
        Kind::Object => {
            let mut names = Names::default();
            cursor.object(|cursor, key| {
                if !names.add(key) && found.is_none() {
                    *found = Some(DuplicateKey { name: key.decode().into_owned(), offset: key.span().start });
                }
                value(cursor, found)
            })?;
        }
        Kind::Array => {
            cursor.array(|cursor| value(cursor, found))?;
        }
        _ => {
            cursor.skip()?;
        }
    }
    Ok(())
}

/// The names of one object. Most objects are small, so a short list is compared before a set is built.
#[derive(Default)]
pub(crate) struct Names<'a> {
    few: Vec<Cow<'a, [u8]>>,
    many: HashSet<Cow<'a, [u8]>>,
}

const FEW: usize = 16;

impl<'a> Names<'a> {
    /// Adds a name; false when it was there.
    pub(crate) fn add(&mut self, key: Str<'a>) -> bool {
        let name = key.bytes();
        if !self.many.is_empty() {
            return self.many.insert(name);
        }
        if self.few.contains(&name) {
            return false;
        }
        self.few.push(name);
        if self.few.len() == FEW {
            self.many.extend(self.few.drain(..));
        }
        true
    }
}
