//! hookgate: lifecycle hooks for AI agents, on the wire.
//!
//! hookgate stands between an agent and the model API that it calls. It finds the moments of the agent's life in that
//! traffic (a prompt is submitted, a tool is about to be used, a tool was used, a turn is about to end), asks the
//! operator's policy services about them, and makes their decisions take effect: a denied call never reaches the agent, and
//! the model learns why. The agent is not changed. Today the Anthropic Messages API is inspected, and MCP and A2A on routes to tools and agents.
//!
//! The crate is a library with [`HookLayer`] for Tower stacks, and the `hookgate` command, a reverse proxy. Both are hosts
//! of one core, [`Hookgate`].
//!
//! # The layer
//!
//! [`HookLayer`] goes in front of any service that sends requests to a model API: a proxy's own forwarding service, or the
//! HTTP client of an agent. The model asks for a tool here, the policy refuses, and the caller sees only what the model
//! says once it was told:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//!
//! use bytes::Bytes;
//! use futures_util::future::{BoxFuture, ready};
//! use hookgate::dispatch::{AnswerBody, HandlerAnswer, HandlerTransport, TransportError};
//! use hookgate::hooks::HookSet;
//! use hookgate::{Body, HookLayer, Hookgate, Route};
//! use http::header::CONTENT_TYPE;
//! use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
//! use http_body_util::BodyExt;
//! use tower::{Layer, ServiceExt, service_fn};
//!
//! /// A policy service that refuses everything. Real ones are reached by `dispatch::HyperTransport`.
//! struct Refuse;
//!
//! impl HandlerTransport for Refuse {
//!     fn send(&self, _: Request<Bytes>, _: usize) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
//!         let body = r#"{"schemaVersion": 1, "outcome": "deny", "reason": "nothing is removed here"}"#;
//!         let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
//!         let body = AnswerBody::Complete(Bytes::from_static(body.as_bytes()));
//!         Box::pin(ready(Ok(HandlerAnswer { status: StatusCode::OK, headers, body })))
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), hookgate::BoxError> {
//! let document = br#"{"version": 1, "hooks": {"PreToolUse": [
//!     {"id": "removals", "type": "http", "url": "https://policy.example.com/", "matcher": ["remove"]}]}}"#;
//! let hooks = HookSet::builder().allowed_hosts(["policy.example.com"]).document("hooks.json", document).build()?;
//! let gate = Hookgate::builder().hooks(hooks).transport(Arc::new(Refuse)).build();
//!
//! // A model that asks for a tool and then says that it may not use it.
//! let seen = Arc::new(Mutex::new(Vec::new()));
//! let requests = seen.clone();
//! let model = service_fn(move |request: Request<Body>| {
//!     let requests = requests.clone();
//!     async move {
//!         let body = request.into_body().collect().await?.to_bytes();
//!         let mut requests = requests.lock().unwrap();
//!         requests.push(String::from_utf8_lossy(&body).into_owned());
//!         let (content, stop) = match requests.len() {
//!             1 => (r#"{"type":"tool_use","id":"toolu_1","name":"remove","input":{"path":"/"}}"#, "tool_use"),
//!             _ => (r#"{"type":"text","text":"I may not remove it."}"#, "end_turn"),
//!         };
//!         let answer = format!(
//!             r#"{{"id":"msg","type":"message","role":"assistant","model":"m","content":[{content}],
//!                 "stop_reason":"{stop}","stop_sequence":null,"usage":{{"input_tokens":9,"output_tokens":9}}}}"#
//!         );
//!         Response::builder().header("content-type", "application/json").body(Body::from(answer))
//!             .map_err(hookgate::BoxError::from)
//!     }
//! });
//!
//! let service = HookLayer::new(gate.clone(), Route::model("anthropic")).layer(model);
//! let request = Request::post("/v1/messages").body(Body::from(
//!     r#"{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"Remove it."}],
//!         "tools":[{"name":"remove","input_schema":{"type":"object"}}]}"#,
//! ))?;
//! let answer = service.oneshot(request).await?.into_body().collect().await?.to_bytes();
//! let answer = String::from_utf8_lossy(&answer);
//!
//! assert!(answer.contains("I may not remove it.") && !answer.contains("tool_use"), "{answer}");
//! assert!(seen.lock().unwrap()[1].contains("nothing is removed here"));
//! # Ok(()) }
//! ```
//!
//! `examples/server_layer.rs`, `examples/client_layer.rs` and `examples/own_gate.rs` are whole programs.
//!
//! # The types to know
//!
//! | | |
//! |---|---|
//! | [`Hookgate`] | the core: hooks, what is remembered of sessions, the audit. Clones are one core; one core can serve many routes |
//! | [`hooks::HookSet`] | the operator's documents, checked and compiled; [`Hookgate::set_hooks`] replaces it while requests run |
//! | [`dispatch::HandlerTransport`] | how policy services are reached; `dispatch::HyperTransport` is the built-in way |
//! | [`Route`] | what is spoken, the name in records, what a denial does |
//! | [`Subagent`] | which tools delegate. A library core has none unless it is told; the command knows those of Claude Code |
//! | [`limits::Limits`] | every bound, with its default |
//! | [`SessionRecord`], [`StartedTask`] | what is known of a session, and a background task in it: [`Hookgate::sessions`], [`Hookgate::delete_session`], [`Hookgate::start_task`] |
//! | [`callback::TmpHooks`] | one-time callbacks: issues URLs that a worker calls once, and holds what they brought; kept in a [`store::CallbackStore`] |
//! | [`audit::AuditLog`] | a record for each run of a handler, in memory |
//! | [`auth::AuthGate`], [`auth::GateLayer`], [`auth::CallbackBypass`] | who may use a service; callbacks that pass without login |
//! | [`Tenant`] | whose request it is, as an extension: tenants share no session |
//! | [`Upstream`], [`Plan`], [`Inspection`], [`GuardedBody`] | what a host of another kind needs; `HookLayer` is a small one |
//!
//! # What holds
//!
//! 1. Nothing that a policy refused takes effect. What cannot be decided (a broken call, an answer that cannot be read, a
//!    handler that fails) is subject to the handler's failure mode, which refuses by default.
//! 2. Bytes that no hook changed leave as they came. An edit replaces its own part and nothing else.
//! 3. What was refused, replaced or added once is applied to each later request of the session, since clients send the
//!    whole conversation again.
//! 4. Text streams on. Held is only what must be decided, within [`limits::Limits::max_hold`].
//! 5. Nothing in the traffic can define, change or switch off a hook.
//!
//! [`HookLayer`] does not authenticate clients: a service puts its own gate in front and names the [`Tenant`]. Nothing is kept over
//! a restart.
//!
//! # Features
//!
//! A feature adds dependencies and the items that need them; it never changes what the others do.
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `tower` | yes | [`HookLayer`] |
//! | `client` | yes | `dispatch::HyperTransport`: hyper with rustls |
//! | `control` | | `control`: sessions, tasks, audit records, callbacks, health and metrics as an axum router |
//! | `mcp` | | the MCP server of that router |
//! | `auth` | | `auth::Gate`: token, users, login page; `auth::RouteKeys`: named keys |
//! | `config` | | `config`: the TOML file |
//! | `pingora` | | `host::pingora`: the reverse proxy |
//! | `cli` | | the `hookgate` command |
//! | `test-util` | | `testing`: scripted models, policies and agents on loopback |
//! | `full` | | all of them |
#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub, unnameable_types)]

pub mod audit;
pub mod auth;
mod body;
pub mod callback;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "config")]
pub mod config;
#[cfg(feature = "control")]
pub mod control;
mod counters;
pub mod dispatch;
mod drive;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod hooks;
pub mod host;
pub mod id;
mod intercept;
mod ledger;
pub mod limits;
mod linger;
mod problem;
pub mod store;
#[cfg(feature = "test-util")]
pub mod testing;
pub mod time;
mod upstream;
pub mod wire;

pub use body::{Body, BoxError};
pub use drive::{
    DuplicateTool, GuardedBody, Hookgate, HookgateBuilder, HooksMode, HttpTool, HttpTools, Inspection, OnDeny, Plan,
    Route, RouteKind, StartedTask, Subagent, TaskError,
};
#[cfg(feature = "tower")]
pub use host::tower::{HookFuture, HookLayer, HookService};
pub use id::Tenant;
pub use ledger::{SessionQuery, SessionRecord, TaskStatus};
pub use upstream::{Upstream, UpstreamError, UpstreamErrorKind};

/// The README's example is compiled and run.
#[cfg(all(doctest, feature = "tower", feature = "client"))]
#[doc = include_str!("../README.md")]
struct Readme;
