//! Upgrades: what a client may switch its connection to.

use http::{HeaderValue, Version, header};
use pingora::http::RequestHeader;

/// Under these names HTTP itself goes on after the switch (RFC 9110, section 7.8, RFC 2817): requests would follow that
/// are neither routed nor inspected, and get past everything that a route says.
const HTTP_ITSELF: [&str; 3] = ["h2c", "HTTP", "TLS"];

/// The protocols that a request asks for, in its order, without those that may not pass; `None` when none is left. Only
/// HTTP/1.1 has upgrades.
pub(super) fn asked_for(request: &RequestHeader) -> Option<HeaderValue> {
    if request.version != Version::HTTP_11 {
        return None;
    }
    let values = request.headers.get_all(header::UPGRADE).iter();
    let protocols: Vec<&str> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|protocol| !protocol.is_empty() && !is_http(protocol))
        .collect();
    (!protocols.is_empty()).then(|| HeaderValue::try_from(protocols.join(", ")).ok()).flatten()
}

fn is_http(protocol: &str) -> bool {
    let name = protocol.split('/').next().unwrap_or_default().trim();
    HTTP_ITSELF.iter().any(|http| http.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(values: &[&str], version: Version) -> Option<String> {
        let mut request = RequestHeader::build("GET", b"/", None).unwrap();
        request.set_version(version);
        for value in values {
            request.append_header(header::UPGRADE, *value).unwrap();
        }
        asked_for(&request).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn every_protocol_passes_but_http() {
        for (values, expected) in [
            (&[] as &[_], None),
            (&["websocket"], Some("websocket")),
            (&["WebSocket , foo/2", "bar"], Some("WebSocket, foo/2, bar")),
            (&["h2c"], None),
            (&["H2C, HTTP/2.0, tls/1.2, HTTP /3, ,"], None),
            (&["h2c, foo"], Some("foo")),
            (&["h2c-like, httpx/1"], Some("h2c-like, httpx/1")),
        ] {
            assert_eq!(asked(values, Version::HTTP_11).as_deref(), expected, "{values:?}");
        }
        assert_eq!(asked(&["websocket"], Version::HTTP_10), None);
        assert_eq!(asked(&["websocket"], Version::HTTP_2), None);
    }
}
