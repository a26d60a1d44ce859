//! The control surface: sessions, audit records, one-time callbacks, health and metrics, as one Tower service.
//!
//! | path | answer |
//! |---|---|
//! | `GET /healthz` | 200 as long as the process runs |
//! | `GET /readyz` | 200 while new requests are welcome, else 503 |
//! | `GET /metrics` | metrics in Prometheus' text form |
//! | `GET /hookgate/v1/audit` | the audit records of all sessions |
//! | `GET /hookgate/v1/sessions/{id}/hooks` | the audit records of a session; also `/api/sessions/{id}/hooks` |
//! | `GET /hookgate/v1/sessions` | the sessions, the newest first |
//! | `GET /hookgate/v1/sessions/{id}` | one of them |
//! | `POST /hookgate/v1/sessions/{id}/archive`, `/unarchive` | puts one away, or takes it out again |
//! | `DELETE /hookgate/v1/sessions/{id}` | deletes one; see [`Hookgate::delete_session`] |
//! | `POST /hookgate/v1/sessions/{id}/tasks` | begins a background task |
//! | `POST /hookgate/v1/sessions/{id}/tasks/{task}/stop` | ends one |
//! | `POST /hookgate/v1/sessions/{id}/tmp-hooks` | issues a one-time callback |
//! | `GET /hookgate/v1/sessions/{id}/tmp-hooks` | lists those of a session, without their tokens |
//! | `DELETE /hookgate/v1/sessions/{id}/tmp-hooks/{hash}` | takes one back |
//! | `GET /hookgate/v1/sessions/{id}/inbox` | the messages that callbacks brought, as a list or as server-sent events |
//! | `POST /hookgate/mcp` | an MCP server with the tools `request_tmp_hook` and `await_tmp_hook` (feature `mcp`) |
//! | `GET`, `POST /hookgate/login`, `POST /hookgate/logout` | the login of the built-in gate; see `login_router` |
//!
//! Every error is RFC 9457 problem+json with a sentence that says what to do. Nothing here asks who the client is: a
//! host puts a gate in front ([`auth`](crate::auth)), or serves it where only those who may read the records can reach it.
//!
//! The MCP server's library (`rmcp`) logs whole messages, URLs of callbacks and headers among them, at the level of debug: a
//! service that logs so much keeps the target `rmcp` at warnings, as the command does.

mod audit;
mod health;
mod inbox;
#[cfg(feature = "auth")]
mod login;
#[cfg(feature = "mcp")]
mod mcp;
mod problem;
mod query;
mod session;
mod sessions;
mod tasks;
mod tmp_hooks;

use axum::Router;
use axum::routing::{delete, get, post};
use http::{Method, StatusCode, Uri, header};

use self::problem::Problem;
use crate::Hookgate;
use crate::callback::TmpHooks;

pub use health::{Metrics, MetricsError, Readiness};
#[cfg(feature = "auth")]
pub use login::login_router;

/// What the control surface shows.
#[derive(Clone)]
pub struct ControlState {
    /// The sessions, their audit records, and the hooks that are told of what is done here.
    pub core: Hookgate,
    /// The callbacks and what they brought. The MCP server knows a call's session, and whether a policy lets a message
    /// pass, when the core has the same ones ([`HookgateBuilder::callbacks`](crate::HookgateBuilder::callbacks)).
    pub tmp_hooks: TmpHooks,
    /// Whether new requests are welcome; the host sets it.
    pub readiness: Readiness,
    /// The numbers.
    pub metrics: Metrics,
}

/// The control surface as a service. It answers every path: with 404 those that it does not have.
///
/// ```
/// use std::sync::Arc;
/// use hookgate::Hookgate;
/// use hookgate::callback::{Settings, TmpHooks, TokenKey};
/// use hookgate::store::MemoryStore;
/// use hookgate::control::{ControlState, Metrics, Readiness, router};
/// use tower::ServiceExt as _;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let state = ControlState {
///     core: Hookgate::builder().build(),
///     tmp_hooks: TmpHooks::new(Settings::default(), Arc::new(MemoryStore::new()), TokenKey::random(), None),
///     readiness: Readiness::new(),
///     metrics: Metrics::detached(),
/// };
/// let request = http::Request::get("/healthz").body(axum::body::Body::empty()).unwrap();
/// let answer = router(state).oneshot(request).await.unwrap();
/// assert_eq!(answer.status(), 200);
/// # });
/// ```
pub fn router(state: ControlState) -> Router {
    // Where the core was not given the callbacks, their sessions are to be seen too.
    state.core.watch(&state.tmp_hooks);
    let router = Router::new();
    #[cfg(feature = "mcp")]
    let router = {
        let server = mcp::Mcp::new(state.clone());
        router.route("/hookgate/mcp", axum::routing::any(mcp::serve).with_state(server))
    };
    router
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(health::metrics))
        .route("/hookgate/v1/audit", get(audit::of_all))
        .route("/hookgate/v1/sessions", get(sessions::list))
        .route("/hookgate/v1/sessions/{id}", get(sessions::show).delete(sessions::delete))
        .route("/hookgate/v1/sessions/{id}/archive", post(sessions::archive))
        .route("/hookgate/v1/sessions/{id}/unarchive", post(sessions::unarchive))
        .route("/hookgate/v1/sessions/{id}/tasks", post(tasks::start))
        .route("/hookgate/v1/sessions/{id}/tasks/{task}/stop", post(tasks::stop))
        .route("/hookgate/v1/sessions/{id}/hooks", get(audit::of_session))
        .route("/api/sessions/{id}/hooks", get(audit::of_session))
        .route("/hookgate/v1/sessions/{id}/tmp-hooks", get(tmp_hooks::list).post(tmp_hooks::issue))
        .route("/hookgate/v1/sessions/{id}/tmp-hooks/{hash}", delete(tmp_hooks::revoke))
        .route("/hookgate/v1/sessions/{id}/inbox", get(inbox::read))
        .fallback(not_found)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
}

/// Whether a path belongs to the control surface, for hosts that serve it beside routes.
///
/// ```
/// use hookgate::control::owns;
/// assert!(owns("/hookgate/v1/anything") && owns("/metrics") && owns("/api/sessions/s1/hooks"));
/// assert!(!owns("/hookgates") && !owns("/metrics/x") && !owns("/api/sessions/s1"));
/// ```
pub fn owns(path: &str) -> bool {
    let session_hooks = || path.strip_prefix("/api/sessions/")?.strip_suffix("/hooks");
    matches!(path, "/healthz" | "/readyz" | "/metrics" | "/hookgate")
        || path.starts_with("/hookgate/")
        || session_hooks().is_some_and(|id| !id.is_empty() && !id.contains('/'))
}

async fn not_found(uri: Uri) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not-found",
        "There is nothing here",
        format!(
            "The control surface has no path {}. It has /healthz, /readyz, /metrics, /hookgate/v1/audit, \
             /hookgate/v1/sessions and, below /hookgate/v1/sessions/{{id}}, /archive, /unarchive, /tasks, /hooks, /tmp-hooks \
             and /inbox.",
            uri.path()
        ),
    )
}

/// The router adds the `allow` header, which says what is allowed.
async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        "The method is not allowed",
        format!("{} cannot be used with {}; the {} header lists what can.", uri.path(), method, header::ALLOW),
    )
}
