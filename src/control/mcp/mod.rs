//! An MCP server of hookgate's own, over Streamable HTTP, for agents that get callbacks by a tool of theirs.
//!
//! It has the tools `request_tmp_hook` and `await_tmp_hook`. Of sessions nothing is kept between two requests: a client
//! that comes again after hookgate was restarted notices nothing.

mod answer;
mod cancel;
mod origin;
mod session;
mod tools;
mod wait;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::tower::StreamableHttpService;
use tower::ServiceExt as _;

use self::answer::Delivery;
use self::cancel::{Message, SESSION_HEADER, Waits};
use self::tools::Tools;
use super::ControlState;
use super::problem::Problem;
use crate::id::random_id;

/// The largest request; the arguments of the tools are short.
const MAX_REQUEST: usize = 1 << 20;

/// The server.
#[derive(Clone)]
pub(super) struct Mcp {
    state: ControlState,
    service: StreamableHttpService<Tools, NeverSessionManager>,
    waits: Arc<Waits>,
}

impl Mcp {
    pub(super) fn new(state: ControlState) -> Self {
        let waits = Arc::new(Waits::default());
        let tools = Tools::new(state.clone(), waits.clone());
        // Host and origin are checked here, where the caller is known. Without sessions of rmcp's nothing is kept of clients
        // that never come again, and an answer that its client left is dropped instead of being stored.
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_max_request_body_bytes(MAX_REQUEST)
            .disable_allowed_hosts();
        let service = StreamableHttpService::new(move || Ok(tools.clone()), Arc::default(), config);
        Mcp { state, service, waits }
    }
}

/// Answers a request to `/hookgate/mcp`.
pub(super) async fn serve(State(mcp): State<Mcp>, request: Request) -> Result<Response, Problem> {
    let (mut head, body) = request.into_parts();
    if let Some(objection) = origin::objection(&head, mcp.state.tmp_hooks.origin()) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "foreign-page", "The request is refused", objection));
    }
    let body = axum::body::to_bytes(body, MAX_REQUEST).await.map_err(|_| {
        let detail = format!("A message to the MCP server has at most {MAX_REQUEST} bytes.");
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The message is too large", detail)
    })?;
    let message = if head.method == Method::POST { Message::read(&body) } else { Message::Other };
    if let Message::Cancelled(id) = &message {
        for (session, unread) in mcp.waits.cancel(&head.headers, id, Instant::now()) {
            mcp.state.tmp_hooks.put_back(&session, unread).await;
        }
    }
    let delivery = Delivery::new(mcp.state.tmp_hooks.clone());
    head.extensions.insert(delivery.receipt());
    let Ok(response) = mcp.service.oneshot(Request::from_parts(head, Body::from(body))).await;
    let (mut head, body) = response.into_parts();
    head.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if message == Message::Initialize && head.status.is_success() {
        // It stands for nothing here. But with it a client's cancelling can be told from that of others.
        if let Ok(id) = HeaderValue::try_from(random_id()) {
            head.headers.insert(SESSION_HEADER, id);
        }
    }
    Ok(Response::from_parts(head, Body::new(delivery.of(body))))
}
