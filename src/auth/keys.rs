//! Named keys for routes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use toml::Table;

use super::AuthFileError;
use super::answer::{broken, problem};
use super::book::{self, Book, Entry, Fields};
use super::file::{Readers, Watched};
use crate::body::Body;
use crate::id::{Tenant, random_key};
use crate::time::Timestamp;

/// The header with the key of a request on a route.
const KEY_HEADER: &str = "x-hookgate-key";
/// What keys begin with, so that people and scanners recognise one.
const MARK: &str = "hgk_";

/// The keys file as commands see it: a TOML file of mode 0600 with the hash of each key, replaced as a whole with each change.
///
/// ```
/// use hookgate::auth::KeysFile;
/// let folder = tempfile::tempdir().unwrap();
/// let keys = KeysFile::new(folder.path().join("keys.toml"));
/// let key = keys.add("team-a").unwrap();
/// assert!(key.starts_with("hgk_"));
/// assert_eq!(&*keys.list().unwrap()[0].name, "team-a");
/// assert!(!std::fs::read_to_string(keys.path()).unwrap().contains(&key));
/// ```
#[derive(Clone, Debug)]
pub struct KeysFile(PathBuf);

/// A key, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// The key's name, which is that of the tenant.
    pub name: Arc<str>,
    /// When it was added, RFC 3339.
    pub created: String,
}

impl KeysFile {
    /// The keys in this file, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        KeysFile(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// All keys by name; none when there is no file.
    ///
    /// # Errors
    /// The file cannot be used.
    pub fn list(&self) -> Result<Vec<Key>, AuthFileError> {
        let book: Book<KeyEntry> = book::load(&self.0)?;
        let key = |(name, entry): (&Arc<str>, &KeyEntry)| Key { name: name.clone(), created: entry.created.clone() };
        Ok(book.iter().map(key).collect())
    }

    /// Makes a key and gives it: 256 random bits. It cannot be had again, since the file holds its hash only.
    ///
    /// # Errors
    /// The name is taken or not acceptable, or the file cannot be used.
    pub fn add(&self, name: &str) -> Result<String, AuthFileError> {
        let key = format!("{MARK}{}", blake3::Hash::from_bytes(random_key()).to_hex());
        let entry = KeyEntry { hash: blake3::hash(key.as_bytes()), created: Timestamp::now().to_string() };
        book::add(&self.0, name, entry)?;
        Ok(key)
    }

    /// Removes a key: it is refused from the next request on.
    ///
    /// # Errors
    /// There is no such key, or the file cannot be used.
    pub fn remove(&self, name: &str) -> Result<(), AuthFileError> {
        book::remove::<KeyEntry>(&self.0, name)
    }

    /// Whether [`RouteKeys`] could use the file as it is now.
    ///
    /// # Errors
    /// Why it could not.
    pub fn check(&self) -> Result<(), AuthFileError> {
        watch(self.0.clone()).current().map(drop)
    }
}

struct KeyEntry {
    hash: blake3::Hash,
    created: String,
}

impl Entry for KeyEntry {
    const SECTION: &'static str = "keys";
    const WHAT: &'static str = "key";
    const ABOUT: &'static str = "Who may use the routes of hookgate; managed by `hookgate key`.";

    fn read(fields: &mut Fields) -> Result<Self, String> {
        let hash = blake3::Hash::from_hex(fields.text("hash")?);
        let hash = hash.map_err(|_| fields.wrong("hash", "is not the hash of a key; `hookgate key add` makes one"))?;
        Ok(KeyEntry { hash, created: fields.text("created")? })
    }

    fn write(&self) -> Table {
        let mut table = Table::new();
        table.insert("hash".to_owned(), self.hash.to_hex().to_string().into());
        table.insert("created".to_owned(), self.created.clone().into());
        table
    }
}

fn watch(path: PathBuf) -> Watched<Book<KeyEntry>> {
    Watched::new(path, Readers::Owner, Book::parse)
}

/// Puts routes behind keys: the request's `x-hookgate-key` says which tenant it belongs to.
///
/// 1. The file is looked at with each request, so a removed key is refused from then on. A file that is missing or broken
///    refuses every request.
/// 2. A key is compared with all keys, and each comparison takes the same time wherever they differ.
/// 3. The core removes the header before a request goes on, as all headers that begin with `x-hookgate-`.
///
/// ```
/// use hookgate::auth::{KeysFile, RouteKeys};
/// let folder = tempfile::tempdir().unwrap();
/// let file = KeysFile::new(folder.path().join("keys.toml"));
/// let key = file.add("team-a").unwrap();
/// let keys = RouteKeys::new(file.path());
///
/// let mut headers = http::HeaderMap::new();
/// assert_eq!(keys.tenant(&headers).unwrap_err().status(), 401);
/// headers.insert("x-hookgate-key", key.parse().unwrap());
/// assert_eq!(keys.tenant(&headers).unwrap().name(), "team-a");
/// ```
pub struct RouteKeys(Watched<Book<KeyEntry>>);

impl RouteKeys {
    /// The keys in this file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        RouteKeys(watch(path.into()))
    }

    /// Whose request it is.
    ///
    /// # Errors
    /// The answer to a request without a key that is known: 401, or 503 while the file cannot be used.
    #[expect(clippy::result_large_err, reason = "the error is the answer, and it is on its way to the client")]
    pub fn tenant(&self, headers: &HeaderMap) -> Result<Tenant, Response<Body>> {
        let keys = self.0.current().map_err(|_| broken())?;
        let mut sent = headers.get_all(KEY_HEADER).iter();
        let (Some(key), None) = (sent.next(), sent.next()) else {
            return Err(refusal(
                "This route needs one key, in the header x-hookgate-key; `hookgate key add` makes one.",
            ));
        };
        let hash = blake3::hash(key.as_bytes());
        let known = keys.iter().fold(None, |found, (name, entry)| if entry.hash == hash { Some(name) } else { found });
        let unknown = || refusal("The key in x-hookgate-key is not known; it may have been removed.");
        known.map(|name| Tenant::new(name.clone())).ok_or_else(unknown)
    }
}

fn refusal(detail: &str) -> Response<Body> {
    let mut answer = problem(StatusCode::UNAUTHORIZED, "key-needed", "A key is needed", detail);
    let challenge = HeaderValue::from_static("x-hookgate-key realm=\"hookgate\"");
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    answer
}

impl std::fmt::Debug for RouteKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RouteKeys")
    }
}
