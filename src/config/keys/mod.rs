//! Every key of the configuration file. Nothing else says what a key is called, accepts or means.

mod auth;
mod callbacks;
mod text;
mod tools;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::describe::{At, Named, OneOrMany, choice, section};
use super::document::Value;
use super::model::LogFormat;
use crate::limits::Limits;
use crate::{HooksMode, OnDeny, RouteKind};

pub(super) use auth::{Auth, AuthMode, DEFAULT_TOKEN_ENV, DEFAULT_USERS_FILE};
pub(super) use callbacks::{Delivery, TmpHooks};
pub(super) use text::{EnvName, Hostname, Name, PathPrefix, Pointer, PublicOrigin, TrustedHost, UpstreamUrl};
pub(super) use tools::HttpTool;

section! {
    /// The whole file.
    Root {
        /// Where hookgate listens, and how it stops.
        server: Server = Value::table(),
        /// Who may use hookgate.
        auth: Auth = Value::table(),
        /// The policy: which hooks there are and what their decisions do.
        hooks: Hooks = Value::table(),
        /// Which requests go where. Without any, three model routes: /anthropic, /openai and /gemini.
        routes: At<Vec<Route>> = default_routes(),
        /// One-time callbacks: URLs that a worker calls once to wake a session.
        tmp_hooks: TmpHooks = Value::table(),
        /// What becomes of the messages that callbacks bring.
        delivery: Delivery = Value::table(),
        /// Which tools agents may use, whatever hooks say.
        tools: Tools = Value::table(),
        /// The tools with which an agent delegates to a sub-agent.
        subagents: Vec<Subagent> = default_subagents(),
        /// What handlers, logs and the audit do not get to see of a tool's input and result.
        redact: Vec<At<Redact>> = Value::none(),
        /// Credentials for policy services, by reference; a handler names one as its "connection".
        connections: Named<At<Connection>> = Value::table(),
        /// The records of what hooks decided.
        audit: Audit = Value::table(),
        /// What is bounded, and by how much.
        limits: LimitKeys = Value::table(),
        /// The log, on standard error.
        log: Log = Value::table(),
    }
}

section! {
    /// `[server]`
    Server {
        /// The addresses to listen on. Without an auth gate only loopback addresses are accepted.
        listen: At<OneOrMany<At<SocketAddr>>> = ["127.0.0.1:8787"],
        /// The certificate of the listeners; HTTP/2 and HTTP/1.1 are offered. Without it they speak plain HTTP.
        tls: Option<CertificateAndKey>,
        /// Own addresses for the control surface (health, metrics, audit). Without any it is served on every listener.
        control_listen: OneOrMany<At<SocketAddr>> = Value::none(),
        /// The names under which the outside reaches this hookgate; the origin of callbacks is derived from them, and browsers
        /// reach MCP routes by no other names.
        trusted_hosts: Vec<TrustedHost> = Value::none(),
        /// How long answers that are under way may go on after SIGTERM.
        shutdown_grace: Duration [0..=86_400_000] = "30s",
    }
}

section! {
    /// A certificate and its key.
    CertificateAndKey {
        /// The certificate chain, a PEM file.
        cert: At<PathBuf>,
        /// The private key, a PEM file.
        key: At<PathBuf>,
    }
}

section! {
    /// `[hooks]`
    Hooks {
        /// Whether hooks are dispatched; "off" is the emergency switch, also HOOKGATE_HOOKS_MODE=off.
        mode: HooksMode = "on",
        /// Hook documents; * and ? stand for any letters of a file's or folder's name. HOOKGATE_HOOKS holds one more document.
        documents: Vec<At<Name>> = Value::none(),
        /// The hosts that handlers may be on, exactly; with a port only that port. HOOKGATE_HOOK_ALLOWED_HOSTS adds more.
        allowed_hosts: Vec<Name> = Value::none(),
        /// Accept http:// for handlers on loopback addresses.
        allow_insecure_loopback: bool = false,
        /// How often Stop handlers may send the model back to work in one turn.
        max_stop_retries: u32 [0..=16] = Limits::default().max_stop_retries,
        /// How often one answer goes on after all its tool calls were denied.
        max_deny_rounds: u32 [0..=8] = Limits::default().max_deny_rounds,
        /// What a denied tool call does to the answer; a route may say otherwise.
        on_deny: OnDeny = "feedback",
    }
}

