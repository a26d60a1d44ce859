//! Names to addresses, without asking for every request.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tokio::sync::Mutex;

/// A name is asked for again after this long; the answer's own TTL is not visible through the system's resolver.
const FRESH: Duration = Duration::from_secs(30);

/// The addresses of one server.
pub(super) struct Addresses {
    host: String,
    port: u16,
    known: ArcSwapOption<Known>,
    /// One lookup at a time.
    lookup: Mutex<()>,
}

struct Known {
    addresses: Arc<[SocketAddr]>,
    /// `None`: for ever, the host is an address itself.
    until: Option<Instant>,
}

impl Known {
    fn fresh(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl Addresses {
    pub(super) fn new(host: &str, port: u16) -> Self {
        let literal = host.parse::<IpAddr>().ok();
        let known = literal.map(|ip| Known { addresses: [SocketAddr::new(ip, port)].into(), until: None });
        Addresses { host: host.to_owned(), port, known: ArcSwapOption::from_pointee(known), lookup: Mutex::new(()) }
    }

    /// At least one address, in the system's order of preference; `None` when they have to be looked up.
    pub(super) fn known(&self) -> Option<Arc<[SocketAddr]>> {
        self.known.load().as_ref().filter(|known| known.fresh()).map(|known| known.addresses.clone())
    }

    /// Looks the addresses up. While somebody else does, or when it fails, the ones known from before.
    ///
    /// # Errors
    /// The lookup failed and there never was an answer.
    pub(super) async fn look_up(&self) -> io::Result<Arc<[SocketAddr]>> {
        let known = self.known.load_full();
        let _one = match &known {
            Some(known) => match self.lookup.try_lock() {
                Ok(one) => one,
                Err(_) => return Ok(known.addresses.clone()),
            },
            None => self.lookup.lock().await,
        };
        // Another one may have answered while this one waited for its turn.
        if let Some(addresses) = self.known() {
            return Ok(addresses);
        }
        let answer = tokio::net::lookup_host((self.host.as_str(), self.port)).await.map(Iterator::collect::<Vec<_>>);
        let addresses = match (answer, known) {
            (Ok(addresses), _) if !addresses.is_empty() => addresses.into(),
            (_, Some(known)) => known.addresses.clone(),
            (Ok(_), None) => return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
            (Err(error), None) => return Err(error),
        };
        let until = Instant::now().checked_add(FRESH);
        self.known.store(Some(Known { addresses: Arc::clone(&addresses), until }.into()));
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_lookup() {
        let addresses = Addresses::new("::1", 443).known().unwrap();
        assert_eq!(*addresses, ["[::1]:443".parse().unwrap()]);
    }

    #[tokio::test]
    async fn a_name_is_resolved_and_an_unknown_one_is_an_error() {
        let localhost = Addresses::new("localhost", 80);
        assert!(localhost.known().is_none());
        let addresses = localhost.look_up().await.unwrap();
        assert!(addresses.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
        assert_eq!(localhost.known(), Some(addresses));
        assert!(Addresses::new("no-such-host.invalid", 80).look_up().await.is_err());
    }
}
