//! The `hookgate` command: arguments in, text and an exit code out.
//!
//! Exit codes: 0 all is well, 1 something failed while running, 2 the usage or the configuration is wrong.

mod args;
mod config;
mod greeting;
mod hooks;
mod log;
mod run;
mod secrets;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use self::args::{Args, Command, ConfigCommand, HooksCommand};
use crate::config::{Config, ConfigErrors};

/// Runs the command that the process's arguments name.
pub fn main() -> ExitCode {
    let args = Args::parse();
    let result = match &args.command {
        Command::Run => run::run(&args),
        Command::Validate => config::validate(&args),
        Command::Config(ConfigCommand::Show) => config::show(&args),
        Command::Config(ConfigCommand::Schema) => config::schema(),
        Command::Hooks(HooksCommand::List) => hooks::list(&args),
        Command::Hooks(HooksCommand::Test(test)) => hooks::test(&args, test),
        Command::User(command) => secrets::user(&args, command),
        Command::Key(command) => secrets::key(&args, command),
        Command::Demo => demo(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Whoever closed standard error does not want to know.
            let _ = writeln!(io::stderr(), "{}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn demo() -> Result<(), Failure> {
    crate::testing::demo::run(&mut io::stdout().lock()).map_err(|error| Failure::run_time(error.to_string()))
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// Something failed while running.
    fn run_time(message: impl Into<String>) -> Self {
        Failure { code: 1, message: message.into() }
    }

    /// What was asked for makes no sense.
    fn usage(message: impl Into<String>) -> Self {
        Failure { code: 2, message: message.into() }
    }
}

impl From<ConfigErrors> for Failure {
    fn from(errors: ConfigErrors) -> Self {
        let count = errors.errors().len();
        let faults = if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") };
        Failure::usage(format!("{errors}\n\nThe configuration has {faults}; nothing was started."))
    }
}

/// The configuration that the arguments and the environment lead to.
fn load(args: &Args) -> Result<Config, ConfigErrors> {
    Config::load(args.config.as_deref(), environment())
}

/// The environment of the process. A variable that is not Unicode is read with replacement characters, so that it is
/// refused and not overlooked.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
}

/// Writes to standard output. A reader that has gone away (`hookgate … | head`) is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::run_time(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
