//! What the built-in gate is made of.

use std::path::PathBuf;
use std::time::Duration;

use super::Token;

/// The settings of a [`Gate`](super::Gate).
///
/// The default has neither a token nor users, so a gate made of it refuses everything.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GateOptions {
    /// The token that passes, as `authorization: Bearer …` or on the login page.
    pub token: Option<TokenSource>,
    /// The users that may log in, as [`UsersFile`](super::UsersFile) manages them.
    pub users_file: Option<PathBuf>,
    /// How long a login lasts.
    pub session_ttl: Duration,
    /// The name of the login's cookie.
    pub cookie_name: String,
    /// Whether browsers send the cookie over TLS only (and to loopback, which most of them trust).
    pub cookie_secure: bool,
    /// Whether `/metrics` can be read without login.
    pub metrics_open: bool,
}

impl Default for GateOptions {
    fn default() -> Self {
        GateOptions {
            token: None,
            users_file: None,
            session_ttl: Duration::from_secs(7 * 24 * 3600),
            cookie_name: "hookgate_auth".to_owned(),
            cookie_secure: true,
            metrics_open: false,
        }
    }
}

/// Where the token comes from.
#[derive(Clone, Debug)]
pub enum TokenSource {
    /// It is known.
    Known(Token),
    /// A file that holds it; read again when it changes.
    File(PathBuf),
}
