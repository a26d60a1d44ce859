//! Connections to the upstreams, kept for the next exchange.

use std::time::Duration;

use pingora::Result;
use pingora::connectors::ConnectorOptions;
use pingora::connectors::http::{v1, v2};
use pingora::protocols::http::client::HttpSession;
use pingora::upstreams::peer::{HttpPeer, Peer};

/// The connections of all routes, of HTTP/1.1 and of HTTP/2.
///
/// pingora has both in one connector, whose one future carries the state of a TLS handshake through every exchange: more
/// than a hundred kilobytes to move, for what a kept connection never does.
pub(in crate::host::pingora) struct Pool {
    h1: v1::Connector,
    h2: v2::Connector,
}

impl Pool {
    /// Keeps at most `size` idle connections.
    pub(in crate::host::pingora) fn new(size: usize) -> Self {
        let options = ConnectorOptions::new(size);
        Pool { h1: v1::Connector::new(Some(options.clone())), h2: v2::Connector::new(Some(options)) }
    }

    /// A connection for one exchange, and whether it was used before.
    pub(super) async fn session(&self, peer: &HttpPeer) -> Result<(HttpSession, bool)> {
        match self.kept(peer).await? {
            Some(session) => Ok((session, true)),
            None => Box::pin(self.connect(peer)).await,
        }
    }

    async fn kept(&self, peer: &HttpPeer) -> Result<Option<HttpSession>> {
        if may_be_http2(peer)
            && let Some(stream) = self.h2.reused_http_session(peer).await?
        {
            return Ok(Some(HttpSession::H2(stream)));
        }
        Ok(self.h1.reused_http_session(peer).await.map(HttpSession::H1))
    }

    async fn connect(&self, peer: &HttpPeer) -> Result<(HttpSession, bool)> {
        if may_be_http2(peer) {
            return Ok((self.h2.new_http_session(peer).await?, false));
        }
        let (session, reused) = self.h1.get_http_session(peer).await?;
        Ok((HttpSession::H1(session), reused))
    }

    /// Takes a session back; pingora closes what cannot be used again.
    pub(super) async fn release(&self, session: HttpSession, peer: &HttpPeer, idle: Duration) {
        match session {
            HttpSession::H1(session) => self.h1.release_http_session(session, peer, Some(idle)).await,
            HttpSession::H2(stream) => self.h2.release_http_session(stream, peer, Some(idle)),
            HttpSession::Custom(()) => {}
        }
    }

    /// The server wants no HTTP/2: the next connections to it speak HTTP/1.1.
    pub(super) fn prefer_http1(&self, peer: &HttpPeer) {
        self.h2.prefer_h1(peer);
    }
}

fn may_be_http2(peer: &HttpPeer) -> bool {
    peer.get_peer_options().is_some_and(|options| options.alpn.get_max_http_version() > 1)
}
