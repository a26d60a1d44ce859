//! What the texts in the file mean.

use std::net::SocketAddr;
use std::ops::Deref;
use std::path::PathBuf;

use url::{Host, Url};

use crate::config::describe::FromText;
use crate::config::model::{Scheme, UpstreamTarget};

impl FromText for SocketAddr {
    const WHAT: &'static str = "an IP address and a port, such as \"127.0.0.1:8787\" or \"[::1]:8787\"";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl FromText for PathBuf {
    const WHAT: &'static str = "the path of a file";

    fn from_text(text: &str) -> Option<Self> {
        Name::from_text(text).map(|name| PathBuf::from(name.0))
    }
}

/// Declares a text that is checked and then only read.
macro_rules! checked_text {
    ($(#[doc = $about:literal])* $name:ident, $what:literal, secret: $secret:literal, $check:expr) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct $name(String);

        impl FromText for $name {
            const WHAT: &'static str = $what;

            fn from_text(text: &str) -> Option<Self> {
                let check: fn(&str) -> Option<String> = $check;
                check(text).map($name)
            }

            fn may_be_secret(_wrong: &str) -> bool {
                $secret
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }
    };
}

checked_text!(
    /// Any text for a single line.
    Name, "text on one line, not empty", secret: false,
    |text| (!text.trim().is_empty() && !text.contains(char::is_control)).then(|| text.to_owned())
);

checked_text!(
    /// The name of an environment variable. Narrower than POSIX, so that a secret in its place is noticed.
    EnvName,
    "the name of an environment variable (capital letters, digits and _); secrets themselves never stand in the configuration",
    secret: true,
    |text| {
        let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let starts = text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
        (starts && text.bytes().all(fits)).then(|| text.to_owned())
    }
);

checked_text!(
    /// The name of a cookie (RFC 6265).
    CookieName, "the name of a cookie: letters, digits, - and _", secret: false,
    |text| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (!text.is_empty() && text.len() <= 64 && text.bytes().all(fits)).then(|| text.to_owned())
    }
);

checked_text!(
    /// A host, in the form in which hosts are compared.
    Hostname, "a host name or address without scheme and port, such as \"agents.example.com\"", secret: false,
    |text| Host::parse(text).ok().map(|host| host.to_string())
);

checked_text!(
    /// A host as it is reached from outside.
    TrustedHost, "a host name or address, with or without a port, such as \"agents.example.com\"", secret: false,
    |text| {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port.parse::<u16>().ok()?)),
            _ => (text, None),
        };
        let host = Host::parse(host).ok()?;
        Some(port.map_or_else(|| host.to_string(), |port| format!("{host}:{port}")))
    }
);

checked_text!(
    /// The start of paths: empty for `/`, else without a slash at the end.
    PathPrefix, "the start of a path, such as \"/anthropic\": plain letters, no empty, \".\" or \"..\" steps", secret: false,
    |text| {
        if text == "/" {
            return Some(String::new());
        }
        let path = text.strip_suffix('/').unwrap_or(text);
        let steps = path.strip_prefix('/')?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:@!$&'()*+,;=".contains(&byte);
        let fits = |step: &str| !matches!(step, "" | "." | "..") && step.bytes().all(plain);
        steps.split('/').all(fits).then(|| path.to_owned())
    }
);

checked_text!(
    /// Scheme and authority, without a slash at the end.
    PublicOrigin, "an http or https origin without a path, such as \"https://agents.example.com\"", secret: true,
    |text| {
        let url = Url::parse(text).ok()?;
        let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        let is_origin = plain && url.fragment().is_none() && url.path() == "/" && matches!(url.scheme(), "http" | "https");
        is_origin.then(|| url.origin().ascii_serialization())
    }
);

checked_text!(
    /// A JSON Pointer (RFC 6901).
    Pointer, "a JSON Pointer, such as \"/prompt\"", secret: false,
    |text| {
        let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        (escapes && (text.is_empty() || text.starts_with('/'))).then(|| text.to_owned())
    }
);

/// One server of a route.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamUrl(pub(crate) UpstreamTarget);

