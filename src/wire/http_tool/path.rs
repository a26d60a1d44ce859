//! Paths that read one way only.

use std::ops::Range;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What a segment is written with: only letters that need no escape anywhere stay (RFC 3986, section 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a path, or a value for a part of it, could be read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AmbiguousPath(&'static str);

/// A path that every server takes apart alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPath {
    segments: Vec<Segment>,
}

/// What stands between two slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Where it stands in the path, in bytes.
    pub at: Range<usize>,
    /// Its text without escapes.
    pub text: String,
}

impl PlainPath {
    /// Takes a path (without its query) apart. A slash at the end is not looked at: most servers do not either.
    ///
    /// ```
    /// use hookgate::wire::http_tool::PlainPath;
    /// let path = PlainPath::read("/v1/charges/ch%5f1/").unwrap();
    /// assert_eq!(path.segments()[2].text, "ch_1");
    /// for ambiguous in ["/v1//x", "/v1/../x", "/v1/%2e%2e", "/v1/a%2fb", "/v1/a%5cb", "/v1/%252f", "/v1/a;b", "/v1/%ff", "v1"] {
    ///     assert!(PlainPath::read(ambiguous).is_err(), "{ambiguous}");
    /// }
    /// ```
    ///
    /// # Errors
    /// [`AmbiguousPath`]: it has an empty or a dot segment, a slash or backslash in disguise, an escape within an escape or a
    /// broken one, a parameter of a segment (`;`), a control character, or bytes that are no UTF-8.
    pub fn read(path: &str) -> Result<Self, AmbiguousPath> {
        let Some(rest) = path.strip_prefix('/') else {
            return Err(AmbiguousPath("the path does not start with a slash"));
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let mut segments = Vec::new();
        if path.len() == 1 {
            return Ok(PlainPath { segments });
        }
        let mut start = 1;
        for written in rest.split('/') {
            let at = start..start + written.len();
            start = at.end + 1;
            // Some servers take it for the start of parameters that are no part of the segment.
            if written.contains(';') {
                return Err(AmbiguousPath("the path has a \";\""));
            }
            segments.push(Segment { at, text: decode(written)? });
        }
        Ok(PlainPath { segments })
    }

    /// The segments in order; none for `/`.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

/// Writes a text as one segment, which nothing in it can leave.
///
/// # Errors
/// [`AmbiguousPath`]: some server could read it as something else than this segment's text.
pub(super) fn encode(text: &str) -> Result<String, AmbiguousPath> {
    check(text)?;
    Ok(utf8_percent_encode(text, ESCAPED).to_string())
}

fn decode(written: &str) -> Result<String, AmbiguousPath> {
    if has_broken_escape(written) {
        return Err(AmbiguousPath("the path has a broken percent escape"));
    }
    let text = percent_decode_str(written).decode_utf8();
    let text = text.map_err(|_| AmbiguousPath("the path has bytes that are no UTF-8"))?;
    check(&text)?;
    Ok(text.into_owned())
}

fn check(text: &str) -> Result<(), AmbiguousPath> {
    Err(AmbiguousPath(if text.is_empty() {
        "the path has an empty segment"
    } else if matches!(text, "." | "..") {
        "the path has a dot segment"
    } else if text.contains(['/', '\\']) {
        "a segment of the path has a slash or a backslash in it"
    } else if text.contains(char::is_control) {
        "the path has a control character"
    } else if has_escape(text) {
        "the path has an escape within an escape"
    } else {
        return Ok(());
    }))
}

/// Whether decoding would change the text.
fn has_escape(text: &str) -> bool {
    escapes(text).any(|is_whole| is_whole)
}

pub(super) fn has_broken_escape(text: &str) -> bool {
    escapes(text).any(|is_whole| !is_whole)
}

/// For each percent sign, whether two hexadecimal digits follow it.
fn escapes(text: &str) -> impl Iterator<Item = bool> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    text.split('%').skip(1).map(move |rest| is_digit(rest.as_bytes().first()) && is_digit(rest.as_bytes().get(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(path: &str) -> Result<Vec<String>, AmbiguousPath> {
        Ok(PlainPath::read(path)?.segments.into_iter().map(|segment| segment.text).collect())
    }

    #[test]
    fn segments_are_decoded_once_and_keep_their_places() {
        for (path, expected) in [
            ("/", &[][..]),
            ("/a", &["a"]),
            ("/a/", &["a"]),
            ("/a%20b/%C3%A9/100%25", &["a b", "é", "100%"]),
            ("/%61/...", &["a", "..."]),
        ] {
            assert_eq!(texts(path).unwrap(), expected, "{path}");
        }
        let path = "/v1/ch%201/refund/";
        let read = PlainPath::read(path).unwrap();
        let written: Vec<_> = read.segments().iter().map(|segment| &path[segment.at.clone()]).collect();
        assert_eq!(written, ["v1", "ch%201", "refund"]);
    }

    #[test]
    fn no_path_of_two_readings_is_read() {
        for path in [
            "",
            "a",
            "*",
            "//",
            "//a",
            "/a//",
            "/a//b",
            "/.",
            "/a/..",
            "/a/%2E%2e/b",
            "/%2e",
            "/a%2Fb",
            "/a%5Cb",
            "/a\\b",
            "/a%00",
            "/a%0d",
            "/%2541",
            "/%252e%252e",
            "/a%2",
            "/a%zz",
            "/%ff",
            "/..;/a",
            "/a;x=1/b",
        ] {
            assert!(texts(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_value_never_leaves_its_segment() {
        for value in ["", ".", "..", "a/b", "a\\b", "a\nb", "%2e%2e", "a%2Fb"] {
            assert!(encode(value).is_err(), "{value}");
        }
        for value in ["ch_1", "a b", "?x=1#y", "ü;&=+", "100%", "...", "%zz"] {
            let path = format!("/v1/{}/x", encode(value).unwrap());
            assert_eq!(texts(&path).unwrap(), ["v1", value, "x"], "{path}");
        }
    }
}
