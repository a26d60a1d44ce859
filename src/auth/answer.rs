//! The gate's refusals: a problem for programs, the login page for people.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, request};
use serde_json::json;

use crate::body::Body;

/// Where the login page is.
pub(super) const LOGIN: &str = "/hookgate/login";
/// Where a login ends.
pub(super) const LOGOUT: &str = "/hookgate/logout";

/// An error as RFC 9457 describes it.
pub(super) fn problem(status: StatusCode, kind: &str, title: &str, detail: &str) -> Response<Body> {
    let body = json!({
        "type": format!("urn:hookgate:problem:{kind}"),
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
    });
    let mut answer = Response::new(Body::from(body.to_string()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// While a file of the gate cannot be used. The log says which one and why; a stranger does not learn it.
pub(super) fn broken() -> Response<Body> {
    let detail = "The auth gate cannot read its configuration, so it lets nobody pass; hookgate's log says why.";
    problem(StatusCode::SERVICE_UNAVAILABLE, "gate-broken", "The gate is shut", detail)
}

/// Too many tries that went wrong.
pub(super) fn too_many(wait: Duration) -> Response<Body> {
    let seconds = seconds(wait);
    let detail = format!("Too many tries went wrong; try again in {seconds} s.");
    let mut answer = problem(StatusCode::TOO_MANY_REQUESTS, "too-many-tries", "Too many tries", &detail);
    answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    answer
}

/// Whole seconds after which it is worth to try again.
pub(super) fn seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(1)
}

/// To another page, with a GET.
pub(super) fn see_other(location: &str) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let headers = answer.headers_mut();
    // What cannot be a header is no path of ours.
    let location = HeaderValue::try_from(location).unwrap_or_else(|_| HeaderValue::from_static(LOGIN));
    headers.insert(header::LOCATION, location);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// A person without login is sent to the login page, and from there back to where they wanted to go.
pub(super) fn to_login(head: &request::Parts) -> Response<Body> {
    let wanted = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let next: String = url::form_urlencoded::byte_serialize(wanted.as_bytes()).collect();
    see_other(&format!("{LOGIN}?next={next}"))
}

/// Whether the answer is for a person at a browser who follows a link.
pub(super) fn is_navigation(head: &request::Parts) -> bool {
    matches!(head.method, Method::GET | Method::HEAD) && wants_page(&head.headers)
}

/// Whether `accept` asks for a page by name: programs send `*/*`, or nothing.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = values.flat_map(|value| value.split(',')).filter_map(|range| range.split(';').next());
    types.any(|range| range.trim().eq_ignore_ascii_case("text/html"))
}

/// The path to go to after the login, if it is one of this host's: it begins with one slash, and no browser could take it for
/// another host's address.
pub(super) fn local_path(next: &str) -> Option<&str> {
    let rest = next.strip_prefix('/')?;
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let path = next.split(['?', '#']).next().unwrap_or_default();
    (plain && !rest.starts_with('/') && path != LOGIN && path != LOGOUT).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_host_are_gone_to() {
        for next in ["/", "/hookgate/", "/hookgate/v1/audit?outcome=deny&limit=5", "/a//b", "/a?b=//c", "/@example.com"]
        {
            assert_eq!(local_path(next), Some(next));
        }
        for next in [
            "",
            "hookgate",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\/evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/a\r\nset-cookie: b=c",
            "/\t/evil.example",
            "/a b",
            "/ä",
            "/hookgate/login",
            "/hookgate/login?next=/",
            "/hookgate/logout",
        ] {
            assert_eq!(local_path(next), None, "{next}");
        }
    }

    #[test]
    fn browsers_are_told_from_programs() {
        for (accept, page) in [
            (&["text/html,application/xhtml+xml,*/*;q=0.8"][..], true),
            (&["application/json", "Text/HTML;q=0.5"], true),
            (&["*/*"], false),
            (&["application/json"], false),
            (&[], false),
        ] {
            let headers: HeaderMap = accept.iter().map(|value| (header::ACCEPT, value.parse().unwrap())).collect();
            assert_eq!(wants_page(&headers), page, "{accept:?}");
        }
    }
}
