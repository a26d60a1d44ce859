//! From a listening socket to connections that pingora serves.

use std::io::ErrorKind;
use std::net;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use pingora::listeners::tls::Acceptor;
use pingora::protocols::l4::ext::TcpKeepalive;
use pingora::protocols::l4::stream::Stream as Plain;
use pingora::protocols::{GetSocketDigest as _, SocketDigest, Stream};
use pingora::{ErrorType, OrErr as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::connection;
use super::corked::Corked;
use super::gateway::Gateway;
use super::workers::Entrance;

/// A client's silent connection is asked for a sign of life in the background, so that a vanished client does not hold
/// an exchange for ever.
const CLIENT_KEEPALIVE: (Duration, Duration, usize) = (Duration::from_secs(60), Duration::from_secs(15), 4);
/// The longest time that a TLS handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(60);
/// How long nothing is accepted when the process has no more files: trying on would keep a core busy.
const PAUSE: Duration = Duration::from_secs(1);

/// What serves the connections of some sockets.
pub(super) struct Listener {
    pub(super) gateway: Arc<Gateway>,
    /// For TLS.
    pub(super) acceptor: Option<Acceptor>,
    /// The proxy is about to end.
    pub(super) stopping: watch::Receiver<bool>,
}

impl Listener {
    /// Hands a socket's connections to the threads until the proxy is about to end.
    pub(super) async fn accept(self: Arc<Self>, socket: TcpListener, entrance: Entrance) {
        let mut stopping = self.stopping.clone();
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                _ = stopping.wait_for(|stopping| *stopping) => break,
            };
            match accepted.and_then(|(stream, _)| stream.into_std()) {
                Ok(stream) => {
                    let listener = self.clone();
                    entrance.spawn(async move { listener.serve(stream).await }).await;
                }
                // The client has given up meanwhile.
                Err(error) if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset) => {}
                Err(error) => {
                    tracing::error!(%error, "no connection can be accepted; trying again in a second");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Serves a connection to its end.
    pub(super) async fn serve(&self, stream: net::TcpStream) {
        let stream = match tokio::time::timeout(HANDSHAKE_TIME, self.welcome(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return tracing::debug!(%error, "a client's connection was not set up"),
            Err(_) => return tracing::debug!("a client's TLS handshake took too long"),
        };
        connection::serve(&self.gateway, Box::new(Corked::uncorked(stream)), &self.stopping).await;
    }

    async fn welcome(&self, stream: net::TcpStream) -> pingora::Result<Stream> {
        let plain = plain(stream)?;
        Ok(match &self.acceptor {
            Some(acceptor) => Box::new(acceptor.tls_handshake(plain).await?),
            None => Box::new(plain),
        })
    }
}

fn plain(stream: net::TcpStream) -> pingora::Result<Plain> {
    let stream = TcpStream::from_std(stream).or_err(ErrorType::AcceptError, "the socket cannot be used")?;
    let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
    let mut stream = Plain::from(stream);
    stream.set_socket_digest(digest);
    let (idle, interval, count) = CLIENT_KEEPALIVE;
    let keepalive = TcpKeepalive {
        idle,
        interval,
        count,
        #[cfg(target_os = "linux")]
        user_timeout: Duration::ZERO,
    };
    stream.set_nodelay()?;
    stream.set_keepalive(&keepalive)?;
    Ok(stream)
}
