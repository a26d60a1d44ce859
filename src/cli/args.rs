//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::hooks::Event;

const EXAMPLES: &str = "\
Examples:
  hookgate run                                  listen on 127.0.0.1:8787, with ./hookgate.toml if it is there
  hookgate run --config team.toml --log debug
  hookgate validate                             check the configuration and all hook documents
  hookgate hooks test PreToolUse --tool Bash --input '{\"command\": \"rm -rf /\"}'
  ANTHROPIC_BASE_URL=http://127.0.0.1:8787/anthropic claude

Every key of the configuration can be overridden: HOOKGATE__SERVER__LISTEN=127.0.0.1:9000 hookgate run
Exit codes: 0 all is well, 1 something failed while running, 2 the usage or the configuration is wrong.";

/// Lifecycle hooks for AI agents, on the wire: a proxy between agents and the model APIs that they call.
#[derive(Debug, Parser)]
#[command(name = "hookgate", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
    /// The configuration file [default: ./hookgate.toml if it is there, else built-in routes without hooks]
    #[arg(long, short, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// What to log, as in RUST_LOG: "debug", "hookgate=debug,warn"
    #[arg(long, global = true, value_name = "FILTER")]
    pub(super) log: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the proxy until SIGTERM; SIGHUP reads the hook documents again
    Run,
    /// Check the configuration and the hook documents, and report every fault
    Validate,
    /// See the configured hooks, and try them
    #[command(subcommand)]
    Hooks(HooksCommand),
    /// See the configuration and what it can hold
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Manage the users that may log in ([auth] mode "password")
    #[command(subcommand)]
    User(UserCommand),
    /// Manage the keys that routes ask for ([auth] protect_routes)
    #[command(subcommand)]
    Key(KeyCommand),
    /// Watch a scripted agent, model and policy service talk through the proxy, on this machine alone
    Demo,
}

#[derive(Debug, Subcommand)]
pub(super) enum HooksCommand {
    /// List the handlers in the order in which they are asked
    List,
    /// Send a sample event to the configured handlers and show what they answer
    Test(HooksTest),
}

#[derive(Debug, clap::Args)]
pub(super) struct HooksTest {
    /// The event, such as PreToolUse or UserPromptSubmit
    #[arg(value_name = "EVENT", value_parser = event)]
    pub(super) event: Event,
    /// Ask only this handler
    #[arg(long, value_name = "ID")]
    pub(super) handler: Option<String>,
    /// The tool (or the sub-agent) of the event [default: Bash, for sub-agents reviewer]
    #[arg(long, value_name = "NAME")]
    pub(super) tool: Option<String>,
    /// The tool's input as JSON; for events without a tool their text: the prompt, the answer, the reason
    #[arg(long, value_name = "JSON")]
    pub(super) input: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Show every key with its value and where the value came from
    Show,
    /// Print a JSON Schema of the configuration file, for editors
    Schema,
}

#[derive(Debug, Subcommand)]
pub(super) enum UserCommand {
    /// Add a user
    Add {
        /// The user's name
        name: String,
        /// Read the password from standard input, so that it stands in no history and no process list
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// List the users
    List,
    /// Forbid a user to log in, and end the user's logins
    Disable {
        /// The user's name
        name: String,
    },
    /// Allow a user to log in again
    Enable {
        /// The user's name
        name: String,
    },
    /// Remove a user, and end the user's logins
    Remove {
        /// The user's name
        name: String,
    },
    /// Give a user another password, and end the user's logins
    Passwd {
        /// The user's name
        name: String,
        /// Read the password from standard input, so that it stands in no history and no process list
        #[arg(long, required = true)]
        password_stdin: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key and print it, this once; its name is the tenant of the sessions that use it
    Add {
        /// The key's name
        name: String,
    },
    /// List the keys' names
    List,
    /// Refuse a key from now on
    Remove {
        /// The key's name
        name: String,
    },
}

fn event(text: &str) -> Result<Event, String> {
    Event::parse(text).ok_or_else(|| format!("expected one of {}", Event::ALL.map(Event::name).join(", ")))
}
