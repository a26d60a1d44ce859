//! A client for each runtime.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use tokio::runtime::{Handle, Id};

use super::http::{HyperClient, client};

/// Runtimes whose clients are kept; the one that came first makes room. A host has one, or one for each core.
const MAX_CLIENTS: usize = 256;

/// Clients of one trust, one for each tokio runtime that asks. A pooled connection is driven by the runtime that made it: from another
/// one it would have to be woken for each exchange, and it ends with its own.
pub(super) struct Clients {
    tls: Arc<ClientConfig>,
    made: Mutex<Vec<(Id, HyperClient)>>,
}

impl Clients {
    pub(super) fn new(tls: Arc<ClientConfig>) -> Arc<Self> {
        Arc::new(Clients { tls, made: Mutex::default() })
    }

    /// The client of the runtime that this runs on.
    pub(super) fn here(&self) -> HyperClient {
        let runtime = Handle::current().id();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, client)) = made.iter().find(|(of, _)| *of == runtime) {
            return client.clone();
        }
        let client = client(&self.tls);
        if made.len() == MAX_CLIENTS {
            made.remove(0);
        }
        made.push((runtime, client.clone()));
        client
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};

    use super::super::http::trusting;
    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn each_runtime_has_one() {
        let clients = Clients::new(trusting(rustls::RootCertStore::empty()));
        let runtimes: Vec<_> = (0..=MAX_CLIENTS).map(|_| runtime()).collect();
        for (at, runtime) in runtimes.iter().enumerate() {
            for _ in 0..2 {
                runtime.block_on(async { clients.here() });
                assert_eq!(clients.made.lock().unwrap().len(), (at + 1).min(MAX_CLIENTS));
            }
        }
        let first = runtimes[0].handle().id();
        assert!(clients.made.lock().unwrap().iter().all(|(of, _)| *of != first));
    }
}
