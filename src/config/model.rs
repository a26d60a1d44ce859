//! The configuration as the hosts use it: checked, resolved, with nothing left to look up.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::document::Node;
use super::sources::HookSources;
use crate::auth::GateOptions;
use crate::callback::Settings;
use crate::dispatch::{Connection, HyperTransport};
use crate::hooks::HookSet;
use crate::limits::Limits;
use crate::{HooksMode, Route, Subagent};

/// Everything that a host needs to start. Made by [`Config::load`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The addresses to listen on; never empty.
    pub listen: Vec<SocketAddr>,
    /// The certificate of every listener; `None`: plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The control surface's own addresses, always plain HTTP; empty: it is served on every listener of `listen`.
    pub control_listen: Vec<SocketAddr>,
    /// The names under which the outside reaches this hookgate, some of them with a port.
    pub trusted_hosts: Vec<String>,
    /// How long streams that are under way may go on after SIGTERM.
    pub shutdown_grace: Duration,
    /// The routes, longest prefix first; a route with a host stands before one without for the same prefix.
    pub routes: Vec<RouteConfig>,
    /// The hooks of all documents; empty while `hooks_mode` is off.
    pub hooks: HookSet,
    /// Where the hooks came from, to read them again.
    pub hook_sources: HookSources,
    /// Whether hooks are dispatched at all.
    pub hooks_mode: HooksMode,
    /// One-time callbacks.
    pub tmp_hooks: TmpHooksConfig,
    /// What becomes of the messages of callbacks.
    pub delivery: DeliveryConfig,
    /// The tools that delegate to sub-agents.
    pub subagents: Vec<Subagent>,
    /// What handlers are reached with, by the name that they refer to.
    pub connections: BTreeMap<Arc<str>, Connection>,
    /// Who may use the control surface, and the routes.
    pub auth: AuthConfig,
    /// Every bound that can be set.
    pub limits: Limits,
    /// How the log is written.
    pub log: LogConfig,
    /// Every key with its value and origin, for [`Config::show`].
    pub(super) effective: Node,
}

impl Config {
    /// The way to the handlers, with their connections.
    pub fn transport(&self) -> HyperTransport {
        let with = |transport: HyperTransport, (name, connection): (&Arc<str>, &Connection)| {
            transport.connection(name.clone(), connection.clone())
        };
        self.connections.iter().fold(HyperTransport::new(), with)
    }
}

/// Who may use what.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthConfig {
    /// The gate of the control surface; `None`: it stands open, and all listeners are on loopback.
    pub gate: Option<GateOptions>,
    /// The keys of routes; `None`: routes need no key.
    pub keys_file: Option<PathBuf>,
}

/// The files that the commands `user` and `key` manage. Made by [`AuthFiles::load`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthFiles {
    /// The users file, which need not exist.
    pub users: PathBuf,
    /// The keys file, which need not exist.
    pub keys: PathBuf,
}

/// A certificate chain and its key: PEM files that exist, as absolute or already resolved paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// One-time callbacks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TmpHooksConfig {
    /// How they are issued and taken, the controller included.
    pub settings: Settings,
    /// Whether the callback route needs no login.
    pub allow_unauthenticated: bool,
}

/// What becomes of the messages of callbacks, beside the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeliveryConfig {
    /// How long the end of a turn is held back while a callback is open; zero: not at all.
    pub hold_stop: Duration,
}

/// One route: which requests it takes and where they go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RouteConfig {
    /// What the core has to know of it: its unique name, its kind, what may pass, what a denial does, whether callbacks are
    /// offered.
    pub route: Arc<Route>,
    /// Only requests for this host, in lower case and without a port; `None`: every host.
    pub host: Option<String>,
    /// The path prefix, taken off before forwarding: empty for `/`, else `/a/b` without a slash at the end.
    pub path_prefix: String,
    /// Where the requests go; never empty, several are taken in turn.
    pub upstreams: Vec<UpstreamTarget>,
    /// The longest time to connect, TLS included.
    pub connect_timeout: Duration,
    /// The longest time from the whole request sent to the first byte of the answer.
    pub first_byte_timeout: Duration,
    /// The longest silence within an answer.
    pub idle_timeout: Duration,
    /// The pause between looks at whether each of several servers is there.
    pub check_interval: Duration,
    /// Trust these certificates (PEM) instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The certificate that hookgate shows to the upstream.
    pub client_cert: Option<TlsFiles>,
    /// Headers set on every request to the upstream, over those of the client; their values are marked as sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// One server of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamTarget {
    /// Plain HTTP or HTTPS.
    pub scheme: Scheme,
    /// The host name or address; IPv6 without brackets.
    pub host: String,
    /// The port, the scheme's own unless the URL has one.
    pub port: u16,
    /// Put before the path that is left: empty, or `/a/b` without a slash at the end.
    pub path_prefix: String,
    /// The value of the `host` header: host, with brackets where IPv6 needs them, and the port unless it is the scheme's own.
    pub authority: String,
    /// The server name in the TLS handshake; `None` for plain HTTP and for an address.
    pub sni: Option<String>,
}

/// As a URL.
impl fmt::Display for UpstreamTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        write!(f, "{scheme}://{}{}", self.authority, self.path_prefix)
    }
}

/// How an upstream is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

/// How the log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// One line a record, for people or for machines.
    pub format: LogFormat,
    /// The least severe level that is logged: `error`, `warn`, `info`, `debug` or `trace`.
    pub level: &'static str,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
