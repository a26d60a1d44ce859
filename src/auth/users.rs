//! The users file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Table;

use super::book::{self, Book, Entry, Fields};
use super::file::{Readers, Watched};
use super::password::is_hash;
use super::token::TOKEN_NAME;
use super::{AuthFileError, Password};
use crate::time::Timestamp;

/// The users file as commands see it: a TOML file of mode 0600 that is replaced as a whole with each change.
///
/// A gate that uses the file sees a change with the next request: whoever is removed, disabled or gets another password is logged
/// out. Names have 1 to 64 letters and digits, and after the first `-`, `_`, `.` and `@`.
///
/// ```
/// use hookgate::auth::{Password, UsersFile};
/// let folder = tempfile::tempdir().unwrap();
/// let users = UsersFile::new(folder.path().join("users.toml"));
/// users.add("ann", &Password::new("correct horse").unwrap()).unwrap();
/// users.set_disabled("ann", true).unwrap();
/// assert!(users.list().unwrap()[0].disabled);
/// assert!(users.add("ann", &Password::new("correct horse").unwrap()).is_err());
/// ```
#[derive(Clone, Debug)]
pub struct UsersFile(PathBuf);

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct User {
    /// The name.
    pub name: Arc<str>,
    /// Whether the user may not log in at present.
    pub disabled: bool,
    /// When the user was added, RFC 3339.
    pub created: String,
}

impl UsersFile {
    /// The users in this file, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        UsersFile(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// All users by name; none when there is no file.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn list(&self) -> Result<Vec<User>, AuthFileError> {
        let book: Book<UserEntry> = book::load(&self.0)?;
        let user = |(name, entry): (&Arc<str>, &UserEntry)| User {
            name: name.clone(),
            disabled: entry.disabled,
            created: entry.created.clone(),
        };
        Ok(book.iter().map(user).collect())
    }

    /// Adds a user.
    ///
    /// # Errors
    /// The name is taken or not acceptable, or the file cannot be used.
    pub fn add(&self, name: &str, password: &Password) -> Result<(), AuthFileError> {
        if name == TOKEN_NAME {
            let why = format!("{name:?} is what whoever shows the token is called; choose another name");
            return Err(AuthFileError::new(&self.0, why));
        }
        let created = Timestamp::now().to_string();
        book::add(&self.0, name, UserEntry { password: self.hash(password)?, disabled: false, created })
    }

    /// Gives a user another password, which ends the user's logins.
    ///
    /// # Errors
    /// There is no such user, or the file cannot be used.
    pub fn set_password(&self, name: &str, password: &Password) -> Result<(), AuthFileError> {
        let hash = self.hash(password)?;
        book::change(&self.0, name, |entry: &mut UserEntry| entry.password = hash)
    }

    /// Forbids a user to log in, or allows it again.
    ///
    /// # Errors
    /// There is no such user, or the file cannot be used.
    pub fn set_disabled(&self, name: &str, disabled: bool) -> Result<(), AuthFileError> {
        book::change(&self.0, name, |entry: &mut UserEntry| entry.disabled = disabled)
    }

    /// Removes a user.
    ///
    /// # Errors
    /// There is no such user, or the file cannot be used.
    pub fn remove(&self, name: &str) -> Result<(), AuthFileError> {
        book::remove::<UserEntry>(&self.0, name)
    }

    /// Whether a gate could use the file as it is now.
    ///
    /// # Errors
    /// Why it could not.
    pub fn check(&self) -> Result<(), AuthFileError> {
        watch(self.0.clone()).current().map(drop)
    }

    fn hash(&self, password: &Password) -> Result<Arc<str>, AuthFileError> {
        let hash = password.hash().map_err(|error| AuthFileError::new(&self.0, error.to_string()))?;
        Ok(hash.into())
    }
}

/// A user in the file.
pub(super) struct UserEntry {
    pub(super) password: Arc<str>,
    pub(super) disabled: bool,
    created: String,
}

impl Entry for UserEntry {
    const SECTION: &'static str = "users";
    const WHAT: &'static str = "user";
    const ABOUT: &'static str = "Who may log in to hookgate; managed by `hookgate user`.";

    fn read(fields: &mut Fields) -> Result<Self, String> {
        let password = fields.text("password")?;
        if !is_hash(&password) {
            return Err(fields.wrong("password", "is not an argon2id hash; `hookgate user passwd` makes one"));
        }
        Ok(UserEntry {
            password: password.into(),
            disabled: fields.flag("disabled")?,
            created: fields.text("created")?,
        })
    }

    fn write(&self) -> Table {
        let mut table = Table::new();
        table.insert("password".to_owned(), self.password.to_string().into());
        table.insert("disabled".to_owned(), self.disabled.into());
        table.insert("created".to_owned(), self.created.clone().into());
        table
    }
}

/// The file as a gate uses it.
pub(super) fn watch(path: PathBuf) -> Watched<Book<UserEntry>> {
    Watched::new(path, Readers::Owner, Book::parse)
}
