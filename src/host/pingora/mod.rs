//! The standalone reverse proxy: hookgate's core on pingora.
//!
//! pingora gives the connections of both sides, in both versions of HTTP. What becomes of a request is ours: `connection` has
//! its loop and `gateway` its way, to the core (`driven`) or past it (`passthrough`).

mod callbacks;
mod connection;
mod control;
mod corked;
mod counts;
mod driven;
mod error;
mod framing;
mod gateway;
mod guard;
mod listener;
mod on_demand;
mod passthrough;
mod path;
mod public;
mod rebinding;
mod respond;
mod routes;
mod server;
mod setup;
mod signals;
mod tls;
mod upgrade;
mod upstream;
mod workers;

use std::fmt;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tokio::sync::watch;

pub use self::error::ServeError;
use self::server::{Server, Stop};
use crate::callback::TmpHooks;
use crate::config::Config;
use crate::control::Metrics;

/// Runs the proxy until SIGTERM or SIGINT.
///
/// 1. On the first of these signals nothing more is accepted; what is under way may finish within
///    `shutdown_grace`. The second one ends it at once.
/// 2. SIGHUP reads the hook documents and the certificate again. What cannot be used is logged and changes nothing.
/// 3. It has threads of its own, as many as the machine has cores, and must not be called from within a tokio runtime.
///
/// # Errors
/// An address cannot be listened on, a certificate or hook document cannot be used.
pub fn serve(config: Config) -> Result<(), ServeError> {
    let metrics = Metrics::install().map_err(ServeError::setup)?;
    let server = Server::new(&config, metrics)?;
    let (stop, stopped) = watch::channel(Stop::No);
    signals::watch(&server, stop)?;
    guard::warn(&config);
    for address in server.addresses() {
        tracing::info!(%address, tls = config.tls.is_some(), "listening");
    }
    for address in server.control_addresses() {
        tracing::info!(%address, "listening for the control surface");
    }
    server.run(stopped)
}

/// A proxy that runs on threads of its own. It ends when it is stopped or dropped.
///
/// It takes no signals and records no metrics of the process, so several can run side by side.
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    control_addresses: Vec<SocketAddr>,
    tmp_hooks: TmpHooks,
    stop: watch::Sender<Stop>,
    reload: Box<dyn Fn() + Send + Sync>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Proxy {
    /// Starts a proxy; when this returns, clients can connect. Port 0 takes a free one.
    ///
    /// # Errors
    /// As for [`serve`].
    pub fn start(config: Config) -> Result<Self, ServeError> {
        let server = Server::new(&config, Metrics::detached())?;
        let (stop, stopped) = watch::channel(Stop::No);
        Ok(Proxy {
            addresses: server.addresses(),
            control_addresses: server.control_addresses(),
            tmp_hooks: server.tmp_hooks().clone(),
            stop,
            reload: Box::new(server.reload()),
            thread: Some(std::thread::spawn(move || server.run(stopped))),
        })
    }

    /// Where it listens, in the order of the configuration.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where the control surface listens, if it has addresses of its own.
    pub fn control_addresses(&self) -> &[SocketAddr] {
        &self.control_addresses
    }

    /// Its one-time callbacks, for a program that issues them itself.
    pub fn tmp_hooks(&self) -> &TmpHooks {
        &self.tmp_hooks
    }

    /// Reads the hook documents and the certificate again, as SIGHUP does for [`serve`]. What cannot be used is logged
    /// and changes nothing.
    pub fn reload(&self) {
        (self.reload)();
    }

    /// Accepts nothing more, waits within `shutdown_grace` for what is under way, and returns when nothing is left of
    /// the proxy. Dropping it does the same without the grace.
    pub fn stop(mut self) {
        self.end(Stop::Graceful);
    }

    fn end(&mut self, how: Stop) {
        self.stop.send_replace(how);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join) {
            std::panic::resume_unwind(panic);
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if self.thread.is_some() && !std::thread::panicking() {
            self.end(Stop::Now);
        }
    }
}
