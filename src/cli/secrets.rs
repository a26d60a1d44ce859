//! `user …` and `key …`: who may log in, and who may use the routes.

use std::io::{self, Read, Write};

use super::args::{Args, KeyCommand, UserCommand};
use super::{Failure, environment, print, table};
use crate::auth::{AuthFileError, KeysFile, Password, UsersFile};
use crate::config::AuthFiles;

/// More than any password.
const MAX_INPUT_BYTES: u64 = 4096;

pub(super) fn user(args: &Args, command: &UserCommand) -> Result<(), Failure> {
    let users = UsersFile::new(files(args)?.users);
    match command {
        UserCommand::Add { name, .. } => {
            users.add(name, &password()?)?;
            note(&format!("{name} may log in."))
        }
        UserCommand::Passwd { name, .. } => {
            users.set_password(name, &password()?)?;
            note(&format!("{name} has the new password, and is logged out everywhere."))
        }
        UserCommand::Disable { name } => {
            users.set_disabled(name, true)?;
            note(&format!("{name} may not log in any more, and is logged out everywhere."))
        }
        UserCommand::Enable { name } => {
            users.set_disabled(name, false)?;
            note(&format!("{name} may log in again."))
        }
        UserCommand::Remove { name } => {
            users.remove(name)?;
            note(&format!("{name} is removed, and is logged out everywhere."))
        }
        UserCommand::List => {
            let heading = ["NAME", "STATE", "CREATED"].map(str::to_owned);
            let row = |user: crate::auth::User| {
                let state = if user.disabled { "disabled" } else { "enabled" };
                [user.name.to_string(), state.to_owned(), user.created]
            };
            let users = users.list()?;
            print(&table::render(&std::iter::once(heading).chain(users.into_iter().map(row)).collect::<Vec<_>>()))
        }
    }
}

pub(super) fn key(args: &Args, command: &KeyCommand) -> Result<(), Failure> {
    let keys = KeysFile::new(files(args)?.keys);
    match command {
        KeyCommand::Add { name } => {
            let key = keys.add(name)?;
            print(&format!("{key}\n"))?;
            note(&format!(
                "This is the key of {name}, for the header x-hookgate-key. It is shown this once: only its hash is kept."
            ))
        }
        KeyCommand::Remove { name } => {
            keys.remove(name)?;
            note(&format!("The key of {name} is refused from now on."))
        }
        KeyCommand::List => {
            let heading = ["NAME", "CREATED"].map(str::to_owned);
            let row = |key: crate::auth::Key| [key.name.to_string(), key.created];
            let keys = keys.list()?;
            print(&table::render(&std::iter::once(heading).chain(keys.into_iter().map(row)).collect::<Vec<_>>()))
        }
    }
}

fn files(args: &Args) -> Result<AuthFiles, Failure> {
    Ok(AuthFiles::load(args.config.as_deref(), environment())?)
}

/// The password on standard input. A newline at its end is the shell's and not a part of it.
fn password() -> Result<Password, Failure> {
    let mut text = String::new();
    let read = io::stdin().lock().take(MAX_INPUT_BYTES).read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("the password cannot be read from standard input: {error}")))?;
    let line = text.strip_suffix('\n').map_or(&*text, |line| line.strip_suffix('\r').unwrap_or(line));
    if line.contains(['\n', '\r']) {
        return Err(Failure::usage("a password is one line; standard input holds several"));
    }
    Password::new(line).map_err(|error| Failure::usage(error.to_string()))
}

/// What was done, on standard error: standard output is for what is to be read by programs.
fn note(text: &str) -> Result<(), Failure> {
    // Whoever closed standard error does not want to know.
    let _ = writeln!(io::stderr(), "{text}");
    Ok(())
}

impl From<AuthFileError> for Failure {
    fn from(error: AuthFileError) -> Self {
        Failure::run_time(error.to_string())
    }
}
