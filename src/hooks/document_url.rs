//! Where a document may send events.

use url::{Host, Url};

use super::document::Surroundings;
use crate::wire::json::quote;

/// Reads a handler's address and lists what is wrong with it, as (found, accepted). User information and query are never
/// shown: both may hold a secret.
pub(super) fn check(text: &str, around: &Surroundings<'_>) -> (Option<Url>, Vec<(String, String)>) {
    let mut mistakes = Vec::new();
    let mut mistake = |found: String, accepted: &str| mistakes.push((found, accepted.to_owned()));
    // The URL standard repairs these silently; a reader of the document would see another address than we do.
    if text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        mistake("found white space, a control character or a backslash".into(), "accepted is a plain absolute URL");
        return (None, mistakes);
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => {
            mistake(format!("found no absolute URL ({error})"), "accepted is https://host/path");
            return (None, mistakes);
        }
    };
    let Some(host) = url.host() else {
        mistake("found a URL without a host".into(), "accepted is https://host/path");
        return (None, mistakes);
    };
    match url.scheme() {
        "https" => {}
        "http" if is_loopback(&host) && around.allow_insecure_loopback => {}
        "http" if is_loopback(&host) => mistake(
            "found \"http\" to a loopback address".into(),
            "accepted is https, and http to loopback addresses only with [hooks] allow_insecure_loopback = true",
        ),
        scheme => mistake(format!("found the scheme {}", quote(scheme)), "accepted is https"),
    }
    if !url.username().is_empty() || url.password().is_some() {
        mistake(
            "found user information".into(),
            "accepted is a URL without it: use \"connection\" and a [connections.NAME] entry for credentials",
        );
    }
    if url.fragment().is_some() {
        mistake("found a fragment".into(), "accepted is a URL without #");
    }
    if let Some((name, _)) = url.query_pairs().find(|(name, _)| names_a_secret(name)) {
        mistake(
            format!("found a credential in the query ({})", quote(&name)),
            "accepted is a reference: use \"connection\" and a [connections.NAME] entry",
        );
    }
    if url.as_str().parse::<http::Uri>().is_err() {
        mistake("found characters that an HTTP request cannot carry".into(), "accepted are percent-encoded characters");
    }
    if !around.hosts.allows(&url) {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        mistake(
            format!("found the host {}", quote(&format!("{host}{port}"))),
            "accepted are the hosts listed in [hooks] allowed_hosts or HOOKGATE_HOOK_ALLOWED_HOSTS",
        );
    }
    (mistakes.is_empty().then_some(url), mistakes)
}

/// Literal addresses, and the one name that never leaves the machine (RFC 6761; the built-in transport does not ask a
/// resolver for it).
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Domain(name) => *name == "localhost",
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
    }
}

/// Whether a key's name says that its value is a credential.
pub(super) fn names_a_secret(name: &str) -> bool {
    const SECRETS: [&str; 17] = [
        "authorization",
        "proxyauthorization",
        "headers",
        "header",
        "token",
        "accesstoken",
        "apitoken",
        "authtoken",
        "bearer",
        "bearertoken",
        "apikey",
        "xapikey",
        "secret",
        "clientsecret",
        "signingsecret",
        "password",
        "cookie",
    ];
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    SECRETS.contains(&plain.as_str())
}
