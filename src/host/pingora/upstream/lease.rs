//! A connection (HTTP/1.1) or stream (HTTP/2) taken for one exchange.

use std::net::SocketAddr;
use std::sync::Arc;

use pingora::protocols::http::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType};

use super::connector::Connector;
use super::idle::Idle;

/// Given back with [`Lease::finish`] after a whole exchange. Dropped before, the exchange is given up: the connection
/// is closed, the stream reset.
pub(in crate::host::pingora) struct Lease {
    session: Option<Box<HttpSession>>,
    home: Home,
}

/// Where a connection goes when its exchange is over.
pub(super) struct Home {
    pub(super) idle: Arc<Idle>,
    pub(super) address: SocketAddr,
    /// For a server that may speak HTTP/2.
    pub(super) h2: Option<(Arc<Connector>, Box<HttpPeer>)>,
}

impl Lease {
    pub(super) fn new(session: HttpSession, home: Home) -> Self {
        Lease { session: Some(Box::new(session)), home }
    }

    /// `None` only for a lease that was given back, which takes it by value.
    pub(in crate::host::pingora) fn session(&mut self) -> Option<&mut HttpSession> {
        self.session.as_deref_mut()
    }

    /// Notes why the request has to be sent again. When the server wants no HTTP/2 for it, the next connections to it speak
    /// HTTP/1.1.
    pub(in crate::host::pingora) fn failed(&self, error: &Error) {
        tracing::debug!(address = %self.home.address, "the upstream did not take the request; sending it again");
        if let (ErrorType::H2Downgrade, Some((connector, peer))) = (error.etype(), &self.home.h2) {
            connector.prefer_http1(peer);
        }
    }

    /// Gives back what may be used again; pingora closes it otherwise (`connection: close`, unread bytes).
    pub(in crate::host::pingora) async fn finish(mut self) {
        match self.session.take().map(|session| *session) {
            Some(HttpSession::H1(mut session)) => {
                session.respect_keepalive();
                if let Some(stream) = session.reuse().await {
                    self.home.idle.keep(self.home.address, stream);
                }
            }
            Some(session) => self.home.release(session),
            None => {}
        }
    }
}

impl Home {
    fn release(&self, session: HttpSession) {
        if let Some((connector, peer)) = &self.h2 {
            connector.release(session, peer);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // An HTTP/1.1 connection closes by being dropped. An HTTP/2 stream is reset by being dropped, but its connection
        // goes on with the other streams and must go back to its pool.
        if let Some(session) = self.session.take_if(|session| matches!(**session, HttpSession::H2(_)))
            && tokio::runtime::Handle::try_current().is_ok()
        {
            self.home.release(*session);
        }
    }
}
