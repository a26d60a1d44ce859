//! Which readings a request path has, so that none of them is overlooked.
//!
//! hookgate chooses a route by the path's bytes, but the server behind it may decode escapes, merge slashes, take a
//! backslash for a slash or resolve dot segments. A path is only routed when all these readings agree.

use std::borrow::Cow;

/// Escapes within escapes are followed this deep; a path that is still not plain then is refused.
const MAX_DECODINGS: usize = 3;

/// Why a path is refused, for the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ambiguous(pub(super) &'static str);

/// The other readings of `path` (without its query), each as plain as a server could make it. Empty for a path that
/// reads one way only.
///
/// # Errors
/// The path has a reading that leaves its own prefix, or none at all.
pub(super) fn readings(path: &str) -> Result<Vec<String>, Ambiguous> {
    if !path.starts_with('/') {
        return Err(Ambiguous("the request path does not start with a slash"));
    }
    let mut readings = Vec::new();
    let mut current = Cow::Borrowed(path);
    for _ in 0..=MAX_DECODINGS {
        let plain = plain(&current)?;
        if plain != path && readings.last() != Some(&plain) {
            readings.push(plain);
        }
        match decode(&current)? {
            Cow::Borrowed(_) => return Ok(readings),
            Cow::Owned(decoded) => current = Cow::Owned(decoded),
        }
    }
    Err(Ambiguous("the request path is escaped too many times"))
}

/// Slashes of every kind merged into one; dot segments refused rather than resolved.
fn plain(path: &str) -> Result<String, Ambiguous> {
    let mut plain = String::with_capacity(path.len());
    for segment in path.split(['/', '\\']).filter(|segment| !segment.is_empty()) {
        // Some servers cut `;parameters` off a segment before they resolve it.
        if matches!(segment.split(';').next(), Some("." | "..")) {
            return Err(Ambiguous("the request path has a dot segment"));
        }
        plain.push('/');
        plain.push_str(segment);
    }
    if plain.is_empty() || path.ends_with(['/', '\\']) {
        plain.push('/');
    }
    Ok(plain)
}

/// Percent escapes decoded once; borrowed when there are none.
fn decode(path: &str) -> Result<Cow<'_, str>, Ambiguous> {
    if !path.contains('%') {
        return match path.bytes().any(|byte| byte.is_ascii_control()) {
            true => Err(Ambiguous("the request path has a control character")),
            false => Ok(Cow::Borrowed(path)),
        };
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(bytes.next()), digit(bytes.next())) {
            (Some(high), Some(low)) => decoded.push((high * 16 + low) as u8),
            _ => return Err(Ambiguous("the request path has a broken percent escape")),
        }
    }
    // Bytes that are no UTF-8 are names in another encoding; they are neither slashes nor dots.
    Ok(Cow::Owned(String::from_utf8(decoded).unwrap_or_else(|error| {
        error.into_bytes().iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\u{fffd}' }).collect()
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_paths_read_one_way() {
        for path in ["/", "/v1/messages", "/v1beta/models/gemini-2:generateContent", "/a.b/..c/...", "/v1/x;y=1/"] {
            assert_eq!(readings(path), Ok(vec![]), "{path}");
        }
    }

    #[test]
    fn escapes_and_slashes_add_readings() {
        let table: [(&str, &[&str]); 6] = [
            ("/%61pi/v1", &["/api/v1"]),
            ("/a%2Fb", &["/a/b"]),
            ("/a%252fb", &["/a%2fb", "/a/b"]),
            ("//a/b", &["/a/b"]),
            ("/a\\b", &["/a/b"]),
            ("/caf%C3%A9", &["/café"]),
        ];
        for (path, expected) in table {
            assert_eq!(readings(path).unwrap(), expected, "{path}");
        }
    }

    #[test]
    fn no_reading_leaves_its_prefix() {
        for path in [
            "/a/../b",
            "/a/./b",
            "/a/..",
            "/a/%2e%2e/b",
            "/a/%2E./b",
            "/a/..%2fb",
            "/a%2f..%2fb",
            "/a/%252e%252e/b",
            "/a\\..\\b",
            "/a/..%5cb",
            "/a/..;/b",
            "/a/..;x=1/b",
            "/a/%2e%2e;/b",
        ] {
            assert_eq!(readings(path), Err(Ambiguous("the request path has a dot segment")), "{path}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for path in ["*", "a/b", "/a%2", "/a%zz", "/a%", "/a%00b", "/a%0ab", "/a%25252525252541"] {
            assert!(readings(path).is_err(), "{path}");
        }
    }
}
