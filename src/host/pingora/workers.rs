//! The threads that serve connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc as threads;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, watch};

/// Connections on their way to one thread; more wait in the queue of their socket.
const MAX_ARRIVALS: usize = 256;

/// As many threads as the machine has cores, each with a runtime of its own. A connection stays on the thread that got it, as do
/// the connections to upstreams and handlers that its exchanges use.
///
/// With one runtime for all, its threads wake each other for every exchange, which takes more than a tenth of all time. Here a
/// thread is woken by the kernel alone. What such a runtime would even out at any time is evened out when a connection comes: the
/// thread that has the fewest gets it.
pub(super) struct Workers {
    entrance: Entrance,
    end: watch::Sender<()>,
    ended: threads::Receiver<()>,
}

/// How work reaches the threads.
#[derive(Clone)]
pub(super) struct Entrance(Arc<[Door]>);

/// The way to one thread.
struct Door {
    arrivals: mpsc::Sender<(BoxFuture<'static, ()>, Place)>,
    open: Arc<AtomicUsize>,
}

/// One among the open connections of a thread.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Place(open.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workers {
    /// Starts them. When one ends, it waits for `tear_down` for calls that block.
    ///
    /// # Errors
    /// The system has no more threads or files.
    pub(super) fn start(tear_down: Duration) -> io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let (end, ending) = watch::channel(());
        let (tell, ended) = threads::sync_channel(1);
        let doors = (0..count).map(|_| start(ending.clone(), tell.clone(), tear_down)).collect::<io::Result<_>>()?;
        Ok(Workers { entrance: Entrance(doors), end, ended })
    }

    /// Where connections are handed over.
    pub(super) fn entrance(&self) -> &Entrance {
        &self.entrance
    }

    /// Ends them, whatever they are doing, and waits for that, but not longer than `patience`.
    pub(super) fn end(self, patience: Duration) {
        drop(self.end);
        let until = Instant::now() + patience;
        // Nothing is ever sent: the channel closes when the last thread has ended.
        while self.ended.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok() {}
    }
}

fn start(mut ending: watch::Receiver<()>, ended: threads::SyncSender<()>, tear_down: Duration) -> io::Result<Door> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (arrivals, mut arriving) = mpsc::channel::<(BoxFuture<'static, ()>, Place)>(MAX_ARRIVALS);
    std::thread::Builder::new().name("hookgate".to_owned()).spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    Some((work, place)) = arriving.recv() => {
                        tokio::spawn(async move {
                            work.await;
                            drop(place);
                        });
                    }
                    _ = ending.changed() => break,
                }
            }
        });
        runtime.shutdown_timeout(tear_down);
        drop(ended);
    })?;
    Ok(Door { arrivals, open: Arc::default() })
}

impl Entrance {
    /// Runs a connection on the thread that has the fewest, from the first poll on.
    pub(super) async fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let Some(door) = self.0.iter().min_by_key(|door| door.open.load(Ordering::Relaxed)) else { return };
        // Fails when the thread has ended, as the proxy has then: the connection is closed.
        let _ = door.arrivals.send((Box::pin(connection), Place::new(&door.open))).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::thread::ThreadId;

    use tokio::sync::oneshot;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// Begins a connection, and returns its thread and what ends it by being dropped.
    async fn connection(entrance: &Entrance) -> (ThreadId, oneshot::Sender<()>) {
        let (tell, told) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        entrance
            .spawn(async move {
                tell.send(std::thread::current().id()).unwrap();
                let _ = ended.await;
            })
            .await;
        (told.await.unwrap(), end)
    }

    #[tokio::test]
    async fn connections_are_evened_out() {
        let workers = Workers::start(PATIENCE).unwrap();
        let count = workers.entrance().0.len();
        let mut open: HashMap<ThreadId, Vec<_>> = HashMap::new();
        for _ in 0..count * 3 {
            let (thread, end) = connection(workers.entrance()).await;
            assert_ne!(thread, std::thread::current().id());
            open.entry(thread).or_default().push(end);
        }
        assert!(open.len() == count && open.values().all(|of_one| of_one.len() == 3));
        // The thread that lost its connections gets the next ones.
        let freed = *open.keys().next().unwrap();
        open.remove(&freed);
        let places = &workers.entrance().0;
        let all_gone = async {
            while places.iter().all(|door| door.open.load(Ordering::Relaxed) > 0) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, all_gone).await.unwrap();
        assert_eq!(connection(workers.entrance()).await.0, freed);
        workers.end(PATIENCE);
    }

    #[tokio::test]
    async fn ending_drops_what_is_under_way() {
        let workers = Workers::start(PATIENCE).unwrap();
        let (fallen, falls) = oneshot::channel::<()>();
        workers
            .entrance()
            .spawn(async move {
                std::future::pending::<()>().await;
                let _ = fallen.send(());
            })
            .await;
        let entrance = workers.entrance().clone();
        workers.end(PATIENCE);
        assert!(falls.await.is_err());
        // What comes too late is dropped.
        let (late, dropped) = oneshot::channel::<()>();
        entrance.spawn(async move { drop(late) }).await;
        assert!(dropped.await.is_err());
    }
}
