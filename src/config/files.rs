//! Files that the configuration names: relative paths start at the configuration file's folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::describe::At;
use super::error::Problems;
use super::keys::CertificateAndKey;
use super::model::TlsFiles;

/// What marks a certificate in a PEM file.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";
/// What marks a private key, whatever its kind.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// The folder at which relative paths start.
#[derive(Clone, Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// The folder of a configuration file.
    pub(super) fn of(file: &Path) -> Self {
        Folder(file.parent().unwrap_or(Path::new("")).to_owned())
    }

    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        self.0.join(path)
    }

    /// A file with certificates.
    pub(super) fn certificates(&self, path: &At<PathBuf>, problems: &mut Problems) -> Option<PathBuf> {
        self.pem(path, CERTIFICATE, "a certificate", problems)
    }

    pub(super) fn tls(&self, files: &CertificateAndKey, problems: &mut Problems) -> Option<TlsFiles> {
        let cert = self.certificates(&files.cert, problems);
        let key = self.pem(&files.key, PRIVATE_KEY, "a private key", problems);
        Some(TlsFiles { cert: cert?, key: key? })
    }

    fn pem(&self, path: &At<PathBuf>, mark: &str, what: &str, problems: &mut Problems) -> Option<PathBuf> {
        let file = self.resolve(path);
        let text = self.read(path, problems)?;
        if !text.contains(mark) {
            path.reject(problems, format!("{} does not hold {what} in PEM form", file.display()));
            return None;
        }
        Some(file)
    }

    /// The text of a file.
    pub(super) fn read(&self, path: &At<PathBuf>, problems: &mut Problems) -> Option<String> {
        let file = self.resolve(path);
        match fs::read_to_string(&file) {
            Ok(text) => Some(text),
            Err(error) => {
                path.reject(problems, format!("{} cannot be read: {error}", file.display()));
                None
            }
        }
    }

    /// The files that a pattern names, sorted; `*` and `?` stand for letters of one name.
    pub(super) fn expand(&self, pattern: &str) -> Result<Vec<PathBuf>, String> {
        if pattern.contains("**") {
            return Err("** is not supported; name each folder level with *".to_owned());
        }
        let mut found = vec![self.0.clone()];
        for part in Path::new(pattern).components() {
            let part = part.as_os_str();
            let wild = part.to_str().filter(|part| part.contains(['*', '?']));
            found = match wild {
                None => found.into_iter().map(|folder| folder.join(part)).collect(),
                Some(wild) => found.iter().flat_map(|folder| matching(folder, wild)).collect(),
            };
        }
        found.retain(|file| file.is_file());
        found.sort();
        if found.is_empty() {
            let all = self.resolve(Path::new(pattern));
            return Err(format!("{} names no file; a policy that is not there cannot be applied", all.display()));
        }
        Ok(found)
    }
}

/// The entries of a folder whose names fit. Hidden ones, such as an editor's backup, have to be asked for by their dot.
fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = fs::read_dir(here).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter(|name| (pattern.starts_with('.') || !name.starts_with('.')) && fits(pattern, name))
        .map(|name| folder.join(name))
        .collect()
}

/// Whether a name fits a pattern with `*` (any letters) and `?` (one letter).
fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let mut states = vec![false; pattern.len() + 1];
    // `states[n]`: the first n letters of the pattern fit the letters of the name read so far.
    let spread = |states: &mut [bool]| {
        for (index, letter) in pattern.iter().enumerate() {
            if *letter == '*' && states[index] {
                states[index + 1] = true;
            }
        }
    };
    states[0] = true;
    spread(&mut states);
    for letter in name.chars() {
        let mut next = vec![false; states.len()];
        for (index, expected) in pattern.iter().enumerate() {
            match expected {
                '*' => next[index] |= states[index],
                '?' => next[index + 1] |= states[index],
                other => next[index + 1] |= states[index] && *other == letter,
            }
        }
        states = next;
        spread(&mut states);
    }
    states.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_letters() {
        for (pattern, name, expected) in [
            ("*.json", "a.json", true),
            ("*.json", ".json", true),
            ("*.json", "a.jsonx", false),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "acb", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("ä?", "äö", true),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_name_existing_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.json", "a.json", ".hidden.json", "c.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join("d.json")).unwrap();
        let here = Folder(folder.path().to_owned());

        let names = |pattern| -> Vec<_> {
            let files = here.expand(pattern).unwrap();
            files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names("*.json"), ["a.json", "b.json"]);
        assert_eq!(names("c.txt"), ["c.txt"]);
        assert!(here.expand("missing.json").unwrap_err().contains("names no file"));
        assert!(here.expand("x/*.json").unwrap_err().contains("names no file"));
        assert!(here.expand("**/*.json").unwrap_err().contains("not supported"));
    }
}
