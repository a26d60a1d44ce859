//! A connection (HTTP/1.1) or stream (HTTP/2) taken from the pool for one exchange.

use std::sync::Arc;

use futures_util::FutureExt;
use pingora::protocols::http::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;

use super::pool::Pool;
use super::target::POOL_IDLE;

/// Given back with [`Lease::finish`] after a whole exchange. Dropped before, the exchange is given up: the connection
/// is closed, the stream reset.
pub(in crate::host::pingora) struct Lease {
    session: Option<Box<HttpSession>>,
    pool: Arc<Pool>,
    peer: Box<HttpPeer>,
}

impl Lease {
    pub(super) fn new(session: HttpSession, pool: Arc<Pool>, peer: Box<HttpPeer>) -> Self {
        Lease { session: Some(Box::new(session)), pool, peer }
    }

    /// `None` only for a lease that was given back, which takes it by value.
    pub(in crate::host::pingora) fn session(&mut self) -> Option<&mut HttpSession> {
        self.session.as_deref_mut()
    }

    /// The server wants no HTTP/2 for this: the next connections to it speak HTTP/1.1.
    pub(super) fn prefer_http1(&self) {
        self.pool.prefer_http1(&self.peer);
    }

    /// Gives back what may be used again; pingora closes it otherwise (`connection: close`, unread bytes).
    pub(super) async fn finish(mut self) {
        if let Some(session) = self.session.take() {
            self.pool.release(*session, &self.peer, POOL_IDLE).await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // An HTTP/1.1 connection closes by being dropped. An HTTP/2 stream is reset by being dropped, but its connection
        // goes on with the other streams and must go back to its pool, which does not wait for anything.
        if let Some(session) = self.session.take_if(|session| matches!(**session, HttpSession::H2(_)))
            && tokio::runtime::Handle::try_current().is_ok()
        {
            let _ = self.pool.release(*session, &self.peer, POOL_IDLE).now_or_never();
        }
    }
}
