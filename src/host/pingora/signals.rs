//! The signals of the process.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::ServeError;
use super::server::{Server, Stop};

/// Turns signals into orders for the server: end, end at once, reload.
pub(super) fn watch(server: &Server, stop: watch::Sender<Stop>) -> Result<(), ServeError> {
    let reload = server.reload();
    let _runtime = server.runtime().enter();
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let mut hangup = listen(SignalKind::hangup())?;
    server.runtime().spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => end(&stop),
                _ = interrupt.recv() => end(&stop),
                _ = hangup.recv() => reload(),
            }
        }
    });
    Ok(())
}

fn listen(kind: SignalKind) -> Result<Signal, ServeError> {
    signal(kind).map_err(ServeError::runtime)
}

fn end(stop: &watch::Sender<Stop>) {
    stop.send_modify(|stop| {
        *stop = match *stop {
            Stop::No => Stop::Graceful,
            Stop::Graceful | Stop::Now => Stop::Now,
        };
    });
    tracing::info!("told to stop; a second signal stops at once");
}
