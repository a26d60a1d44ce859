//! The gate's files: private, read again when they change, replaced as a whole.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A larger file is none of ours.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// A file of the gate that cannot be used: which one, why, and what to do. Nothing of its content is shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct AuthFileError {
    path: PathBuf,
    why: String,
    missing: bool,
}

impl AuthFileError {
    pub(super) fn new(path: &Path, why: impl Into<String>) -> Self {
        AuthFileError { path: path.to_owned(), why: why.into(), missing: false }
    }

    fn io(path: &Path, what: &str, error: &io::Error) -> Self {
        let missing = error.kind() == io::ErrorKind::NotFound;
        AuthFileError { missing, ..Self::new(path, format!("the file cannot be {what}: {error}")) }
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        self.missing
    }
}

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Its owner only (mode 0600); else it is refused.
    Owner,
    /// Whoever the operator wants.
    Any,
}

/// Reads a file and says which state of it that was.
fn read(path: &Path, readers: Readers) -> Result<(String, Stamp), AuthFileError> {
    let failed = |error: io::Error| AuthFileError::io(path, "read", &error);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(AuthFileError::new(path, "this is not a file"));
    }
    if readers == Readers::Owner {
        check_mode(path, &metadata)?;
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(AuthFileError::new(path, format!("the file has more than {MAX_FILE_BYTES} bytes")));
    }
    Ok((text, Stamp::of(&metadata)))
}

/// The text of a file that nobody but its owner may read.
pub(super) fn read_private(path: &Path) -> Result<String, AuthFileError> {
    read(path, Readers::Owner).map(|(text, _)| text)
}

#[cfg(unix)]
fn check_mode(path: &Path, metadata: &Metadata) -> Result<(), AuthFileError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let why = format!("the file's mode is {mode:04o}, so others than its owner can use it; run `chmod 600` on it");
    Err(AuthFileError::new(path, why))
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &Metadata) -> Result<(), AuthFileError> {
    Ok(())
}

/// Tells one state of a file from another.
#[derive(Clone, PartialEq, Eq)]
struct Stamp(Vec<i64>);

impl Stamp {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        // The change time too: a new mode is a new state.
        let times = [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        let place = [metadata.dev(), metadata.ino(), metadata.size()].map(|number| number.cast_signed());
        Stamp(times.into_iter().chain(place).collect())
    }

    #[cfg(not(unix))]
    fn of(metadata: &Metadata) -> Self {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Stamp(vec![modified.map_or(0, |time| time.as_nanos() as i64), metadata.len() as i64])
    }
}

/// A file whose content is kept until the file changes.
pub(super) struct Watched<T> {
    path: PathBuf,
    readers: Readers,
    parse: fn(&str) -> Result<T, String>,
    last: Mutex<Last<T>>,
}

enum Last<T> {
    Unread,
    Good(Stamp, Arc<T>),
    Bad(AuthFileError),
}

impl<T> Watched<T> {
    pub(super) fn new(path: PathBuf, readers: Readers, parse: fn(&str) -> Result<T, String>) -> Self {
        Watched { path, readers, parse, last: Mutex::new(Last::Unread) }
    }

    /// The content as it is now. Whether the file has changed is looked at each time, which costs a call to the system.
    ///
    /// # Errors
    /// The file cannot be used, and what it held before must not be used either. The log says so once for each reason.
    pub(super) fn current(&self) -> Result<Arc<T>, AuthFileError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Last::Good(stamp, content), Ok(metadata)) = (&*last, fs::metadata(&self.path))
            && *stamp == Stamp::of(&metadata)
        {
            return Ok(content.clone());
        }
        let read = read(&self.path, self.readers).and_then(|(text, stamp)| {
            let content = (self.parse)(&text).map_err(|why| AuthFileError::new(&self.path, why))?;
            Ok((stamp, Arc::new(content)))
        });
        match read {
            Ok((stamp, content)) => {
                if !matches!(*last, Last::Unread) {
                    tracing::info!(file = %self.path.display(), "the auth gate has read a changed file");
                }
                *last = Last::Good(stamp, content.clone());
                Ok(content)
            }
            Err(error) => {
                if !matches!(&*last, Last::Bad(known) if *known == error) {
                    tracing::error!(%error, "the auth gate refuses everything that depends on this file until it is mended");
                    *last = Last::Bad(error.clone());
                }
                Err(error)
            }
        }
    }
}

/// Changes a private file: others who change it wait, and whoever reads it sees it as it was or as it is then.
///
/// `change` gets the text, `None` when there is no file yet, and gives the new one.
pub(super) fn edit<R>(
    path: &Path,
    change: impl FnOnce(Option<String>) -> Result<(String, R), AuthFileError>,
) -> Result<R, AuthFileError> {
    let failed = |error: io::Error| AuthFileError::io(path, "written", &error);
    // A link is followed, so that it stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let lock = File::open(folder).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let before = match read_private(&target) {
        Ok(text) => Some(text),
        Err(error) if error.is_missing() => None,
        Err(error) => return Err(error),
    };
    let (text, result) = change(before)?;
    // A temporary file is made with mode 0600.
    let mut new = tempfile::Builder::new().prefix(".hookgate-").tempfile_in(folder).map_err(failed)?;
    new.write_all(text.as_bytes()).and_then(|()| new.as_file().sync_all()).map_err(failed)?;
    new.persist(&target).map_err(|error| failed(error.error))?;
    lock.sync_all().map_err(failed)?;
    Ok(result)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn number(text: &str) -> Result<u32, String> {
        text.trim().parse().map_err(|_| "this is no number".to_owned())
    }

    fn set(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_watched_file_is_what_it_is_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        let watched = Watched::new(path.clone(), Readers::Owner, number);
        let why = || watched.current().unwrap_err().to_string();
        assert!(watched.current().unwrap_err().is_missing());
        set(&path, "1", 0o600);
        assert_eq!((*watched.current().unwrap(), *watched.current().unwrap()), (1, 1));
        set(&path, "22", 0o600);
        assert_eq!(*watched.current().unwrap(), 22);
        set(&path, "22", 0o640);
        assert!(why().contains("mode is 0640") && why().contains("chmod 600"), "{}", why());
        set(&path, "x", 0o600);
        assert!(why().ends_with("n: this is no number"));
        set(&path, "3", 0o400);
        assert_eq!(*watched.current().unwrap(), 3);
        fs::remove_file(&path).unwrap();
        assert!(watched.current().is_err(), "what it held is not used any more");
        fs::create_dir(&path).unwrap();
        assert!(watched.current().is_err());
        set(&folder.path().join("large"), &"1".repeat(MAX_FILE_BYTES as usize + 1), 0o600);
        assert!(
            read_private(&folder.path().join("large")).unwrap_err().to_string().contains("more than 4194304 bytes")
        );
        set(&folder.path().join("any"), "4", 0o644);
        assert_eq!(*Watched::new(folder.path().join("any"), Readers::Any, number).current().unwrap(), 4);
    }

    #[test]
    fn edits_are_whole_private_and_one_after_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n");
        let add = || edit(&path, |text| Ok(((text.map_or(0, |text| number(&text).unwrap()) + 1).to_string(), ())));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(add)).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
        });
        assert_eq!(read_private(&path).unwrap(), "8");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        edit(&link, |_| Ok(("9".to_owned(), ()))).unwrap();
        assert_eq!(read_private(&path).unwrap(), "9");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

        set(&path, "9", 0o644);
        assert!(add().is_err(), "a file that others can read is not made private behind the operator's back");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }
}