impl FromText for UpstreamUrl {
    const WHAT: &'static str = "an http or https URL without user, query and fragment, such as \"https://api.anthropic.com\"; credentials go into header_env";

    fn from_text(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        let credentials = !url.username().is_empty() || url.password().is_some();
        if credentials || url.query().is_some() || url.fragment().is_some() {
            return None;
        }
        let host = match url.host()? {
            Host::Ipv6(address) => address.to_string(),
            other => other.to_string(),
        };
        let sni = matches!((scheme, url.host()?), (Scheme::Https, Host::Domain(_))).then(|| host.clone());
        let authority = url.authority().to_owned();
        let path_prefix = url.path().trim_end_matches('/').to_owned();
        Some(UpstreamUrl(UpstreamTarget {
            scheme,
            host,
            port: url.port_or_known_default()?,
            path_prefix,
            authority,
            sni,
        }))
    }

    /// A user and a password may stand before the `@`.
    fn may_be_secret(wrong: &str) -> bool {
        wrong.contains('@')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted<T: FromText>(texts: &[&str]) -> Vec<bool> {
        texts.iter().map(|text| T::from_text(text).is_some()).collect()
    }

    #[test]
    fn prefixes_lose_the_slash_at_the_end() {
        for (text, expected) in [("/", Some("")), ("/a", Some("/a")), ("/a/b/", Some("/a/b")), ("a", None), ("", None)]
        {
            assert_eq!(PathPrefix::from_text(text).as_deref(), expected, "{text}");
        }
        let refused = ["//", "/a//b", "/a/../b", "/.", "/a?b", "/a#b", "/a b", "/a%2fb", "/ä"];
        assert_eq!(accepted::<PathPrefix>(&refused), vec![false; refused.len()]);
    }

    #[test]
    fn origins_have_no_path() {
        let origin = PublicOrigin::from_text("HTTPS://Agents.example.com:443/").unwrap();
        assert_eq!(&*origin, "https://agents.example.com");
        let refused = ["https://a/b", "https://u@a", "https://a/?q", "https://a/#f", "ftp://a", "a.example", ""];
        assert_eq!(accepted::<PublicOrigin>(&refused), vec![false; refused.len()]);
    }

    #[test]
    fn names_of_variables_are_told_from_secrets() {
        assert_eq!(
            accepted::<EnvName>(&["TOKEN", "_T1", "1T", "sk-ant-api03", "Token", ""]),
            [true, true, false, false, false, false]
        );
    }

    #[test]
    fn upstreams_are_taken_apart() {
        let target = UpstreamUrl::from_text("https://API.example.com/v1/").unwrap().0;
        assert_eq!((target.scheme, target.port, target.path_prefix.as_str()), (Scheme::Https, 443, "/v1"));
        assert_eq!((target.host.as_str(), target.authority.as_str()), ("api.example.com", "api.example.com"));
        assert_eq!(target.sni.as_deref(), Some("api.example.com"));

        let target = UpstreamUrl::from_text("http://[::1]:9000").unwrap().0;
        assert_eq!((target.host.as_str(), target.authority.as_str()), ("::1", "[::1]:9000"));
        assert_eq!((target.port, target.path_prefix.as_str(), target.sni), (9000, "", None));

        assert_eq!(UpstreamUrl::from_text("https://10.0.0.1").unwrap().0.sni, None);
    }

    #[test]
    fn upstreams_with_credentials_or_other_parts_are_refused() {
        let refused = [
            "ftp://a",
            "https://u:p@a",
            "https://u@a",
            "https://a/?q",
            "https://a/#f",
            "a.example.com",
            "",
            "https://",
        ];
        assert_eq!(accepted::<UpstreamUrl>(&refused), vec![false; refused.len()]);
    }

    #[test]
    fn pointers_start_with_a_slash_and_escape_well() {
        assert_eq!(
            accepted::<Pointer>(&["", "/a/0", "/a~1b~0", "a", "/a~2", "/a~"]),
            [true, true, true, false, false, false]
        );
    }
}
