//! Listeners, threads, start and stop.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd as _;
use std::sync::Arc;
use std::time::Duration;

use pingora::listeners::{L4BufferSettings, ListenerConfig, TcpSocketOptions};
use pingora::protocols::TcpKeepalive;
use pingora::proxy::{HttpProxy, http_proxy_service_with_name};
use pingora::server::configuration::ServerConf;
use pingora::server::{Fds, ListenFds};
use pingora::services::Service as _;
use pingora::services::listening::Service;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};

use super::ServeError;
use super::gateway::Gateway;
use super::setup::{Setup, Site};
use super::tls::Certificate;
use super::upstream::idle::MAX_IDLE;
use crate::callback::TmpHooks;
use crate::config::Config;
use crate::control::Metrics;

/// A client's silent connection is asked for a sign of life in the background, so that a vanished client does not hold
/// an exchange for ever.
const CLIENT_KEEPALIVE: (Duration, Duration, usize) = (Duration::from_secs(60), Duration::from_secs(15), 4);
/// What is read ahead of a client's TLS connection: one record, since rustls asks for small pieces. Plain connections need
/// nothing, for heads and bodies are read into buffers of their own; pingora's 64 KiB are most of what an idle stream takes.
const TLS_READ_AHEAD: usize = 16 << 10;
/// What is still running after the grace is waited for this long while it is torn down.
const TEAR_DOWN: Duration = Duration::from_secs(1);

/// How the proxy is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    No,
    /// Accept nothing more, let what is under way finish within the grace.
    Graceful,
    /// At once.
    Now,
}

/// A proxy that has its sockets but does not run yet.
pub(super) struct Server {
    runtime: Runtime,
    listeners: Vec<Bound>,
    control_listeners: Vec<Bound>,
    certificate: Option<Arc<Certificate>>,
    setup: Setup,
    grace: Duration,
}

struct Bound {
    address: SocketAddr,
    socket: TcpListener,
}

impl Server {
    /// Checks everything that can be checked and binds the sockets: from now on clients can connect.
    pub(super) fn new(config: &Config, metrics: Metrics) -> Result<Self, ServeError> {
        let certificate = config.tls.as_ref().map(Certificate::load).transpose()?;
        let setup = Setup::new(config, metrics.clone())?;
        let listeners = bind(&config.listen)?;
        let control_listeners = bind(&config.control_listen)?;
        let runtime =
            Builder::new_multi_thread().thread_name("hookgate").enable_all().build().map_err(ServeError::runtime)?;
        runtime.spawn(async move { metrics.keep_up().await });
        runtime.spawn(setup.tmp_hooks().sweeping());
        Ok(Server { runtime, listeners, control_listeners, certificate, setup, grace: config.shutdown_grace })
    }

    /// The addresses of the listeners, with their real ports.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().map(|bound| bound.address).collect()
    }

    /// The addresses of the control surface's own listeners.
    pub(super) fn control_addresses(&self) -> Vec<SocketAddr> {
        self.control_listeners.iter().map(|bound| bound.address).collect()
    }

    /// Reads again what can change while the proxy runs.
    pub(super) fn reload(&self) -> impl Fn() + Send + Sync + 'static + use<> {
        let certificate = self.certificate.clone();
        let hooks = self.setup.reload();
        move || {
            hooks();
            if let Some(Err(error)) = certificate.as_ref().map(|certificate| certificate.reload()) {
                tracing::error!(%error, "the certificate was not reloaded; the old one stays");
            }
        }
    }

    /// The one-time callbacks.
    pub(super) fn tmp_hooks(&self) -> &TmpHooks {
        self.setup.tmp_hooks()
    }

    /// The runtime, for what belongs to the process as a whole.
    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Serves until it is told to stop. Nothing of it is left when this returns.
    pub(super) fn run(self, mut stop: watch::Receiver<Stop>) -> Result<(), ServeError> {
        let (shutdown, watch) = watch::channel(false);
        // The sockets have queues: whoever connects now is served.
        self.setup.readiness().set(true);
        // Every connection holds the gateway, and the gateway holds this: when all are gone, it closes.
        let (alive, mut gone) = mpsc::channel::<()>(1);
        let traffic = if self.control_listeners.is_empty() { Site::Everything } else { Site::Traffic };
        let mut services = vec![(service(&self.setup, traffic, &alive), self.listeners, self.certificate.as_ref())];
        if !self.control_listeners.is_empty() {
            services.push((service(&self.setup, Site::Control, &alive), self.control_listeners, None));
        }
        drop(alive);
        for (mut service, listeners, certificate) in services {
            let sockets = listen(&mut service, listeners, certificate)?;
            let watch = watch.clone();
            self.runtime.spawn(async move { service.start_service(Some(sockets), watch, 1).await });
        }
        for upstream in self.setup.upstreams() {
            let watch = watch.clone();
            self.runtime.spawn(async move { upstream.look_after(watch).await });
        }
        self.runtime.block_on(async {
            let _ = stop.wait_for(|stop| *stop != Stop::No).await;
            self.setup.readiness().set(false);
            self.setup.tmp_hooks().close();
            let _ = shutdown.send(true);
            tokio::select! {
                _ = gone.recv() => {}
                _ = tokio::time::sleep(self.grace) => tracing::warn!("the grace is over; cutting off what is still under way"),
                _ = stop.wait_for(|stop| *stop == Stop::Now) => {}
            }
        });
        self.runtime.shutdown_timeout(TEAR_DOWN);
        Ok(())
    }
}

fn bind(addresses: &[SocketAddr]) -> Result<Vec<Bound>, ServeError> {
    addresses
        .iter()
        .map(|wanted| {
            let bound = || {
                let socket = TcpListener::bind(wanted)?;
                socket.set_nonblocking(true)?;
                Ok(Bound { address: socket.local_addr()?, socket })
            };
            bound().map_err(|error| ServeError::bind(*wanted, error))
        })
        .collect()
}

fn service(setup: &Setup, site: Site, alive: &mpsc::Sender<()>) -> Service<HttpProxy<Gateway>> {
    let conf = Arc::new(ServerConf { upstream_keepalive_pool_size: MAX_IDLE, ..ServerConf::default() });
    http_proxy_service_with_name(&conf, setup.gateway(site, alive.clone()), "hookgate")
}

/// Adds the listeners to a service, and gives their sockets to it the way that pingora takes them over from another
/// process: by the name of their address.
fn listen(
    service: &mut Service<HttpProxy<Gateway>>,
    listeners: Vec<Bound>,
    certificate: Option<&Arc<Certificate>>,
) -> Result<ListenFds, ServeError> {
    let mut sockets = Fds::new();
    for Bound { address, socket } in listeners {
        let (idle, interval, count) = CLIENT_KEEPALIVE;
        let mut options = TcpSocketOptions::default();
        options.tcp_keepalive = Some(TcpKeepalive {
            idle,
            interval,
            count,
            #[cfg(target_os = "linux")]
            user_timeout: Duration::ZERO,
        });
        let read_ahead = if certificate.is_some() { TLS_READ_AHEAD } else { 0 };
        let mut listener = ListenerConfig::tcp(address.to_string())
            .tcp_socket_options(options)
            .l4_buffer(L4BufferSettings::default().read(read_ahead));
        if let Some(certificate) = certificate {
            listener = listener.tls(certificate.settings()?);
        }
        service.add_listener(listener);
        sockets.add(address.to_string(), socket.into_raw_fd());
    }
    Ok(Arc::new(sockets.into()))
}
