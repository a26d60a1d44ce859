//! Connections to one server: those that wait for their next exchange, and how new ones are made.

use pingora::Result;
use pingora::connectors::http::v2;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::protocols::http::client::HttpSession;
use pingora::protocols::http::v1::client::HttpSession as Http1;
use pingora::upstreams::peer::{HttpPeer, Peer};

use super::idle::{IDLE_TIME, MAX_IDLE};
use crate::host::pingora::corked::Corked;

/// Makes the connections of all routes. Those of HTTP/1.1 wait at their server (`Idle`), those of HTTP/2, which have many
/// streams, here.
///
/// pingora has both in one connector, whose one future carries the state of a TLS handshake through every exchange: more
/// than a hundred kilobytes to move, for what a kept connection never does.
pub(in crate::host::pingora) struct Connector {
    transport: TransportConnector,
    h2: v2::Connector,
}

impl Connector {
    pub(in crate::host::pingora) fn new() -> Self {
        let options = ConnectorOptions::new(MAX_IDLE);
        Connector { transport: TransportConnector::new(Some(options.clone())), h2: v2::Connector::new(Some(options)) }
    }

    /// A stream of an HTTP/2 connection that there is already.
    pub(super) async fn kept(&self, peer: &HttpPeer) -> Result<Option<HttpSession>> {
        Ok(self.h2.reused_http_session(peer).await?.map(HttpSession::H2))
    }

    /// A new connection.
    pub(super) async fn connect(&self, peer: &HttpPeer) -> Result<HttpSession> {
        if may_be_http2(peer) {
            return self.h2.new_http_session(peer).await;
        }
        let stream = self.transport.new_stream(peer).await?;
        Ok(HttpSession::H1(Http1::new_with_options(Box::new(Corked::new(stream)), peer)))
    }

    /// Takes a stream of HTTP/2 back; its connection goes on with the others.
    pub(super) fn release(&self, session: HttpSession, peer: &HttpPeer) {
        if let HttpSession::H2(stream) = session {
            self.h2.release_http_session(stream, peer, Some(IDLE_TIME));
        }
    }

    /// The server wants no HTTP/2: the next connections to it speak HTTP/1.1.
    pub(super) fn prefer_http1(&self, peer: &HttpPeer) {
        self.h2.prefer_h1(peer);
    }
}

/// Whether a connection to that server may turn out to speak HTTP/2.
pub(super) fn may_be_http2(peer: &HttpPeer) -> bool {
    peer.get_peer_options().is_some_and(|options| options.alpn.get_max_http_version() > 1)
}
