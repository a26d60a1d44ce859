//! Why the proxy did not start.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Why the proxy did not start: whose fault it is, and where.
///
/// Its text is for the operator and never holds a secret.
#[derive(Debug)]
pub struct ServeError(Cause);

#[derive(Debug)]
enum Cause {
    Bind(SocketAddr, std::io::Error),
    Certificate(PathBuf, String),
    Runtime(std::io::Error),
    Setup(String),
}

impl ServeError {
    pub(super) fn bind(address: SocketAddr, error: std::io::Error) -> Self {
        ServeError(Cause::Bind(address, error))
    }

    pub(super) fn certificate(file: &Path, why: impl fmt::Display) -> Self {
        ServeError(Cause::Certificate(file.to_owned(), why.to_string()))
    }

    pub(super) fn runtime(error: std::io::Error) -> Self {
        ServeError(Cause::Runtime(error))
    }

    pub(super) fn setup(why: impl fmt::Display) -> Self {
        ServeError(Cause::Setup(why.to_string()))
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Cause::Bind(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Cause::Certificate(file, why) => write!(f, "cannot use {}: {why}", file.display()),
            Cause::Runtime(error) => write!(f, "cannot start the threads: {error}"),
            Cause::Setup(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ServeError {}
