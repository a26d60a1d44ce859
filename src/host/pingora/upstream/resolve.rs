//! Names to addresses, without asking for every request.

use std::io;
use std::net::{IpAddr, SocketAddr};
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
    addresses: Vec<SocketAddr>,
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
        let known = literal.map(|ip| Known { addresses: vec![SocketAddr::new(ip, port)], until: None });
        Addresses { host: host.to_owned(), port, known: ArcSwapOption::from_pointee(known), lookup: Mutex::new(()) }
    }

    /// At least one address, in the system's order of preference. While a lookup is under way or fails, the addresses
    /// known from before.
    ///
    /// # Errors
    /// The lookup failed and there never was an answer.
    pub(super) async fn get(&self) -> io::Result<Vec<SocketAddr>> {
        let known = self.known.load_full();
        let _one = match &known {
            Some(known) if known.fresh() => return Ok(known.addresses.clone()),
            Some(known) => match self.lookup.try_lock() {
                Ok(one) => one,
                Err(_) => return Ok(known.addresses.clone()),
            },
            None => self.lookup.lock().await,
        };
        // Another one may have answered while this one waited for its turn.
        if let Some(known) = self.known.load_full().filter(|known| known.fresh()) {
            return Ok(known.addresses.clone());
        }
        let answer = tokio::net::lookup_host((self.host.as_str(), self.port)).await.map(Iterator::collect::<Vec<_>>);
        let addresses = match (answer, known) {
            (Ok(addresses), _) if !addresses.is_empty() => addresses,
            (_, Some(known)) => known.addresses.clone(),
            (Ok(_), None) => return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
            (Err(error), None) => return Err(error),
        };
        let until = Instant::now().checked_add(FRESH);
        self.known.store(Some(Known { addresses: addresses.clone(), until }.into()));
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_needs_no_lookup() {
        let addresses = Addresses::new("::1", 443).get().await.unwrap();
        assert_eq!(addresses, ["[::1]:443".parse().unwrap()]);
    }

    #[tokio::test]
    async fn a_name_is_resolved_and_an_unknown_one_is_an_error() {
        let addresses = Addresses::new("localhost", 80).get().await.unwrap();
        assert!(addresses.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
        assert!(Addresses::new("no-such-host.invalid", 80).get().await.is_err());
    }
}
