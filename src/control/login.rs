//! The login page, for the built-in gate.

use std::net::SocketAddr;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use http::StatusCode;

use super::problem::Problem;
use crate::auth::{ClientAddress, Gate};

/// The largest form that is read, in bytes.
const MAX_FORM_BYTES: usize = 16 << 10;

/// `/hookgate/login` and `/hookgate/logout` of a gate, to be merged with [`router`](super::router) behind the same gate.
///
/// The client's address, for which failed logins are counted, is the request's
/// [`ClientAddress`] extension, else axum's `ConnectInfo`; without either all clients count as one.
///
/// ```
/// use std::sync::Arc;
///
/// use hookgate::Hookgate;
/// use hookgate::auth::{Gate, GateLayer, GateOptions, Token, TokenSource};
/// use hookgate::callback::{Settings, TmpHooks, TokenKey};
/// use hookgate::control::{ControlState, Metrics, Readiness, login_router, router};
/// use hookgate::store::MemoryStore;
/// use tower::ServiceExt as _;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let mut options = GateOptions::default();
/// options.token = Some(TokenSource::Known(Token::new("0123456789abcdef").unwrap()));
/// let gate = Gate::new(options).unwrap();
/// let state = ControlState {
///     core: Hookgate::builder().build(),
///     tmp_hooks: TmpHooks::new(Settings::default(), Arc::new(MemoryStore::new()), TokenKey::random(), None),
///     readiness: Readiness::new(),
///     metrics: Metrics::detached(),
/// };
/// let service = router(state).merge(login_router(gate.clone())).layer(GateLayer::new(gate));
///
/// let get = |header: &str| {
///     let request = http::Request::get("/hookgate/v1/audit").header("authorization", header);
///     service.clone().oneshot(request.body(axum::body::Body::empty()).unwrap())
/// };
/// assert_eq!(get("Bearer 0123456789abcdef").await.unwrap().status(), 200);
/// assert_eq!(get("Bearer wrong").await.unwrap().status(), 401);
/// # });
/// ```
pub fn login_router(gate: Gate) -> Router {
    Router::new().route("/hookgate/login", any(login)).route("/hookgate/logout", any(logout)).with_state(gate)
}

async fn login(State(gate): State<Gate>, request: Request) -> Response {
    match read(request).await {
        Ok(request) => gate.login(request).await.into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn logout(State(gate): State<Gate>, request: Request) -> Response {
    match read(request).await {
        Ok(request) => gate.logout(request).await.into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn read(request: Request) -> Result<http::Request<Bytes>, Problem> {
    let (mut head, body) = request.into_parts();
    let connection = head.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| ClientAddress(info.0.ip()));
    if let (None, Some(address)) = (head.extensions.get::<ClientAddress>(), connection) {
        head.extensions.insert(address);
    }
    let body = to_bytes(body, MAX_FORM_BYTES).await.map_err(|_| {
        let detail = format!("The form has to have at most {MAX_FORM_BYTES} bytes, and to be sent to its end.");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "form-too-large", "The form cannot be read", detail)
    })?;
    Ok(http::Request::from_parts(head, body))
}
