//! HTTP/1.1 connections that wait for their next exchange.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pingora::protocols::Stream;
use tokio::runtime::{Handle, Id};

use crate::host::pingora::corked::Corked;

/// A connection that nobody uses is closed after this long; shorter than what servers usually allow (60 s and more).
pub(in crate::host::pingora) const IDLE_TIME: Duration = Duration::from_secs(50);
/// Connections that wait, for one server.
pub(in crate::host::pingora) const MAX_IDLE: usize = 512;

/// The waiting connections to one server, the last used one at the end.
///
/// pingora's pool has a task for each connection that waits, to see it close. Whoever takes the connection has to wake that
/// task and wait for it, which takes longer than to look at the connection: here it is looked at when it is taken, and from
/// time to time.
#[derive(Default)]
pub(super) struct Idle(Mutex<VecDeque<Kept>>);

struct Kept {
    connection: Box<Corked>,
    address: SocketAddr,
    since: Instant,
    /// The runtime that tells what happens on it: that of one thread.
    runtime: Id,
}

impl Kept {
    fn is_usable(&mut self) -> bool {
        self.since.elapsed() < IDLE_TIME && self.connection.is_quiet()
    }
}

impl Idle {
    /// A connection to that address that can be used, and that belongs to this thread: from another one it would have to be woken.
    pub(super) fn take(&self, address: SocketAddr) -> Option<Stream> {
        loop {
            let mut kept = self.pop(address)?;
            if kept.is_usable() {
                return Some(kept.connection);
            }
        }
    }

    fn pop(&self, address: SocketAddr) -> Option<Kept> {
        let runtime = Handle::current().id();
        let mut all = self.all();
        let last = all.iter().rposition(|kept| kept.address == address && kept.runtime == runtime)?;
        all.remove(last)
    }

    /// Keeps a connection. When there are too many, the one that waited longest is closed.
    pub(super) fn keep(&self, address: SocketAddr, stream: Stream) {
        let mut connection = if (*stream).as_any().is::<Corked>() {
            let Ok(connection) = stream.into_any().downcast() else { return };
            connection
        } else {
            Box::new(Corked::new(stream))
        };
        connection.cork();
        let mut all = self.all();
        let surplus = if all.len() < MAX_IDLE { None } else { all.pop_front() };
        all.push_back(Kept { connection, address, since: Instant::now(), runtime: Handle::current().id() });
        drop(all);
        drop(surplus);
    }

    /// Closes what waited too long or was closed by the server.
    pub(super) fn sweep(&self) {
        let mut closed = Vec::new();
        let mut all = self.all();
        for mut kept in std::mem::take(&mut *all) {
            if kept.is_usable() {
                all.push_back(kept);
            } else {
                closed.push(kept);
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use pingora::protocols::l4::stream::Stream as Plain;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn connection() -> (SocketAddr, Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let near = TcpStream::connect(address).await.unwrap();
        (address, Box::new(Plain::from(near)), listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn the_last_used_one_is_taken_first_and_only_where_it_leads() {
        let idle = Idle::default();
        let ((here, one, _far_one), (there, other, _far_other), (_, two, _far_two)) =
            (connection().await, connection().await, connection().await);
        let ids = [one.id(), two.id()];
        idle.keep(here, one);
        idle.keep(there, other);
        idle.keep(here, two);
        let taken = idle.take(here).unwrap();
        assert_eq!(taken.id(), ids[1]);
        idle.keep(here, taken);
        assert_eq!([idle.take(here), idle.take(here)].map(|taken| taken.unwrap().id()), [ids[1], ids[0]]);
        assert!(idle.take(here).is_none() && idle.take(there).is_some());
    }

    #[tokio::test]
    async fn what_the_server_closed_is_not_taken() {
        let idle = Idle::default();
        let (address, near, far) = connection().await;
        let (_, stays, _far) = connection().await;
        let id = stays.id();
        idle.keep(address, stays);
        idle.keep(address, near);
        drop(far);
        // Until the kernel has told.
        let told = async {
            while idle.all().len() == 2 {
                tokio::task::yield_now().await;
                idle.sweep();
            }
        };
        tokio::time::timeout(Duration::from_secs(10), told).await.unwrap();
        assert_eq!(idle.take(address).unwrap().id(), id);
        assert!(idle.take(address).is_none());
    }

    #[tokio::test]
    async fn there_are_never_too_many() {
        let idle = Idle::default();
        let (address, first, _far) = connection().await;
        let first_id = first.id();
        idle.keep(address, first);
        let mut others = Vec::new();
        for _ in 0..MAX_IDLE {
            let (_, near, far) = connection().await;
            idle.keep(address, near);
            others.push(far);
        }
        assert_eq!(idle.all().len(), MAX_IDLE);
        while let Some(taken) = idle.take(address) {
            assert_ne!(taken.id(), first_id);
        }
    }
}
