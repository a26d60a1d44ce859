//! Where callbacks come in: what stands before the path of their URLs. It is configured, never taken from a request, whose
//! `host` whoever sends it chooses.

use std::fmt;

use url::{Host, Url};

/// The scheme of a derived origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// HTTPS.
    #[default]
    Https,
    /// Plain HTTP.
    Http,
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Scheme::Https => "https",
            Scheme::Http => "http",
        }
    }
}

/// Why callbacks have no address. The text names the settings that would give them one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// Nothing says how the outside reaches this hookgate.
    #[error(
        "no callback can be issued: set [tmp_hooks] base_url to the public origin of this hookgate, or list its public name \
         (a domain without a port) in [server] trusted_hosts"
    )]
    Undeclared,
    /// Several names could be it.
    #[error(
        "no callback can be issued: [server] trusted_hosts lists several public names; set [tmp_hooks] base_url to the one \
         that workers are to call"
    )]
    Ambiguous,
}

/// An absolute HTTP URL without its slashes at the end; `None` for anything else. User information, query and fragment
/// have no place in it.
pub(super) fn base_url(text: &str) -> Option<String> {
    if text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let plain =
        url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    let fits = plain && matches!(url.scheme(), "http" | "https") && url.host().is_some();
    fits.then(|| url.as_str().trim_end_matches('/').to_owned())
}

/// The origin that follows from the declared hosts.
pub(super) fn derived(trusted_hosts: &[String], scheme: Scheme) -> Result<String, OriginError> {
    let mut public = trusted_hosts.iter().filter_map(|host| public_name(host));
    match (public.next(), public.next()) {
        (Some(name), None) => Ok(format!("{}://{name}", scheme.name())),
        (None, _) => Err(OriginError::Undeclared),
        (Some(_), Some(_)) => Err(OriginError::Ambiguous),
    }
}

/// A domain without a port that is not this machine's name for itself.
fn public_name(host: &str) -> Option<String> {
    if host.contains(':') {
        return None;
    }
    match Host::parse(host).ok()? {
        Host::Domain(name) if name != "localhost" && !name.ends_with(".localhost") => Some(name),
        _ => None,
    }
}

/// In words.
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_absolute_and_loses_its_slashes() {
        for (text, expected) in [
            ("https://agents.example.com", Some("https://agents.example.com")),
            ("https://Agents.example.com/", Some("https://agents.example.com")),
            ("http://127.0.0.1:8787//", Some("http://127.0.0.1:8787")),
            ("https://a.example.com/gate/", Some("https://a.example.com/gate")),
            ("agents.example.com", None),
            ("/x", None),
            ("ftp://a", None),
            ("https://u:p@a", None),
            ("https://a/?q", None),
            ("https://a/#f", None),
            ("https://a b", None),
            ("", None),
        ] {
            assert_eq!(base_url(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn one_public_name_is_the_origin() {
        let derive =
            |hosts: &[&str]| derived(&hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>(), Scheme::Https);
        assert_eq!(derive(&["agents.example.com"]).unwrap(), "https://agents.example.com");
        assert_eq!(
            derive(&["127.0.0.1", "localhost", "a.example", "b.example:8443", "[::1]"]).unwrap(),
            "https://a.example"
        );
        for hosts in [&[][..], &["10.0.0.1"], &["localhost"], &["a.example:8443"]] {
            assert_eq!(derive(hosts), Err(OriginError::Undeclared), "{hosts:?}");
        }
        assert_eq!(derive(&["a.example", "b.example"]), Err(OriginError::Ambiguous));
        for error in [OriginError::Undeclared, OriginError::Ambiguous] {
            let text = error.to_string();
            assert!(text.contains("base_url") && text.contains("trusted_hosts"), "{text}");
        }
        assert_eq!(derived(&["a.example".into()], Scheme::Http).unwrap(), "http://a.example");
    }
}
