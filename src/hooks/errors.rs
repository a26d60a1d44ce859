//! Mistakes in hook documents.

use std::fmt;
use std::sync::Arc;

/// One mistake: where, what was found, what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookError {
    /// The document, or the setting.
    pub source: Arc<str>,
    /// Line and column from 1, for documents.
    pub position: Option<(usize, usize)>,
    /// The place as a JSON path, `$.hooks.PreToolUse[0].url`.
    pub path: String,
    /// What was found.
    pub found: String,
    /// What is accepted.
    pub accepted: String,
}

/// `file:line:column: path: what was found; what is accepted`
impl fmt::Display for HookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}: {}; {}", self.path, self.found, self.accepted)
    }
}

/// All mistakes that were found, in the order of the documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookErrors(Vec<HookError>);

impl HookErrors {
    pub(super) fn new(errors: Vec<HookError>) -> Self {
        HookErrors(errors)
    }

    /// Each of them.
    pub fn errors(&self) -> &[HookError] {
        &self.0
    }
}

/// One line each.
impl fmt::Display for HookErrors {
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

impl std::error::Error for HookErrors {}
