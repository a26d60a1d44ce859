//! Where hooks come from, so that they can be read again while hookgate runs.

use std::fmt;
use std::fs;
use std::sync::Arc;

use super::describe::At;
use super::error::{ConfigErrors, Problems};
use super::files::Folder;
use super::keys::Name;
use crate::hooks::{HookSet, Redaction};

/// The variable that holds one more hook document.
pub(super) const INLINE_DOCUMENT: &str = "HOOKGATE_HOOKS";

/// The hook documents of a configuration and everything that they are checked against.
#[derive(Clone)]
pub struct HookSources {
    pub(super) folder: Folder,
    pub(super) documents: Vec<At<Name>>,
    pub(super) inline: Option<Arc<str>>,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) allow_insecure_loopback: bool,
    pub(super) connections: Vec<Arc<str>>,
    pub(super) redaction: Redaction,
    pub(super) denied: Vec<String>,
    pub(super) off: bool,
}

impl HookSources {
    /// Reads all documents as they are now. What a reload does not look at again: the configuration file and the environment.
    ///
    /// While hooks are switched off there are none, and a document that is at fault does not stand in the way.
    ///
    /// # Errors
    /// Every fault of every document; the caller keeps the hooks that it has.
    pub fn load(&self) -> Result<HookSet, ConfigErrors> {
        if self.off {
            return Ok(HookSet::empty());
        }
        let mut problems = Problems::default();
        let mut builder = HookSet::builder()
            .allowed_hosts(self.allowed_hosts.iter().map(String::as_str))
            .allow_insecure_loopback(self.allow_insecure_loopback)
            .connections(self.connections.iter().map(|name| &**name))
            .redaction(self.redaction.clone())
            .deny_tools(self.denied.iter().map(String::as_str));
        for pattern in &self.documents {
            match self.folder.expand(pattern) {
                Ok(files) => {
                    for file in files {
                        match fs::read(&file) {
                            Ok(bytes) => builder = builder.document(&file.display().to_string(), &bytes),
                            Err(error) => {
                                pattern.reject(&mut problems, format!("{} cannot be read: {error}", file.display()));
                            }
                        }
                    }
                }
                Err(message) => pattern.reject(&mut problems, message),
            }
        }
        if let Some(document) = &self.inline {
            builder = builder.document(INLINE_DOCUMENT, document.as_bytes());
        }
        match builder.build() {
            Ok(hooks) => problems.into_result().map(|()| hooks),
            Err(errors) => {
                for error in errors.errors() {
                    let place = match error.position {
                        Some((line, column)) => format!("{}:{line}:{column}", error.source),
                        None => error.source.to_string(),
                    };
                    problems.foreign(place, error.path.clone(), format!("{}; {}", error.found, error.accepted));
                }
                problems.into_result().map(|()| HookSet::empty())
            }
        }
    }
}

/// Documents may hold URLs that are nobody else's business; only their number is shown.
impl fmt::Debug for HookSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookSources")
            .field("documents", &self.documents.len())
            .field("inline", &self.inline.is_some())
            .finish_non_exhaustive()
    }
}
