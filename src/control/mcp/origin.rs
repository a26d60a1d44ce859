//! Which requests a browser's page may have made that is not hookgate's. Behind an open gate that is the only thing that
//! keeps the web from a server on one's own machine.

use std::net::IpAddr;

use http::uri::Authority;
use http::{header, request};

use crate::auth::Caller;
use crate::auth::origin::names_another;

/// What is wrong with where a request comes from, if anything is.
///
/// 1. A page of another origin says so by `origin`.
/// 2. A page whose name was made to lead here (DNS rebinding) has that name in `host`. A name is therefore accepted when it
///    always leads to this machine, when it is hookgate's own (`public` is its origin), or when the gate knows the caller:
///    such a page has no credentials. An address is no name.
pub(super) fn objection(head: &request::Parts, public: Option<&str>) -> Option<&'static str> {
    let named = head.headers.get(header::HOST).map(|host| host.as_bytes());
    let authority = match named {
        Some(named) => Authority::try_from(named).ok(),
        None => head.uri.authority().cloned(),
    };
    let Some(authority) = authority else { return Some("The request has no host, or one that is none.") };
    if names_another(&head.headers, Some(authority.as_str())) {
        return Some("A page of another origin cannot use the MCP server.");
    }
    let known = head.extensions.get::<Caller>().is_some_and(|caller| caller.name().is_some());
    let fits = known || is_own(authority.host(), public);
    (!fits).then_some(
        "The host that the request names is neither this machine nor the public name of hookgate. Use http://127.0.0.1 or \
         http://localhost, set [tmp_hooks] base_url (or [server] trusted_hosts) to the public name, or put a gate in front ([auth]).",
    )
}

fn is_own(host: &str, public: Option<&str>) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let host = host.to_ascii_lowercase();
    let public = public.and_then(|origin| url::Url::parse(origin).ok());
    bare.parse::<IpAddr>().is_ok()
        || host == "localhost"
        || host.ends_with(".localhost")
        || public.is_some_and(|public| public.host_str() == Some(&*host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(uri: &str, headers: &[(&str, &str)], caller: Option<&str>) -> bool {
        let mut request = http::Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        head.extensions.insert(caller.map_or(Caller::anonymous(), Caller::named));
        objection(&head, Some("https://agents.example.com/below")).is_some()
    }

    #[test]
    fn this_machine_the_public_name_and_known_callers_pass() {
        for host in [
            "localhost",
            "LOCALHOST:8787",
            "127.0.0.1:8787",
            "[::1]:8787",
            "10.0.0.7",
            "a.localhost:1",
            "agents.example.com",
        ] {
            assert!(!objects("/hookgate/mcp", &[("host", host)], None), "{host}");
        }
        for host in ["evil.example:8787", "localhost.evil.example", "127.0.0.1.evil.example", "example.com", ""] {
            assert!(objects("/hookgate/mcp", &[("host", host)], None), "{host}");
        }
        assert!(!objects("/hookgate/mcp", &[("host", "hookgate.internal")], Some("token")));
        assert!(!objects("http://localhost:1/hookgate/mcp", &[], None), "HTTP/2 has it in the URI");
        assert!(objects("http://evil.example/hookgate/mcp", &[], None));
        assert!(objects("/hookgate/mcp", &[], None));
    }

    #[test]
    fn a_page_of_another_origin_does_not() {
        let host = ("host", "localhost:8787");
        assert!(!objects("/", &[host, ("origin", "http://localhost:8787")], None));
        for origin in ["http://localhost:1", "https://evil.example", "null", ""] {
            assert!(objects("/", &[host, ("origin", origin)], None), "{origin}");
            assert!(objects("/", &[host, ("origin", origin)], Some("token")), "{origin}");
        }
        assert!(objects("/", &[host, ("origin", "http://localhost:8787"), ("origin", "http://evil.example")], None));
    }
}
