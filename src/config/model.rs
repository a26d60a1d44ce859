//! The configuration as the hosts use it: checked, resolved, with nothing left to look up.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use crate::limits::Limits;

/// Everything that a host needs to start. Made by `Config::load`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The addresses to listen on; never empty.
    pub listen: Vec<SocketAddr>,
    /// The certificate of every listener; `None`: plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The control surface's own addresses, always plain HTTP; empty: it is served on every listener of `listen`.
    pub control_listen: Vec<SocketAddr>,
    /// How long streams that are under way may go on after SIGTERM.
    pub shutdown_grace: Duration,
    /// The routes, longest prefix first; a route with a host stands before one without for the same prefix.
    pub routes: Vec<RouteConfig>,
    /// Whether hooks are dispatched at all.
    pub hooks_mode: HooksMode,
    /// The tools that delegate to sub-agents.
    pub subagents: Vec<Subagent>,
    /// Credentials for handlers, by name.
    pub connections: BTreeMap<Arc<str>, Connection>,
    /// Every bound that can be set.
    pub limits: Limits,
    /// How the log is written.
    pub log: LogConfig,
}

/// A certificate chain and its key: PEM files that exist, as absolute or already resolved paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// One route: which requests it takes and where they go.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RouteConfig {
    /// The route's unique name.
    pub name: Arc<str>,
    /// What travels on it.
    pub kind: RouteKind,
    /// Only requests for this host, in lower case and without a port; `None`: every host.
    pub host: Option<String>,
    /// The path prefix, taken off before forwarding: empty for `/`, else `/a/b` without a slash at the end.
    pub path_prefix: String,
    /// Where the requests go; never empty, several are taken in turn.
    pub upstreams: Vec<UpstreamTarget>,
    /// Path prefixes that pass although hookgate cannot inspect what they carry.
    pub allow_uninspected: Vec<String>,
    /// What a denial does to an answer.
    pub on_deny: OnDeny,
    /// The longest time to connect, TLS included.
    pub connect_timeout: Duration,
    /// The longest time from the whole request sent to the first byte of the answer.
    pub first_byte_timeout: Duration,
    /// The longest silence within an answer.
    pub idle_timeout: Duration,
    /// Trust these certificates (PEM) instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The certificate that hookgate shows to the upstream.
    pub client_cert: Option<TlsFiles>,
    /// Headers set on every request to the upstream, over those of the client.
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

/// How an upstream is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain HTTP.
    Http,
    /// HTTP over TLS.
    Https,
}

/// What travels on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RouteKind {
    /// A model API, inspected.
    Model,
    /// Anything, passed on unseen.
    Passthrough,
}

/// What a denial does to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnDeny {
    /// The model learns it as a failed tool result and goes on.
    Feedback,
    /// The answer ends with the reason as visible text.
    End,
}

/// Whether hooks are dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HooksMode {
    /// They are.
    On,
    /// Emergency switch: none is.
    Off,
}

/// A tool that delegates to a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subagent {
    /// The tool's name.
    pub tool: Arc<str>,
    /// Where its input names the sub-agent (JSON Pointer).
    pub id: String,
    /// Where its input holds the delegated prompt (JSON Pointer).
    pub prompt: String,
}

/// What hookgate shows to a policy service, resolved from its references.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Connection {
    /// The headers to send, `authorization` included.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The key of Standard Webhooks signatures.
    pub signing_secret: Option<Secret>,
}

/// Text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for the one place that has to send it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// How the log is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// One line a record, for people or for machines.
    pub format: LogFormat,
    /// What is logged, in the syntax of `RUST_LOG`: `info`, `hookgate=debug,warn`.
    pub level: String,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
