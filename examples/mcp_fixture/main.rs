//! An MCP server for tests: it has all that the official conformance suite asks a server for, by the names that the suite
//! uses. `make test-mcp` and the tests of the SDKs use it, directly and behind hookgate.
//!
//! It prints its URL and serves until it is ended. It needs no network.
//!
//! - `/mcp`: sessions and event streams for revisions with a handshake, and 2026-07-28;
//! - `/json`: no sessions, and JSON where an answer needs no stream;
//! - `/calls`: the tool calls that arrived so far, for those who want to know what did not.
// Logging, sampling and roots are deprecated in the newest revision, and are a part of the older ones.
#![allow(deprecated)]

mod answers;
mod ask;
mod calls;
mod cut;
mod jobs;
mod rounds;
mod server;
mod talk;

use std::time::Duration;

use axum::routing::get;
use axum::{Json, Router};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::tower::{StreamableHttpServerConfig, StreamableHttpService};

use self::server::Fixture;

/// After what time a client comes again for the rest of a stream.
const RETRY: Duration = Duration::from_millis(100);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let fixture = Fixture::new()?;
    let (calls, again) = (fixture.calls.clone(), fixture.again.clone());
    let listener = tokio::net::TcpListener::bind(std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:0")).await?;
    println!("http://{}/mcp", listener.local_addr()?);

    let sessions = {
        let fixture = fixture.clone();
        let config = StreamableHttpServerConfig::default().with_sse_retry(Some(RETRY));
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.sse_retry = Some(RETRY);
        StreamableHttpService::new(move || Ok(fixture.session()), sessions.into(), config)
    };
    let json = {
        let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
        StreamableHttpService::new(move || Ok(fixture.session()), NeverSessionManager::default().into(), config)
    };
    let app = Router::new()
        .route_service("/mcp", sessions)
        .layer(axum::middleware::from_fn_with_state(again, cut::streams))
        .route_service("/json", json)
        .route("/calls", get(async move || Json(calls.list())));
    axum::serve(axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true))), app).await?;
    Ok(())
}
