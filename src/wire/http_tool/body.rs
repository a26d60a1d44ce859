//! Bodies of requests, as far as they can be told in JSON.

use bytes::Bytes;
use http::{HeaderMap, header};

use crate::wire::json::{Cursor, Kind};

/// What a body says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// There is none.
    Empty,
    /// JSON text, as it was written.
    Json(Bytes),
    /// Any other text.
    Text(Bytes),
}

/// The kinds of content that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Text,
    /// Nothing says what it is.
    Unnamed,
}

/// Reads a body without its content coding.
///
/// 1. What is named as JSON is JSON. So is an object or array that is named as text, since servers may look at it as such; other
///    text is text.
/// 2. Without a media type only JSON is read.
/// 3. Forms (`application/x-www-form-urlencoded`, `multipart/form-data`) are not read: their fields would reach a policy in a
///    shape that its rules about JSON do not fit, and a client could choose them for that.
///
/// ```
/// use hookgate::wire::http_tool::{Content, read_body};
/// let mut headers = http::HeaderMap::new();
/// headers.insert("content-type", "application/json".parse().unwrap());
/// assert_eq!(read_body(&headers, &"{\"n\": 1.0}".into()), Ok(Content::Json("{\"n\": 1.0}".into())));
/// assert!(read_body(&headers, &"{".into()).is_err());
/// ```
///
/// # Errors
/// Why it cannot be told in JSON.
pub fn read_body(headers: &HeaderMap, body: &Bytes) -> Result<Content, String> {
    if body.is_empty() {
        return Ok(Content::Empty);
    }
    let form = form(headers)?;
    if std::str::from_utf8(body).is_err() {
        return Err("its body is no UTF-8".into());
    }
    let kind = Cursor::document(body, |cursor| {
        let kind = cursor.kind()?;
        cursor.skip()?;
        Ok(kind)
    });
    match (form, kind) {
        (Form::Json | Form::Unnamed, Ok(_)) | (Form::Text, Ok(Kind::Object | Kind::Array)) => {
            Ok(Content::Json(body.clone()))
        }
        (Form::Text, _) => Ok(Content::Text(body.clone())),
        (Form::Json, Err(error)) => Err(format!("its body is not the JSON that its content-type says: {error}")),
        (Form::Unnamed, Err(_)) => Err("its body has no content-type and is not JSON".into()),
    }
}

fn form(headers: &HeaderMap) -> Result<Form, String> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let value = match (types.next(), types.next()) {
        (None, _) => return Ok(Form::Unnamed),
        (Some(value), None) => value.to_str().unwrap_or_default().to_ascii_lowercase(),
        (Some(_), Some(_)) => return Err("it has the header content-type twice".into()),
    };
    let mut parts = value.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default();
    let charset = parts.find_map(|part| part.strip_prefix("charset=")).map(|charset| charset.trim_matches('"'));
    if let Some(charset) = charset.filter(|charset| !matches!(*charset, "utf-8" | "utf8" | "us-ascii")) {
        return Err(format!("its body is in the character set {charset:?}; UTF-8 can be read"));
    }
    match media.split_once('/') {
        Some((_, "json")) => Ok(Form::Json),
        Some((_, sub)) if sub.ends_with("+json") => Ok(Form::Json),
        Some(("text", _)) | Some(("application", "xml")) => Ok(Form::Text),
        Some((_, sub)) if sub.ends_with("+xml") => Ok(Form::Text),
        _ => Err(format!("its body is of the media type {media:?}; JSON and text can be read")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(media: &str, body: &'static [u8]) -> Result<Content, String> {
        let mut headers = HeaderMap::new();
        if !media.is_empty() {
            headers.insert(header::CONTENT_TYPE, media.parse().unwrap());
        }
        read_body(&headers, &Bytes::from_static(body))
    }

    #[test]
    fn json_and_text_are_read() {
        let json = |text: &'static str| Ok(Content::Json(text.into()));
        let text = |text: &'static str| Ok(Content::Text(text.into()));
        assert_eq!(read("application/json", b" {\"n\": 1.0} "), json(" {\"n\": 1.0} "));
        assert_eq!(read("Application/Problem+JSON; charset=\"UTF-8\"", b"1"), json("1"));
        assert_eq!(read("", b"null"), json("null"));
        assert_eq!(read("text/plain", b"{\"a\":1}"), json("{\"a\":1}"));
        assert_eq!(read("text/plain", b"true"), text("true"));
        assert_eq!(read("image/svg+xml", b"<svg/>"), text("<svg/>"));
        assert_eq!(read("multipart/form-data", b""), Ok(Content::Empty));
    }

    #[test]
    fn other_bodies_say_why_they_are_not() {
        for (media, body, says) in [
            ("application/json", &b"{"[..], "not the JSON"),
            ("application/json", b"\xef\xbb\xbf{}", "not the JSON"),
            ("application/json", b"{\"a\":\"\xff\"}", "UTF-8"),
            ("application/json; charset=utf-16", b"{}", "utf-16"),
            ("", b"a=1", "no content-type"),
            ("application/x-www-form-urlencoded", b"a=1", "x-www-form-urlencoded"),
            ("multipart/form-data; boundary=x", b"--x", "multipart"),
            ("application/octet-stream", b"{}", "octet-stream"),
            ("nonsense", b"{}", "nonsense"),
        ] {
            let error = read(media, body).unwrap_err();
            assert!(error.contains(says), "{media}: {error}");
        }
        let mut headers = HeaderMap::new();
        headers.append(header::CONTENT_TYPE, "application/json".parse().unwrap());
        headers.append(header::CONTENT_TYPE, "text/plain".parse().unwrap());
        assert!(read_body(&headers, &Bytes::from_static(b"{}")).unwrap_err().contains("twice"));
    }
}
