//! Whether a browser sends a request for a page of another origin.

use http::{HeaderMap, header};

/// Whether the request is one that a page of another origin made. A browser says so itself: by `sec-fetch-site` where the
/// connection is safe, by `origin` elsewhere. What says neither is no browser, and is under nobody else's influence.
#[cfg(feature = "auth")]
pub(super) fn is_foreign(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").iter().peekable();
    if sites.peek().is_some() {
        return sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    }
    names_another(headers, headers.get(header::HOST).and_then(|host| host.to_str().ok()))
}

/// Whether an `origin` header names another authority than this one. Without an authority each of them does.
pub(crate) fn names_another(headers: &HeaderMap, authority: Option<&str>) -> bool {
    headers.get_all(header::ORIGIN).iter().any(|origin| {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        !matches!((origin, authority), (Some((_, origin)), Some(host)) if origin.eq_ignore_ascii_case(host))
    })
}

#[cfg(all(test, feature = "auth"))]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn browsers_tell_on_foreign_pages() {
        for (pairs, foreign) in [
            (&[("host", "a.example:80")][..], false),
            (&[("host", "a"), ("sec-fetch-site", "same-origin")], false),
            (&[("host", "a"), ("sec-fetch-site", "none")], false),
            (&[("host", "a"), ("sec-fetch-site", "same-site")], true),
            (&[("host", "a"), ("sec-fetch-site", "cross-site")], true),
            (&[("host", "a"), ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], true),
            (&[("host", "a"), ("origin", "http://b"), ("sec-fetch-site", "same-origin")], false),
            (&[("host", "A.example"), ("origin", "https://a.example")], false),
            (&[("host", "a.example:81"), ("origin", "http://a.example")], true),
            (&[("host", "a.example"), ("origin", "http://b.a.example")], true),
            (&[("host", "a.example"), ("origin", "null")], true),
            (&[("origin", "http://a")], true),
        ] {
            let headers: HeaderMap =
                pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
            assert_eq!(is_foreign(&headers), foreign, "{pairs:?}");
        }
    }
}
