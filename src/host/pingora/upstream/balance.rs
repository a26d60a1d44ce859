//! Which server of a route is taken: each in its turn, those that cannot be connected to last.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;

use super::target::Target;

/// Connections that one call tries to make before it fails.
const MAX_CONNECTS: usize = 3;
/// The longest time that a server may take to be connected to when it is looked whether it is there.
const CHECK_TIMEOUT: Duration = Duration::from_secs(1);
/// How often connections that wait are looked at.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// The servers of one route; never empty.
pub(super) struct Targets {
    targets: Vec<Target>,
    turn: AtomicUsize,
    check_interval: Duration,
}

/// What one call has tried so far.
#[derive(Default)]
pub(super) struct Tried {
    addresses: Vec<SocketAddr>,
    /// The last name that could not be resolved, and why.
    unresolved: Option<String>,
}

impl Tried {
    /// Why there is nothing left to try, if it was for a name.
    pub(super) fn unresolved(&self) -> Option<&str> {
        self.unresolved.as_deref()
    }
}

impl Targets {
    pub(super) fn new(targets: Vec<Target>, check_interval: Duration) -> Self {
        Targets { targets, turn: AtomicUsize::new(0), check_interval }
    }

    /// The next server to try and its address; `None` when everything was tried that may be.
    pub(super) async fn next(&self, tried: &mut Tried) -> Option<(&Target, SocketAddr)> {
        if tried.addresses.len() >= MAX_CONNECTS {
            return None;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        for index in order(self.targets.len(), turn, |index| self.targets.get(index).is_some_and(Target::healthy)) {
            let Some(target) = self.targets.get(index) else { continue };
            match target.addresses().await {
                Ok(addresses) => {
                    if let Some(address) = addresses.iter().find(|address| !tried.addresses.contains(address)) {
                        tried.addresses.push(address);
                        return Some((target, address));
                    }
                }
                Err(error) => tried.unresolved = Some(format!("{}: {error}", target.authority())),
            }
        }
        None
    }

    /// The name of the first server, for errors that concern none in particular.
    pub(super) fn name(&self) -> &str {
        self.targets.first().map_or("", Target::authority)
    }

    /// Connects to each server from time to time, until `stop` changes. Returns at once when there is only one: nothing
    /// else could be taken in its place.
    pub(super) async fn check(&self, mut stop: watch::Receiver<bool>) {
        if self.targets.len() < 2 {
            return;
        }
        loop {
            futures_util::future::join_all(self.targets.iter().map(check)).await;
            tokio::select! {
                _ = tokio::time::sleep(self.check_interval) => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }

    /// Closes connections that nobody will use, from time to time, until `stop` changes.
    pub(super) async fn sweep(&self, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                _ = tokio::time::sleep(SWEEP_INTERVAL) => self.targets.iter().for_each(Target::sweep),
                _ = stop.wait_for(|stop| *stop) => return,
            }
        }
    }
}

async fn check(target: &Target) {
    let healthy = match target.addresses().await.ok().and_then(|addresses| addresses.iter().next()) {
        Some(address) => {
            matches!(tokio::time::timeout(CHECK_TIMEOUT, TcpStream::connect(address)).await, Ok(Ok(_)))
        }
        None => false,
    };
    if target.set_healthy(healthy) {
        match healthy {
            true => tracing::info!(upstream = target.authority(), "the upstream is back"),
            false => tracing::warn!(upstream = target.authority(), "the upstream cannot be connected to"),
        }
    }
    if !healthy {
        target.unreachable();
    }
}

/// All of `count` servers, starting with the one whose turn it is, the unhealthy ones at the end.
fn order(count: usize, turn: usize, healthy: impl Fn(usize) -> bool) -> Vec<usize> {
    let start = turn.checked_rem(count).unwrap_or(0);
    let mut order: Vec<usize> = (start..count).chain(0..start).collect();
    order.sort_by_key(|index| !healthy(*index));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn() {
        let first: Vec<_> = (0..6).map(|turn| order(3, turn, |_| true)[0]).collect();
        assert_eq!(first, [0, 1, 2, 0, 1, 2]);
        assert_eq!(order(3, usize::MAX, |_| true).len(), 3);
        assert_eq!(order(0, 7, |_| true), [0; 0]);
    }

    #[test]
    fn the_unhealthy_come_last_and_are_not_left_out() {
        assert_eq!(order(3, 1, |index| index != 1), [2, 0, 1]);
        assert_eq!(order(2, 1, |_| false), [1, 0]);
    }
}
