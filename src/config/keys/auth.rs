//! `[auth]`: who may use the control surface, and the routes.

use std::path::PathBuf;

use super::text::{CookieName, EnvName};
use crate::auth::GateOptions;
use crate::config::describe::{At, choice, section};
use crate::config::document::Value;

/// `token_env` when the file does not say.
pub(crate) const DEFAULT_TOKEN_ENV: &str = "HOOKGATE_TOKEN";
/// `users_file` when the file does not say.
pub(crate) const DEFAULT_USERS_FILE: &str = "users.toml";

section! {
    /// `[auth]`
    Auth {
        /// How clients of the control surface show who they are.
        mode: AuthMode = "none",
        /// The environment variable with the token that passes; at least 16 letters.
        token_env: At<EnvName> = DEFAULT_TOKEN_ENV,
        /// The file with the token, instead of token_env; read again when it changes.
        token_file: Option<At<PathBuf>>,
        /// The users that may log in, with argon2id hashes; managed by `hookgate user`.
        users_file: At<PathBuf> = DEFAULT_USERS_FILE,
        /// How long a login lasts, in seconds.
        session_ttl_seconds: u64 [60..=31_536_000] = Value::seconds(GateOptions::default().session_ttl),
        /// The name of the login's cookie.
        cookie_name: CookieName = "hookgate_auth",
        /// Send the login's cookie over TLS only; false is for plain HTTP without TLS in front.
        cookie_secure: bool = true,
        /// Whether requests on routes need a key in x-hookgate-key; the key's name is the tenant of its sessions.
        protect_routes: bool = false,
        /// The keys for routes; managed by `hookgate key`.
        keys_file: At<PathBuf> = "keys.toml",
        /// Whether /metrics can be read without login.
        metrics_open: bool = false,
    }
}

/// How clients show who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthMode {
    /// They do not.
    None,
    /// By the token.
    Token,
    /// By user name and password.
    Password,
    /// By either.
    Both,
}

choice!(AuthMode {
    "none" => AuthMode::None, "Clients do not show who they are; only this machine can reach hookgate.";
    "token" => AuthMode::Token, "By a bearer token, or on the login page with it.";
    "password" => AuthMode::Password, "On the login page, by user name and password.";
    "token+password" => AuthMode::Both, "By either of them.";
});

impl AuthMode {
    pub(crate) fn takes_token(self) -> bool {
        matches!(self, AuthMode::Token | AuthMode::Both)
    }

    pub(crate) fn takes_passwords(self) -> bool {
        matches!(self, AuthMode::Password | AuthMode::Both)
    }
}
