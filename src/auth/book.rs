//! What users file and keys file have in common: `[section.NAME]` tables in a TOML file that commands write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toml::{Table, Value};

use super::AuthFileError;
use super::file;

/// Entries of one file.
const MAX_ENTRIES: usize = 1000;
const MAX_NAME_BYTES: usize = 64;

/// One entry of a book.
pub(super) trait Entry: Sized {
    /// The table that holds the entries.
    const SECTION: &'static str;
    /// What an entry is called in sentences.
    const WHAT: &'static str;
    /// What stands at the file's start.
    const ABOUT: &'static str;

    /// Reads one entry.
    ///
    /// # Errors
    /// What is wrong. It does not repeat a value: that may be a secret.
    fn read(fields: &mut Fields) -> Result<Self, String>;

    /// The entry as it is written.
    fn write(&self) -> Table;
}

/// The entries of a file, by name.
pub(super) struct Book<E>(BTreeMap<Arc<str>, E>);

impl<E: Entry> Book<E> {
    /// Reads the text of a file. Unknown keys, wrong types and bad names are errors.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut root: Table = text.parse().map_err(|error| not_toml(text, &error))?;
        let entries = match root.remove(E::SECTION) {
            None => Table::new(),
            Some(Value::Table(entries)) => entries,
            Some(_) => return Err(format!("{} is not a table", E::SECTION)),
        };
        if let Some(key) = root.keys().next() {
            return Err(format!("unknown key {key}; expected [{}.NAME] tables", E::SECTION));
        }
        if entries.len() > MAX_ENTRIES {
            return Err(format!("there are {} entries; at most {MAX_ENTRIES} are accepted", entries.len()));
        }
        let mut book = BTreeMap::new();
        for (name, value) in entries {
            check_name(&name)?;
            let Value::Table(table) = value else { return Err(format!("{}.{name} is not a table", E::SECTION)) };
            let mut fields = Fields { table, place: format!("{}.{name}", E::SECTION) };
            let entry = E::read(&mut fields)?;
            fields.end()?;
            book.insert(name.into(), entry);
        }
        Ok(Book(book))
    }

    fn print(&self) -> String {
        let entries = self.0.iter().map(|(name, entry)| (name.to_string(), Value::Table(entry.write()))).collect();
        let root = Table::from_iter([(E::SECTION.to_owned(), Value::Table(entries))]);
        format!("# {}\n\n{root}", E::ABOUT)
    }

    pub(super) fn get(&self, name: &str) -> Option<&E> {
        self.0.get(name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &E)> {
        self.0.iter()
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// There is one of that name, or the name is none.
    fn add(&mut self, name: &str, entry: E) -> Result<(), String> {
        check_name(name)?;
        if self.0.contains_key(name) {
            return Err(format!("there is a {} {name:?} already", E::WHAT));
        }
        if self.0.len() >= MAX_ENTRIES {
            return Err(format!("there are {MAX_ENTRIES} entries already; remove some first"));
        }
        self.0.insert(name.into(), entry);
        Ok(())
    }

    fn find(&mut self, name: &str) -> Result<&mut E, String> {
        self.0.get_mut(name).ok_or_else(|| format!("there is no {} {name:?}", E::WHAT))
    }

    fn remove(&mut self, name: &str) -> Result<(), String> {
        self.0.remove(name).map(drop).ok_or_else(|| format!("there is no {} {name:?}", E::WHAT))
    }
}

/// The book in a file, for commands.
pub(super) fn load<E: Entry>(path: &Path) -> Result<Book<E>, AuthFileError> {
    match file::read_private(path) {
        Ok(text) => Book::parse(&text).map_err(|why| AuthFileError::new(path, why)),
        Err(error) if error.is_missing() => Ok(Book(BTreeMap::new())),
        Err(error) => Err(error),
    }
}

/// Adds an entry to the book in a file, which is made when there is none.
pub(super) fn add<E: Entry>(path: &Path, name: &str, entry: E) -> Result<(), AuthFileError> {
    edit(path, |book: &mut Book<E>| book.add(name, entry))
}

/// Changes an entry of the book in a file.
pub(super) fn change<E: Entry>(path: &Path, name: &str, change: impl FnOnce(&mut E)) -> Result<(), AuthFileError> {
    edit(path, |book| book.find(name).map(change))
}

/// Removes an entry of the book in a file.
pub(super) fn remove<E: Entry>(path: &Path, name: &str) -> Result<(), AuthFileError> {
    edit(path, |book: &mut Book<E>| book.remove(name))
}

fn edit<E: Entry>(path: &Path, change: impl FnOnce(&mut Book<E>) -> Result<(), String>) -> Result<(), AuthFileError> {
    file::edit(path, |text| {
        let edited = || {
            let mut book = Book::parse(text.as_deref().unwrap_or_default())?;
            change(&mut book)?;
            Ok((book.print(), ()))
        };
        edited().map_err(|why: String| AuthFileError::new(path, why))
    })
}

/// Names stand in URLs, logs and commands.
fn check_name(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if starts && name.len() <= MAX_NAME_BYTES && name.bytes().all(fits) {
        return Ok(());
    }
    let accepted = "1 to 64 letters and digits, and after the first - _ . @";
    Err(format!("{name:?} is not a name; expected {accepted}"))
}

/// Where the text stops being TOML. The parser's own message would quote the line.
fn not_toml(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {} is not TOML", before.matches('\n').count() + 1)
}

/// The fields of an entry, each of which has to be asked for.
pub(super) struct Fields {
    table: Table,
    place: String,
}

impl Fields {
    /// A text that has to be there.
    pub(super) fn text(&mut self, name: &str) -> Result<String, String> {
        match self.table.remove(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(format!("{}.{name} is not a string", self.place)),
            None => Err(format!("{}.{name} is missing", self.place)),
        }
    }

    /// A truth value that is `false` when it is not there.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.table.remove(name) {
            None => Ok(false),
            Some(Value::Boolean(flag)) => Ok(flag),
            Some(_) => Err(format!("{}.{name} is neither true nor false", self.place)),
        }
    }

    /// An error about one field.
    pub(super) fn wrong(&self, name: &str, why: &str) -> String {
        format!("{}.{name} {why}", self.place)
    }

    fn end(self) -> Result<(), String> {
        match self.table.keys().next() {
            Some(key) => Err(format!("unknown key {}.{key}", self.place)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with one text.
    #[derive(Debug, PartialEq)]
    struct Note(String);

    impl Entry for Note {
        const SECTION: &'static str = "notes";
        const WHAT: &'static str = "note";
        const ABOUT: &'static str = "Notes.";

        fn read(fields: &mut Fields) -> Result<Self, String> {
            fields.text("text").map(Note)
        }

        fn write(&self) -> Table {
            Table::from_iter([("text".to_owned(), Value::String(self.0.clone()))])
        }
    }

    fn entries(count: usize) -> String {
        (0..count).map(|index| format!("[notes.n{index}]\ntext = \"\"\n")).collect()
    }

    fn fault(text: &str) -> String {
        Book::<Note>::parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"))
    }

    #[test]
    fn what_is_written_is_read() {
        let mut book = Book::<Note>::parse("").unwrap();
        book.add("a.b@c", Note("with \"quotes\"\nand lines".to_owned())).unwrap();
        book.add("B", Note(String::new())).unwrap();
        let text = book.print();
        assert!(text.starts_with("# Notes.\n\n[notes.B]\n"), "{text}");
        let again = Book::<Note>::parse(&text).unwrap();
        assert!(book.iter().eq(again.iter()));
    }

    #[test]
    fn the_number_of_entries_is_bounded() {
        assert!(fault(&entries(MAX_ENTRIES + 1)).contains("1001 entries; at most 1000"));
        let mut book = Book::<Note>::parse(&entries(MAX_ENTRIES)).unwrap();
        assert!(book.add("more", Note(String::new())).unwrap_err().contains("remove some first"));
        book.remove("n1").unwrap();
        assert_eq!(book.add("more", Note(String::new())), Ok(()));
    }

    #[test]
    fn names_are_plain() {
        for name in ["a", "9", "a-b_c.d@e", &"a".repeat(MAX_NAME_BYTES)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "-a", ".a", "@", "a b", "a/b", "a\n", "ä", &"a".repeat(MAX_NAME_BYTES + 1)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn faults_say_where_and_not_what() {
        for (text, expected) in [
            ("[notes.a]\ntext = \"s3cret\n", "line 2 is not TOML"),
            ("notes = \"s3cret\"", "notes is not a table"),
            ("[notes]\na = \"s3cret\"", "notes.a is not a table"),
            ("[notes.a]\ntext = [\"s3cret\"]", "notes.a.text is not a string"),
            ("[notes.a]\ntxt = \"s3cret\"", "notes.a.text is missing"),
            ("[notes.a]\ntext = \"\"\nmore = \"s3cret\"", "unknown key notes.a.more"),
            ("[other.a]\ntext = \"s3cret\"", "unknown key other; expected [notes.NAME] tables"),
        ] {
            assert_eq!(fault(text), expected);
        }
    }
}
