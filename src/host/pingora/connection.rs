//! One client's connection: its requests, one after another or (HTTP/2) at the same time.

use std::sync::Arc;

use async_trait::async_trait;
use http::Method;
use pingora::apps::{HttpPersistentSettings, HttpServerApp, ReusedHttpStream, ServerApp as _};
use pingora::protocols::http::ServerSession;
use pingora::protocols::{ALPN, Stream};
use pingora::server::ShutdownWatch;
use pingora::{ErrorType, Result};

use super::gateway::Gateway;

/// How long a connection may wait for its next request, in seconds.
const KEEPALIVE: u64 = 60;

/// Serves a connection to its end. When `stopping` becomes true, it ends with the requests that are under way.
pub(super) async fn serve(gateway: &Arc<Gateway>, stream: Stream, stopping: &ShutdownWatch) {
    if stream.selected_alpn_proto() == Some(ALPN::H2) {
        gateway.process_new(stream, stopping).await;
        return;
    }
    let mut session = ServerSession::new_http1(stream);
    session.set_keepalive(Some(KEEPALIVE));
    let mut stopped = stopping.clone();
    loop {
        let read = tokio::select! {
            biased;
            read = session.read_request() => read,
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        if !accept(&mut session, read).await {
            return;
        }
        if *stopped.borrow() {
            session.set_keepalive(None);
        }
        if !gateway.answer(&mut session).await {
            return;
        }
        let settings = HttpPersistentSettings::for_session(&session);
        let Ok(Some(stream)) = session.finish().await else { return };
        let (stream, settings) = ReusedHttpStream::from_reusable_stream(stream, settings).consume();
        session = ServerSession::new_http1(stream);
        if let Some(settings) = settings {
            settings.apply_to_session(&mut session);
        }
    }
}

/// Whether there is a request to answer. What is none is answered here.
async fn accept(session: &mut ServerSession, read: Result<bool>) -> bool {
    let status = match read {
        Ok(true) if session.req_header().method == Method::CONNECT => 405,
        Ok(there_is_one) => return there_is_one,
        Err(error) if *error.etype() == ErrorType::InvalidHTTPHeader => 400,
        Err(_) => return false,
    };
    // A client that has left misses nothing.
    let _ = session.respond_error(status).await;
    session.shutdown().await;
    false
}

#[async_trait]
impl HttpServerApp for Gateway {
    /// Answers one request of an HTTP/2 connection.
    async fn process_new_http(
        self: &Arc<Self>,
        mut session: ServerSession,
        _: &ShutdownWatch,
    ) -> Option<ReusedHttpStream> {
        let read = session.read_request().await;
        if accept(&mut session, read).await && self.answer(&mut session).await {
            // Of a stream that the client has reset nothing is left to finish.
            let _ = session.finish().await;
        }
        None
    }
}
