//! `run`: the proxy.

use super::args::Args;
use super::{Failure, greeting, load, log, print};
use crate::HooksMode;
use crate::host::pingora;

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let config = load(args)?;
    log::start(&config.log, args.log.as_deref())?;
    print(&greeting::greeting(&config))?;
    if config.hooks_mode == HooksMode::Off {
        tracing::warn!("hooks are switched off: no policy is applied to any request");
    }
    pingora::serve(config).map_err(|error| Failure::run_time(error.to_string()))
}
