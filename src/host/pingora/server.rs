//! Listeners, threads, start and stop.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};

use super::ServeError;
use super::listener::Listener;
use super::setup::{Setup, Site};
use super::tls::Certificate;
use super::workers::Workers;
use crate::callback::TmpHooks;
use crate::config::Config;
use crate::control::Metrics;

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
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ServeError::runtime)?;
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

    /// The runtime of what belongs to the process as a whole.
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
        let acceptor = self.certificate.as_ref().map(Certificate::acceptor).transpose()?;
        let workers = Workers::start(TEAR_DOWN).map_err(ServeError::runtime)?;
        let sites = [(traffic, self.listeners, acceptor), (Site::Control, self.control_listeners, None)];
        for (site, sockets, acceptor) in sites.into_iter().filter(|(_, sockets, _)| !sockets.is_empty()) {
            let gateway = Arc::new(self.setup.gateway(site, alive.clone()));
            let listener = Arc::new(Listener { gateway, acceptor, stopping: watch.clone() });
            for Bound { address, socket } in sockets {
                let _runtime = self.runtime.enter();
                let socket =
                    tokio::net::TcpListener::from_std(socket).map_err(|error| ServeError::bind(address, error))?;
                self.runtime.spawn(listener.clone().accept(socket, workers.entrance().clone()));
            }
        }
        drop(alive);
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
        workers.end(TEAR_DOWN);
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
