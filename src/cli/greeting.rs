//! What `run` says first: where it is, how agents get to it, where policy comes in.

use std::fmt::Write;
use std::net::SocketAddr;

use super::config::count;
use super::table;
use crate::config::{Config, RouteConfig};
use crate::{HooksMode, RouteKind};

pub(super) fn greeting(config: &Config) -> String {
    let mut text = format!("hookgate {}\n\n", env!("CARGO_PKG_VERSION"));
    let base = base(config.listen.first(), config.tls.is_some());
    for address in config.listen.iter().skip(1) {
        let _ = writeln!(text, "Also at {}", self::base(Some(address), config.tls.is_some()));
    }
    text.push_str(&indented(&table::render(&routes(config, &base))));
    text.push('\n');
    if let Some(route) = config.routes.iter().find(|route| leads_to(route, "anthropic")) {
        let url = format!("{base}{}", route.path_prefix);
        // A key is never printed: here it is a name for what `hookgate key add` printed once.
        let (environment, argument) = match config.auth.keys_file {
            Some(_) => {
                ("ANTHROPIC_CUSTOM_HEADERS=\"x-hookgate-key: $KEY\" ", ", default_headers={\"x-hookgate-key\": KEY}")
            }
            None => ("", ""),
        };
        let _ = writeln!(text, "Claude Code:  {environment}ANTHROPIC_BASE_URL={url} claude");
        let _ = writeln!(text, "Python SDK:   Anthropic(base_url=\"{url}\"{argument})");
    }
    let control = config.control_listen.first().map_or(base, |address| self::base(Some(address), false));
    let _ = writeln!(text, "Decisions:    {}", decisions(config, &control));
    let _ = writeln!(text, "Hooks:        {}\n", hooks(config));
    text
}

/// How the records can be read by whoever may.
fn decisions(config: &Config, control: &str) -> String {
    let path = "/hookgate/v1/sessions/SESSION_ID/hooks";
    match &config.auth.gate {
        None => format!("curl {control}{path}"),
        Some(gate) if gate.token.is_some() => {
            format!("curl -H \"authorization: Bearer $TOKEN\" {control}{path}")
        }
        Some(_) => format!("log in at {control}/hookgate/login?next={path}"),
    }
}

fn base(address: Option<&SocketAddr>, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    address.map_or_else(String::new, |address| format!("{scheme}://{address}"))
}

fn routes(config: &Config, base: &str) -> Vec<[String; 4]> {
    let mut rows = vec![["ROUTE", "KIND", "AT", "GOES TO"].map(str::to_owned)];
    rows.extend(config.routes.iter().map(|route| {
        let host = route.host.as_ref().map_or_else(String::new, |host| format!(" for host {host}"));
        let at = format!("{base}{}{host}", if route.path_prefix.is_empty() { "/" } else { &route.path_prefix });
        let upstreams: Vec<String> = route.upstreams.iter().map(ToString::to_string).collect();
        [route.route.name.to_string(), route.route.kind.name().to_owned(), at, upstreams.join(", ")]
    }));
    rows
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// A guess that is only used for a hint.
fn leads_to(route: &RouteConfig, name: &str) -> bool {
    let named = route.route.name.contains(name) || route.upstreams.iter().any(|target| target.host.contains(name));
    route.route.kind == RouteKind::Model && named
}

fn hooks(config: &Config) -> String {
    if config.hooks_mode == HooksMode::Off {
        return "switched off ([hooks] mode): no policy is applied".to_owned();
    }
    match config.hooks.iter().count() {
        0 => "none. Write a hook document, name it in [hooks] documents, and start again: \
              `hookgate config show` shows the keys"
            .to_owned(),
        handlers => format!("{}; `hookgate hooks list` shows them", count(handlers, "handler")),
    }
}
