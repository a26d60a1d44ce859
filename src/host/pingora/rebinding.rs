//! Requests to MCP servers that a page in somebody's browser may have made. Such a server on one's own machine has often no
//! other gate, and it cannot tell by itself: behind a proxy every request names the upstream as its host.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, header};

use super::routes::bare_host;

/// The names by which a route may be reached.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// In lower case; with a port only that port counts.
    names: Arc<[String]>,
}

impl Names {
    pub(super) fn new(names: impl IntoIterator<Item = String>) -> Self {
        Names { names: names.into_iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    fn has(&self, authority: &str) -> bool {
        let (bare, whole) = (bare_host(authority), authority.to_ascii_lowercase());
        self.names.iter().any(|name| *name == bare || *name == whole)
    }

    /// What is wrong with where a request comes from, and which setting would allow it.
    ///
    /// 1. A page whose name was made to lead here (DNS rebinding) has that name in `host`. So a name must always lead to this
    ///    machine, or be one of these. An address is no name. `known`: the caller has shown a key, which no page has.
    /// 2. A page of another origin says so by `origin`. That may be this machine's, the same host's, or of one of these names.
    pub(super) fn objection(&self, headers: &HeaderMap, authority: Option<&str>, known: bool) -> Option<String> {
        let Some(authority) = authority else { return Some("the request names no host".to_owned()) };
        let host = bare_host(authority);
        if !known && !is_local(&host) && address(&host).is_none() && !self.has(authority) {
            return Some(format!(
                "the host that the request names is neither this machine nor a name of this hookgate; if it is one, list it: [server] trusted_hosts = [{:?}]",
                shown(&host)
            ));
        }
        let foreign = headers.get_all(header::ORIGIN).iter().find_map(|origin| {
            let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, origin)| origin);
            let Some(origin) = origin else { return Some("null".to_owned()) };
            let from = bare_host(origin);
            (!is_local(&from) && from != host && !self.has(origin)).then_some(from)
        });
        foreign.map(|host| {
            format!(
                "a page of another origin made this request; if it may, list its host: [server] trusted_hosts = [{:?}]",
                shown(&host)
            )
        })
    }
}

/// A name is never longer; what is longer is no name.
fn shown(host: &str) -> &str {
    host.get(..host.floor_char_boundary(253)).unwrap_or_default()
}

/// Whether a name or address always leads to this machine.
fn is_local(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || address(host).is_some_and(|ip| ip.to_canonical().is_loopback())
}

fn address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(host: &str, origins: &[&str], known: bool) -> bool {
        let names = Names::new(["agents.example.com".to_owned(), "Other.example:8443".to_owned()]);
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, origin.parse().unwrap());
        }
        names.objection(&headers, Some(host), known).is_some()
    }

    #[test]
    fn names_that_lead_here_and_addresses_pass() {
        for host in [
            "localhost",
            "LOCALHOST:8787",
            "a.localhost",
            "127.0.0.1:1",
            "[::1]:1",
            "10.0.0.7",
            "[fd00::1]",
            "localhost.",
            "agents.example.com",
            "Agents.Example.com:444",
            "other.example:8443",
        ] {
            assert!(!objects(host, &[], false), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "other.example", "other.example:1", ""]
        {
            assert!(objects(host, &[], false), "{host}");
            assert!(!objects(host, &[], true), "{host}: whoever has a key is no page");
        }
        assert!(Names::default().objection(&HeaderMap::new(), None, true).is_some());
    }

    #[test]
    fn pages_of_other_origins_do_not() {
        for origin in [
            "http://localhost:6274",
            "http://127.0.0.1:3000",
            "http://[::1]:1",
            "https://agents.example.com",
            "http://10.0.0.7:3000",
        ] {
            assert!(!objects("10.0.0.7:8787", &[origin], false), "{origin}");
        }
        for origin in ["https://evil.example", "http://10.0.0.8", "null", "", "https://other.example", "file://"] {
            assert!(objects("10.0.0.7:8787", &[origin], false), "{origin}");
            assert!(objects("10.0.0.7:8787", &["http://localhost", origin], true), "{origin}: a key does not help");
        }
    }
}
