//! One server of a route: where it is, and how it is connected to.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pingora::protocols::http::client::HttpSession;
use pingora::protocols::http::v1::client::HttpSession as Http1;
use pingora::protocols::l4::ext::TcpKeepalive;
use pingora::protocols::l4::socket;
use pingora::upstreams::peer::{ALPN, HttpPeer, PeerOptions};
use tokio::runtime::Handle;

use super::connector::{Connector, may_be_http2};
use super::idle::{IDLE_TIME, Idle};
use super::lease::{Home, Lease};
use super::resolve::Addresses;
use super::trust::Trust;
use crate::config::{RouteConfig, Scheme, UpstreamTarget};

/// Streams of one HTTP/2 connection, and the most that one of them may have unread. Their product is the connection's
/// window, so that a client who does not read never holds up another one's stream.
const H2_STREAMS: usize = 32;
const H2_STREAM_WINDOW: u32 = 1 << 20;
/// A silent HTTP/2 connection is asked for a sign of life this often.
const H2_PING: Duration = Duration::from_secs(30);
/// The same for TCP, in the background.
const TCP_KEEPALIVE: (Duration, Duration, usize) = (Duration::from_secs(30), Duration::from_secs(10), 3);

/// One server, with what is known about it.
pub(in crate::host::pingora) struct Target {
    config: UpstreamTarget,
    addresses: Addresses,
    /// Where in `addresses` the next connection goes first: moves on when one could not be made.
    preferred: AtomicUsize,
    healthy: AtomicBool,
    connect_timeout: Duration,
    template: HttpPeer,
    idle: Arc<Idle>,
}

impl Target {
    /// `group` keeps the connections of routes apart: they may differ in trust and credentials.
    pub(super) fn new(config: UpstreamTarget, route: &RouteConfig, trust: &Trust, group: u64) -> Self {
        let tls = config.scheme == Scheme::Https;
        // An address is verified by the certificate's IP names; pingora skips verification when there is no name.
        let name = if tls { config.sni.clone().unwrap_or_else(|| config.host.clone()) } else { String::new() };
        let mut template = HttpPeer::new(SocketAddr::from(([0, 0, 0, 0], 0)), tls, name);
        template.group_key = group;
        template.client_cert_key = trust.client.clone();
        template.options = options(route, trust, tls);
        Target {
            addresses: Addresses::new(&config.host, config.port),
            config,
            preferred: AtomicUsize::new(0),
            healthy: AtomicBool::new(true),
            connect_timeout: route.connect_timeout,
            template,
            idle: Arc::default(),
        }
    }

    /// The value of `host`, and the name in logs and errors.
    pub(in crate::host::pingora) fn authority(&self) -> &str {
        &self.config.authority
    }

    /// The path and query on this server.
    pub(in crate::host::pingora) fn path(&self, path_and_query: &str) -> String {
        match (self.config.path_prefix.as_str(), path_and_query) {
            ("", "") => "/".to_owned(),
            ("", query) if query.starts_with('?') => format!("/{query}"),
            (prefix, rest) => format!("{prefix}{rest}"),
        }
    }

    pub(super) fn healthy(&self) -> bool {
        self.healthy.load(Ordering::Relaxed)
    }

    /// Notes whether the server can be connected to; `true` when that is news.
    pub(super) fn set_healthy(&self, healthy: bool) -> bool {
        self.healthy.swap(healthy, Ordering::Relaxed) != healthy
    }

    /// The server's addresses, the one to take first at the start.
    ///
    /// # Errors
    /// The name cannot be resolved within the time to connect, and never was.
    pub(super) async fn addresses(&self) -> std::io::Result<Rotated> {
        let known = match self.addresses.known() {
            Some(known) => known,
            None => tokio::time::timeout(self.connect_timeout, self.addresses.look_up()).await??,
        };
        Ok(Rotated { known, first: self.preferred.load(Ordering::Relaxed) })
    }

    /// Takes another address first from now on.
    pub(super) fn unreachable(&self) {
        self.preferred.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection for one exchange, and whether it was used before. `http1`: it must speak HTTP/1.1.
    ///
    /// # Errors
    /// There is none, and none could be made.
    pub(super) async fn lease(
        &self,
        connector: &Arc<Connector>,
        address: SocketAddr,
        http1: bool,
    ) -> pingora::Result<(Lease, bool)> {
        let h2 = match may_be_http2(&self.template) && !http1 {
            true => Some((connector.clone(), self.peer(address))),
            false => None,
        };
        let home = Home { idle: self.idle.clone(), address, h2 };
        if let Some((connector, peer)) = &home.h2
            && let Some(session) = connector.kept(peer).await?
        {
            return Ok((Lease::new(session, home), true));
        }
        if let Some(stream) = self.idle.take(address) {
            let session = HttpSession::H1(Http1::new_with_options(stream, &self.template));
            return Ok((Lease::new(session, home), true));
        }
        let session = Box::pin(async {
            let mut peer = self.peer(address);
            if http1 {
                peer.options.alpn = ALPN::H1;
            }
            connector.connect(&peer).await
        });
        Ok((Lease::new(session.await?, home), false))
    }

    /// Closes connections that nobody will use.
    pub(super) fn sweep(&self) {
        self.idle.sweep();
    }

    /// The route's group on this thread: pingora pools connections by it, and from another thread one would have to be woken.
    fn group_here(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.template.group_key, Handle::current().id()).hash(&mut hasher);
        hasher.finish()
    }

    /// What pingora connects to.
    fn peer(&self, address: SocketAddr) -> Box<HttpPeer> {
        let mut peer = Box::new(self.template.clone());
        peer._address = socket::SocketAddr::Inet(address);
        peer.group_key = self.group_here();
        peer
    }
}

/// The addresses of a server from the preferred one on.
pub(super) struct Rotated {
    known: Arc<[SocketAddr]>,
    first: usize,
}

impl Rotated {
    pub(super) fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        let (before, after) = self.known.split_at(self.first.checked_rem(self.known.len()).unwrap_or(0));
        after.iter().chain(before).copied()
    }
}

fn options(route: &RouteConfig, trust: &Trust, tls: bool) -> PeerOptions {
    let mut options = PeerOptions::new();
    options.alpn = if tls { ALPN::H2H1 } else { ALPN::H1 };
    options.connection_timeout = Some(route.connect_timeout);
    options.total_connection_timeout = Some(route.connect_timeout);
    options.idle_timeout = Some(IDLE_TIME);
    // For what is read without a limit of its own.
    options.read_timeout = Some(route.first_byte_timeout.max(route.idle_timeout));
    options.write_timeout = Some(route.idle_timeout);
    options.ca = trust.authorities.clone();
    options.max_h2_streams = H2_STREAMS;
    options.h2_stream_window_size = Some(H2_STREAM_WINDOW);
    options.h2_connection_window_size = Some(H2_STREAM_WINDOW * H2_STREAMS as u32);
    options.h2_ping_interval = Some(H2_PING);
    let (idle, interval, count) = TCP_KEEPALIVE;
    options.tcp_keepalive = Some(TcpKeepalive {
        idle,
        interval,
        count,
        #[cfg(target_os = "linux")]
        user_timeout: Duration::ZERO,
    });
    options
}