choice!(HooksMode {
    "on" => HooksMode::On, "Hooks are dispatched.";
    "off" => HooksMode::Off, "No hook is dispatched, and no tool is denied; every start and every request says so in the log.";
});

choice!(OnDeny {
    "feedback" => OnDeny::Feedback, "The model learns it as a failed tool result and goes on.";
    "end" => OnDeny::End, "The answer ends with the reason as visible text.";
});

section! {
    /// `[[routes]]`
    Route {
        /// The route's name, in records and logs.
        name: At<Name>,
        /// What travels on the route.
        kind: RouteKind,
        /// The name of the MCP server behind the route; hooks know its tools as mcp__<server>__<tool>. Without it, the route's
        /// name.
        server: Option<At<Name>>,
        /// The origin by which the outside reaches the route: the OAuth metadata of an MCP server and the addresses in an agent's
        /// card speak of it then.
        public_origin: Option<PublicOrigin>,
        /// Only requests for this host, without a port.
        host: Option<Hostname>,
        /// The start of the paths that the route takes, taken off before forwarding; the longest one that fits wins.
        path_prefix: At<PathPrefix>,
        /// The server behind the route, or a list of servers that are taken in turn.
        upstream: At<OneOrMany<At<UpstreamUrl>>>,
        /// The tools behind a route of kind "http-tool", each with the method and the path by which it is called.
        tools: Vec<HttpTool> = Value::none(),
        /// Whether the model is offered the tool request_tmp_hook, with which it asks for a one-time callback.
        tmp_hooks: bool = false,
        /// Starts of paths that pass although hookgate cannot inspect what they carry, or although they are no tool's.
        allow_uninspected: Vec<PathPrefix> = Value::none(),
        /// What a denied tool call does to the answer; without it as in [hooks].
        on_deny: Option<OnDeny>,
        /// The longest time to connect to the upstream, TLS included.
        connect_timeout: Duration [1..=300_000] = "5s",
        /// The longest time until the upstream's answer begins.
        first_byte_timeout: Duration [1..=86_400_000] = "10m",
        /// The longest silence within an answer. Without it 5m, and 24h on routes of the kinds "mcp" and "a2a", where a stream
        /// waits for what may happen.
        idle_timeout: Option<Duration> [1..=86_400_000],
        /// How often each of several servers is connected to, to see whether it is there; one that is not is taken last.
        check_interval: Duration [100..=86_400_000] = "5s",
        /// Trust the certificates in this PEM file instead of the system's.
        ca_file: Option<At<PathBuf>>,
        /// The certificate that hookgate shows to the upstream.
        client_cert: Option<CertificateAndKey>,
        /// Headers that hookgate sets for the upstream, each from the environment variable that is named.
        header_env: Named<At<EnvName>> = Value::table(),
    }
}

choice!(RouteKind {
    "model" => RouteKind::Model, "A model API; the protocol is known by the path.";
    "mcp" => RouteKind::Mcp, "An MCP server, by Streamable HTTP.";
    "http-tool" => RouteKind::HttpTool, "Tools behind plain HTTP: a table of methods and paths.";
    "a2a" => RouteKind::A2a, "An agent that speaks A2A, by JSON-RPC or HTTP+JSON.";
    "passthrough" => RouteKind::Passthrough, "Anything; it passes unseen and fires no hook.";
});

fn default_routes() -> Value {
    let route =
        |name, prefix, upstream| [("name", name), ("kind", "model"), ("path_prefix", prefix), ("upstream", upstream)];
    Value::tables(&[
        route("anthropic", "/anthropic", "https://api.anthropic.com"),
        route("openai", "/openai", "https://api.openai.com"),
        route("gemini", "/gemini", "https://generativelanguage.googleapis.com"),
    ])
}

