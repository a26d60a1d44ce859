//! A folder with a configuration.

use std::fs;
use std::path::PathBuf;

use hookgate::config::{Config, ConfigErrors};
use tempfile::TempDir;

pub(crate) struct Folder(TempDir);

impl Folder {
    /// A folder whose `hookgate.toml` holds the text.
    pub(crate) fn with(text: &str) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.file("hookgate.toml", text);
        folder
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn load(&self, environment: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(Some(&self.path("hookgate.toml")), environment)
    }

    /// The faults, without the folder's name, one a line.
    pub(crate) fn faults(&self, environment: &[(&str, &str)]) -> Vec<String> {
        let errors = self.load(environment).expect_err("the configuration was accepted");
        let folder = format!("{}/", self.0.path().display());
        errors.to_string().lines().map(|line| line.replace(&folder, "")).collect()
    }
}

/// What is wrong with a text.
pub(crate) fn faults(text: &str) -> Vec<String> {
    Folder::with(text).faults(&[])
}

pub(crate) fn accepted(text: &str) -> Config {
    Folder::with(text).load(&[]).unwrap_or_else(|errors| panic!("{errors}"))
}
