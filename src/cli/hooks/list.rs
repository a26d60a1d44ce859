//! `hooks list`: the handlers in force.

use url::Url;

use crate::HooksMode;
use crate::cli::args::Args;
use crate::cli::{Failure, load, print, table};
use crate::hooks::{Handler, Target};

pub(in crate::cli) fn list(args: &Args) -> Result<(), Failure> {
    let config = load(args)?;
    if config.hooks_mode == HooksMode::Off {
        return print("Hooks are switched off ([hooks] mode = \"off\").\n");
    }
    if config.hooks.is_empty() {
        return print("No hooks are configured. [hooks] documents names the files that hold them.\n");
    }
    let denied = config.hooks.denied_tools();
    if !denied.is_empty() {
        print(&format!("Denied by [tools], whatever hooks say: {}\n", denied.join(", ")))?;
    }
    if config.hooks.iter().next().is_none() {
        return Ok(());
    }
    let heading = ["EVENT", "ID", "MATCHER", "URL", "TIMEOUT", "FAILURE", "SOURCE"].map(str::to_owned);
    let rows: Vec<_> = std::iter::once(heading).chain(config.hooks.iter().map(|handler| row(handler))).collect();
    print(&table::render(&rows))
}

fn row(handler: &Handler) -> [String; 7] {
    let names = handler.matcher.names();
    [
        handler.event.name().to_owned(),
        handler.id.to_string(),
        names.map_or_else(|| "*".to_owned(), |names| names.join(",")),
        match &handler.target {
            Target::Http { url } => shown(url),
        },
        format!("{}ms", handler.timeout.as_millis()),
        handler.failure_mode.name().to_owned(),
        handler.source.to_string(),
    ]
}

/// A query may hold a key; where a handler is can be seen without it.
pub(super) fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    if url.query().is_some() {
        shown.set_query(Some("…"));
        return shown.as_str().replace("%E2%80%A6", "…");
    }
    shown.into()
}
