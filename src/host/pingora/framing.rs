//! Requests whose framing two servers could read differently. They are refused: what one server takes for a body, the
//! next one takes for a request.

use http::{HeaderMap, Version, header};

/// Why the framing is refused. `raw`: the head as it came, since pingora drops `content-length` beside
/// `transfer-encoding` before anybody sees it. HTTP/2 frames by itself and forbids both at once.
pub(super) fn objection(
    version: Version,
    headers: &HeaderMap,
    raw: impl FnOnce() -> bytes::Bytes,
) -> Option<&'static str> {
    if version == Version::HTTP_2 || !headers.contains_key(header::TRANSFER_ENCODING) {
        return None;
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let only = codings.next().is_some_and(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    if !only || codings.next().is_some() {
        return Some("the request's transfer-encoding is not exactly \"chunked\"");
    }
    has_content_length(&raw()).then_some("the request has both content-length and transfer-encoding")
}

fn has_content_length(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        name.trim_ascii().eq_ignore_ascii_case(b"content-length")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(codings: &[&str], raw: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        for coding in codings {
            headers.append(header::TRANSFER_ENCODING, coding.parse().unwrap());
        }
        objection(Version::HTTP_11, &headers, || raw.into()).is_some()
    }

    #[test]
    fn one_way_to_read_it_is_fine() {
        assert!(!judged(&[], "POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\n"));
        assert!(!judged(&["chunked"], "POST /content-length: HTTP/1.1\r\nx: content-length: 3\r\n\r\n"));
        assert!(!judged(&[" Chunked "], "POST / HTTP/1.1\r\nx-content-length: 3\r\n\r\n"));
    }

    #[test]
    fn two_ways_are_not() {
        assert!(judged(&["chunked"], "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n"));
        assert!(judged(&["chunked"], "POST / HTTP/1.1\ncontent-length : 3\n\n"));
        for codings in
            [&["gzip, chunked"] as &[_], &["chunked, identity"], &["chunked", "chunked"], &["xchunked"], &[""]]
        {
            assert!(judged(codings, ""), "{codings:?}");
        }
    }
}
