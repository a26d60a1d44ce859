//! The log, on standard error.

use std::io::{self, IsTerminal};

use tracing::Level;
use tracing::subscriber::set_global_default;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::Subscriber;
use tracing_subscriber::layer::SubscriberExt as _;

use super::{Failure, environment};
use crate::config::{LogConfig, LogFormat};

/// Begins to log. `--log` wins over `RUST_LOG`, and that over the configuration.
pub(super) fn start(config: &LogConfig, flag: Option<&str>) -> Result<(), Failure> {
    let variable = environment().find(|(name, filter)| name == EnvFilter::DEFAULT_ENV && !filter.is_empty());
    let (source, filter) = match (flag, &variable) {
        (Some(flag), _) => ("--log", flag),
        (None, Some((name, filter))) => (name.as_str(), filter.as_str()),
        (None, None) => ("[log] level", config.level),
    };
    let filter = EnvFilter::try_new(filter)
        .map_err(|error| Failure::usage(format!("{source}: {filter:?} is not a log filter: {error}")))?;
    let lines = Subscriber::builder().with_env_filter(filter).with_writer(io::stderr);
    // Whatever is asked for: below a warning, the MCP library logs whole messages, with headers and URLs of callbacks.
    let discreet = filter_fn(|line| *line.level() <= Level::WARN || !line.target().starts_with("rmcp"));
    let started = match config.format {
        LogFormat::Text => set_global_default(lines.with_ansi(io::stderr().is_terminal()).finish().with(discreet)),
        LogFormat::Json => set_global_default(lines.json().flatten_event(true).finish().with(discreet)),
    };
    started.map_err(|error| Failure::run_time(format!("the log cannot be started: {error}")))
}
