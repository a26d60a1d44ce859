//! `[auth]`: the gate's settings, with everything that they refer to in its place.

use std::path::Path;
use std::time::Duration;

use super::{Surroundings, references};
use crate::auth::{AuthFileError, GateOptions, KeysFile, Token, TokenSource, UsersFile};
use crate::config::describe::At;
use crate::config::error::Problems;
use crate::config::keys::{Auth, AuthMode, DEFAULT_TOKEN_ENV, DEFAULT_USERS_FILE};
use crate::config::model::AuthConfig;

pub(super) fn resolve(keys: &Auth, around: &Surroundings<'_>, problems: &mut Problems) -> AuthConfig {
    refuse_what_would_protect_nothing(keys, problems);
    let token = if keys.mode.takes_token() { token(keys, around, problems) } else { None };
    let users_file = keys.mode.takes_passwords().then(|| around.folder.resolve(&keys.users_file));
    if let Some(path) = &users_file {
        check(&keys.users_file, UsersFile::new(path).check(), "hookgate user add NAME --password-stdin", problems);
    }
    let keys_file = keys.protect_routes.then(|| around.folder.resolve(&keys.keys_file));
    if let Some(path) = &keys_file {
        check(&keys.keys_file, KeysFile::new(path).check(), "hookgate key add NAME", problems);
    }
    let gate = GateOptions {
        token,
        users_file,
        session_ttl: Duration::from_secs(keys.session_ttl_seconds),
        cookie_name: keys.cookie_name.to_string(),
        cookie_secure: keys.cookie_secure,
        metrics_open: keys.metrics_open,
    };
    AuthConfig { gate: (keys.mode != AuthMode::None).then_some(gate), keys_file }
}

fn token(keys: &Auth, around: &Surroundings<'_>, problems: &mut Problems) -> Option<TokenSource> {
    if let Some(path) = &keys.token_file {
        let text = around.folder.read(path, problems)?;
        let file = around.folder.resolve(path);
        return match Token::new(&text) {
            Ok(_) => Some(TokenSource::File(file)),
            Err(error) => {
                path.reject(problems, format!("{} holds no token: {error}", file.display()));
                None
            }
        };
    }
    let text = references::variable(&keys.token_env, around, problems)?;
    match Token::new(text) {
        Ok(token) => Some(TokenSource::Known(token)),
        Err(error) => {
            let variable = &**keys.token_env;
            keys.token_env.reject(problems, format!("the environment variable {variable} holds no token: {error}"));
            None
        }
    }
}

fn check<T>(at: &At<T>, found: Result<(), AuthFileError>, command: &str, problems: &mut Problems) {
    if let Err(error) = found {
        let hint = if error.is_missing() { format!("; `{command}` makes it") } else { String::new() };
        at.reject(problems, format!("{error}{hint}"));
    }
}

/// Whoever names a token or users believes that they are asked for.
fn refuse_what_would_protect_nothing(keys: &Auth, problems: &mut Problems) {
    let without_effect =
        |modes: &str| format!("this has no effect in this mode; set [auth] mode = {modes}, or remove it");
    let names_variable = **keys.token_env != *DEFAULT_TOKEN_ENV;
    if !keys.mode.takes_token() {
        let message = without_effect("\"token\" or \"token+password\"");
        if names_variable {
            keys.token_env.reject(problems, message.clone());
        }
        if let Some(file) = &keys.token_file {
            file.reject(problems, message);
        }
    } else if let Some(file) = keys.token_file.as_ref().filter(|_| names_variable) {
        file.reject(problems, "found both token_env and token_file; expected one of them");
    }
    if !keys.mode.takes_passwords() && keys.users_file.as_path() != Path::new(DEFAULT_USERS_FILE) {
        keys.users_file.reject(problems, without_effect("\"password\" or \"token+password\""));
    }
}