section! {
    /// `[tools]`
    Tools {
        /// Tools that nobody may use, by their own names or as mcp__<server>__<tool>. No hook is asked, and none can allow them.
        deny: Vec<Name> = Value::none(),
    }
}

section! {
    /// `[[subagents]]`
    Subagent {
        /// The tool's name.
        tool: Name,
        /// Where the tool's input names the sub-agent, a JSON Pointer.
        id: Pointer,
        /// Where the tool's input holds the delegated prompt, a JSON Pointer.
        prompt: Pointer,
    }
}

/// Claude Code delegates with these two, so that a SubagentStart policy works without further settings.
fn default_subagents() -> Value {
    let subagent = |tool| [("tool", tool), ("id", "/subagent_type"), ("prompt", "/prompt")];
    Value::tables(&[subagent("Agent"), subagent("Task")])
}

section! {
    /// `[[redact]]`
    Redact {
        /// The tool; without "fields" and "allow" its whole input and result are hidden.
        tool: Name,
        /// Hide only these values, as JSON Pointers.
        fields: Option<Vec<Pointer>>,
        /// Show only these members of the input and result.
        allow: Option<Vec<Name>>,
    }
}

section! {
    /// `[connections.NAME]`
    Connection {
        /// The environment variable with a bearer token.
        bearer_env: Option<At<EnvName>>,
        /// The file with a bearer token.
        bearer_file: Option<At<PathBuf>>,
        /// The environment variable with "user:password" for HTTP basic authentication.
        basic_env: Option<At<EnvName>>,
        /// A header with a credential.
        header: Option<At<HeaderReference>>,
        /// Trust the certificates in this PEM file instead of the system's.
        ca_file: Option<At<PathBuf>>,
    }
}

section! {
    /// `[connections.NAME] header`
    HeaderReference {
        /// The header's name.
        name: Name,
        /// The environment variable with its value.
        env: At<EnvName>,
    }
}

section! {
    /// `[audit]`
    Audit {
        /// Records kept for one session, the newest ones.
        per_session: usize [1..=100_000] = Limits::default().audit_per_session,
    }
}

section! {
    /// `[limits]`
    LimitKeys {
        /// The largest request body that is inspected, in bytes; a larger one is refused with 413.
        max_request_bytes: usize [1_024..=4_294_967_296] = Limits::default().max_request_bytes,
        /// Bytes that one answer may have held back at once.
        max_held_bytes: usize [1_024..=1_073_741_824] = Limits::default().max_held_bytes,
        /// The largest prompt or tool input that a policy is asked about, in bytes; a larger one is never cut: it is
        /// treated as a failure of the policy.
        max_gated_bytes: usize [1..=1_073_741_824] = Limits::default().max_gated_bytes,
        /// Sessions remembered at once; the one that was idle longest is forgotten first.
        max_sessions: usize [1..=10_000_000] = Limits::default().max_sessions,
        /// A session that is idle this long is forgotten, when the next requests of other sessions come or it comes back.
        session_idle: Duration [1_000..=31_536_000_000] = Limits::default().session_idle,
        /// The pause between keep-alives while an answer is held, in milliseconds.
        keepalive_ms: u64 [10..=60_000] = Value::millis(Limits::default().keepalive),
        /// The longest time that one answer is held in all; clients give up at 300 s.
        max_hold: Duration [100..=3_600_000] = Limits::default().max_hold,
    }
}

section! {
    /// `[log]`
    Log {
        /// The form of a line.
        format: LogFormat = "text",
        /// What is logged at least this severe; RUST_LOG and --log say it in more detail and win.
        level: LogLevel = "info",
    }
}

choice!(LogFormat {
    "text" => LogFormat::Text, "For people.";
    "json" => LogFormat::Json, "One JSON object a line.";
});

/// `log.level`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogLevel(pub(super) &'static str);

choice!(LogLevel {
    "error" => LogLevel("error"), "Only what failed.";
    "warn" => LogLevel("warn"), "And what an operator should look at.";
    "info" => LogLevel("info"), "And what happens.";
    "debug" => LogLevel("debug"), "And why.";
    "trace" => LogLevel("trace"), "Everything.";
});
