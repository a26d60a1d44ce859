//! The hosts that handlers may be on.

use url::{Host, Url};

use super::HookError;

/// The setting's name in errors.
const SOURCE: &str = "[hooks] allowed_hosts";

/// Exact hosts, each for every port or for one. Both sides of the comparison are in the canonical form of the WHATWG
/// URL standard, so that `EXAMPLE.com`, punycode and the many spellings of an IP address are one host each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllowedHosts(Vec<(Host, Option<u16>)>);

impl AllowedHosts {
    /// Reads the entries: `host`, `host:port`, IPv6 with or without brackets (a port needs them).
    pub(super) fn parse<'a>(entries: impl IntoIterator<Item = &'a str>, errors: &mut Vec<HookError>) -> Self {
        let mut hosts = Vec::new();
        for entry in entries {
            match parse(entry.trim()) {
                Some(host) => hosts.push(host),
                None => errors.push(HookError {
                    source: SOURCE.into(),
                    position: None,
                    path: crate::wire::json::quote(entry),
                    found: "not an exact host".into(),
                    accepted: "accepted is a host name or IP address, with or without :port, without a pattern".into(),
                }),
            }
        }
        AllowedHosts(hosts)
    }

    /// Whether a handler may be there.
    pub(crate) fn allows(&self, url: &Url) -> bool {
        let Some(host) = url.host() else { return false };
        let port = url.port_or_known_default();
        self.0.iter().any(|(listed, on)| same(listed, &host) && (on.is_none() || *on == port))
    }
}

fn same(listed: &Host, host: &Host<&str>) -> bool {
    match (listed, host) {
        (Host::Domain(a), Host::Domain(b)) => a == b,
        (Host::Ipv4(a), Host::Ipv4(b)) => a == b,
        (Host::Ipv6(a), Host::Ipv6(b)) => a == b,
        _ => false,
    }
}

fn parse(entry: &str) -> Option<(Host, Option<u16>)> {
    let (host, port) = match entry.rsplit_once(':') {
        // Without brackets, several colons are an IPv6 address.
        Some((before, _)) if before.contains(':') && !before.ends_with(']') => (entry, None),
        Some((host, port)) => (host, Some(port)),
        None => (entry, None),
    };
    let port = match port {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port.parse().ok().filter(|p| *p != 0)?),
        Some(_) => return None,
        None => None,
    };
    let bare_ipv6 = host.contains(':') && !host.starts_with('[');
    let host = if bare_ipv6 { Host::parse(&format!("[{host}]")) } else { Host::parse(host) }.ok()?;
    match &host {
        Host::Domain(name) if name.contains('*') => None,
        _ => Some((host, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(entry: &str, url: &str) -> bool {
        let mut errors = Vec::new();
        let hosts = AllowedHosts::parse([entry], &mut errors);
        assert_eq!(errors, [], "{entry}");
        hosts.allows(&Url::parse(url).unwrap())
    }

    #[test]
    fn hosts_are_compared_in_canonical_form() {
        for (entry, url) in [
            ("hooks.example.com", "https://HOOKS.example.com:8443/p"),
            ("Hooks.Example.COM:443", "https://hooks.example.com/"),
            ("bücher.example", "https://xn--bcher-kva.example/"),
            ("127.0.0.1", "http://0x7f.1:9000/"),
            ("127.1:9000", "http://127.0.0.1:9000/"),
            ("::1", "http://[0:0::1]:9000/"),
            ("[::1]", "http://[::1]/"),
            ("[::1]:9000", "http://[::1]:9000/"),
            (" a.example ", "https://a.example"),
        ] {
            assert!(allows(entry, url), "{entry} {url}");
        }
        for (entry, url) in [
            ("example.com", "https://hooks.example.com/"),
            ("hooks.example.com", "https://hooks.example.com.evil.example/"),
            ("hooks.example.com", "https://hooks.example.com./"),
            ("hooks.example.com:443", "https://hooks.example.com:8443/"),
            ("hooks.example.com:443", "http://hooks.example.com/"),
            ("[::1]:9000", "http://[::1]:9001/"),
            ("::1", "http://[::ffff:7f00:1]/"),
        ] {
            assert!(!allows(entry, url), "{entry} {url}");
        }
    }

    #[test]
    fn what_is_no_exact_host_is_an_error() {
        for entry in [
            "",
            "*",
            "*.example.com",
            "https://a.example",
            "a.example/p",
            "u@a.example",
            "a:",
            "a:0",
            "a:70000",
            "[::1",
        ] {
            let mut errors = Vec::new();
            assert_eq!(AllowedHosts::parse([entry], &mut errors), AllowedHosts::default(), "{entry}");
            assert_eq!(errors.len(), 1, "{entry}");
        }
    }
}
