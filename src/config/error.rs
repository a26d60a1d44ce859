//! What is wrong with a configuration: all of it at once, each fault with its place.

use std::fmt;

use super::document::Origin;

/// One fault: where it stands, which key it concerns, what was found and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    order: (u8, usize, usize),
    place: String,
    path: String,
    message: String,
}

impl ConfigError {
    pub(super) fn new(origin: &Origin, path: impl Into<String>, message: impl Into<String>) -> Self {
        let order = match origin {
            Origin::File { line, column, .. } => (0, *line, *column),
            Origin::Environment(_) => (1, 0, 0),
            Origin::Default => (2, 0, 0),
        };
        ConfigError { order, place: origin.to_string(), path: path.into(), message: message.into() }
    }

    /// `file:line:column`, the environment variable, or `default`.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The key's path, such as `routes[1].upstream`; empty when the fault concerns the whole file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What was found and what is accepted.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Every fault of a configuration, in the order of the file, one a line when shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// The faults; never empty.
    pub fn errors(&self) -> &[ConfigError] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            fmt::Display::fmt(error, f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// Collects faults, so that the operator sees all of them in one go.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<ConfigError>);

impl Problems {
    pub(super) fn add(&mut self, origin: &Origin, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(ConfigError::new(origin, path, message));
    }

    /// A fault that another reader found and placed: one within a hook document.
    pub(super) fn foreign(&mut self, place: impl Into<String>, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(ConfigError { order: (3, 0, 0), place: place.into(), path: path.into(), message: message.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes in what another collector found.
    pub(super) fn join(&mut self, errors: ConfigErrors) {
        self.0.extend(errors.0);
    }

    pub(super) fn into_result(self) -> Result<(), ConfigErrors> {
        if self.0.is_empty() { Ok(()) } else { Err(self.into_errors()) }
    }

    /// The faults: in the order of the file, then variables by name, then hook documents.
    pub(super) fn into_errors(mut self) -> ConfigErrors {
        let variable = |error: &ConfigError| (error.order.0 == 1).then(|| error.place.clone());
        self.0.sort_by_cached_key(|error| (error.order, variable(error)));
        ConfigErrors(self.0)
    }
}
