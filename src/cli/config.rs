//! `validate` and `config …`.

use super::args::Args;
use super::{Failure, load, print};
use crate::HooksMode;

pub(super) fn validate(args: &Args) -> Result<(), Failure> {
    let config = load(args)?;
    let mut text = format!(
        "The configuration is valid: {}, {}.\n",
        count(config.routes.len(), "route"),
        count(config.hooks.iter().count(), "handler")
    );
    if config.hooks_mode == HooksMode::Off {
        text.push_str("Hooks are switched off ([hooks] mode = \"off\"), so the hook documents were not read.\n");
    }
    print(&text)
}

pub(super) fn show(args: &Args) -> Result<(), Failure> {
    print(&load(args)?.show())
}

pub(super) fn schema() -> Result<(), Failure> {
    print(&format!("{:#}\n", crate::config::schema()))
}

/// A number with its noun.
pub(super) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
