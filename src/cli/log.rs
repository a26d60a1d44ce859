//! The log, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::Subscriber;

use super::Failure;
use crate::config::{LogConfig, LogFormat};

/// Begins to log. `--log` wins over `RUST_LOG`, and that over the configuration.
pub(super) fn start(config: &LogConfig, flag: Option<&str>) -> Result<(), Failure> {
    let variable = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|filter| !filter.is_empty());
    let (filter, source) = match (flag, &variable) {
        (Some(flag), _) => (flag, "--log"),
        (None, Some(variable)) => (variable.as_str(), EnvFilter::DEFAULT_ENV),
        (None, None) => (config.level, "[log] level"),
    };
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Failure::usage(format!("{source}: {filter:?} is not a log filter: {error}")))?;
    let lines = Subscriber::builder().with_env_filter(filter).with_writer(io::stderr);
    let started = match config.format {
        LogFormat::Text => {
            tracing::subscriber::set_global_default(lines.with_ansi(io::stderr().is_terminal()).finish())
        }
        LogFormat::Json => tracing::subscriber::set_global_default(lines.json().flatten_event(true).finish()),
    };
    started.map_err(|error| Failure::run_time(format!("the log cannot be started: {error}")))
}
