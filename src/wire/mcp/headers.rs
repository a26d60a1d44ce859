//! What the modern revision says a second time in headers, and how the revisions are told apart.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// The header with the session of the legacy revisions. Its value is as good as a credential.
pub const SESSION: &str = "mcp-session-id";
/// The error code of a request whose headers and body differ.
pub const HEADER_MISMATCH: i32 = -32020;

const VERSION: &str = "mcp-protocol-version";
/// The first revision without sessions.
const FIRST_MODERN: &str = "2026-07-28";
/// The first revision without batches.
const FIRST_WITHOUT_BATCHES: &str = "2025-06-18";
/// The longest chain of properties that is looked into.
const MAX_DEPTH: usize = 32;

/// Which rules a request follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// With handshake and sessions.
    Legacy {
        /// A body may hold several messages.
        batches: bool,
    },
    /// Each request for itself.
    Modern,
}

impl Revision {
    /// Told by the header, which the first revision did not have yet.
    ///
    /// ```
    /// use hookgate::wire::mcp::Revision;
    /// let mut headers = http::HeaderMap::new();
    /// assert_eq!(Revision::of(&headers), Revision::Legacy { batches: true });
    /// headers.insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
    /// assert_eq!(Revision::of(&headers), Revision::Modern);
    /// ```
    pub fn of(headers: &HeaderMap) -> Self {
        // They are dates, and names of drafts that come after them all.
        match headers.get(VERSION).map(HeaderValue::as_bytes) {
            Some(version) if version >= FIRST_MODERN.as_bytes() => Revision::Modern,
            Some(version) => Revision::Legacy { batches: version < FIRST_WITHOUT_BATCHES.as_bytes() },
            None => Revision::Legacy { batches: true },
        }
    }
}

/// Where the headers of a modern request say something else than its body, which says `method` and, where there is one, the
/// `name` of what is called. `None`: nowhere.
pub fn mismatch(headers: &HeaderMap, method: &str, name: Option<&str>) -> Option<String> {
    let expected = [("mcp-method", Some(method)), ("mcp-name", name)];
    expected.into_iter().filter_map(|(header, said)| Some((header, said?))).find_map(|(header, said)| {
        let mut values = headers.get_all(header).iter();
        match (values.next(), values.next()) {
            (Some(value), None) if decode(value).as_deref() == Some(said) => None,
            (Some(_), None) => Some(format!("the header {header} and the body differ")),
            (Some(_), Some(_)) => Some(format!("the header {header} stands twice")),
            (None, _) => Some(format!("the header {header} is missing")),
        }
    })
}

/// A header that repeats an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Its name.
    pub name: HeaderName,
    /// Its value; `None`: the argument is not there, so it must not be there either.
    pub value: Option<HeaderValue>,
}

/// The headers that must repeat arguments, by the marks of the tool's schema.
///
/// ```
/// use hookgate::wire::mcp::mirrored;
/// let schema = br#"{"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}"#;
/// let headers = mirrored(schema, "{\"region\": \"Zürich\"}".as_bytes());
/// assert_eq!(headers[0].name, "mcp-param-region");
/// assert_eq!(headers[0].value.as_ref().unwrap(), "=?base64?WsO8cmljaA==?=");
/// ```
pub fn mirrored(schema: &[u8], input: &[u8]) -> Vec<Mirrored> {
    let mut found = Vec::new();
    if let (Ok(schema), Ok(input)) = (serde_json::from_slice(schema), serde_json::from_slice(input)) {
        collect(&schema, Some(&input), MAX_DEPTH, &mut found);
    }
    found
}

fn collect(schema: &Value, input: Option<&Value>, depth: usize, found: &mut Vec<Mirrored>) {
    let properties = schema.get("properties").and_then(Value::as_object).filter(|_| depth > 0);
    for (key, property) in properties.into_iter().flatten() {
        let value = input.and_then(|input| input.get(key));
        let name = property.get("x-mcp-header").and_then(Value::as_str);
        let name = name.and_then(|name| HeaderName::try_from(format!("mcp-param-{name}")).ok());
        found.extend(name.map(|name| Mirrored { name, value: value.and_then(encode) }));
        collect(property, value, depth - 1, found);
    }
}

/// A value as a header has it; nothing for `null` and for what cannot be mirrored.
fn encode(value: &Value) -> Option<HeaderValue> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let plain = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) && text.trim() == text;
    if plain && wrapped(&text).is_none() {
        return HeaderValue::from_str(&text).ok();
    }
    HeaderValue::from_str(&format!("=?base64?{}?=", BASE64_STANDARD.encode(text))).ok()
}

fn decode(value: &HeaderValue) -> Option<String> {
    let text = value.to_str().ok()?;
    match wrapped(text) {
        Some(inner) => String::from_utf8(BASE64_STANDARD.decode(inner).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

fn wrapped(text: &str) -> Option<&str> {
    text.strip_prefix("=?base64?")?.strip_suffix("?=")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn revisions_are_told_apart() {
        for (version, expected) in [
            ("2025-03-26", Revision::Legacy { batches: true }),
            ("2025-06-18", Revision::Legacy { batches: false }),
            ("2025-11-25", Revision::Legacy { batches: false }),
            ("2026-07-28", Revision::Modern),
            ("2027-01-01", Revision::Modern),
            ("DRAFT-2026-v1", Revision::Modern),
        ] {
            assert_eq!(Revision::of(&headers(&[(VERSION, version)])), expected, "{version}");
        }
    }

    #[test]
    fn headers_and_body_must_agree() {
        let good = headers(&[("mcp-method", "tools/call"), ("mcp-name", "=?base64?w6k=?=")]);
        assert_eq!(mismatch(&good, "tools/call", Some("é")), None);
        assert_eq!(mismatch(&good, "tools/list", None), Some("the header mcp-method and the body differ".into()));
        assert!(mismatch(&good, "tools/call", Some("e")).unwrap().contains("mcp-name"));
        let missing = headers(&[("mcp-method", "tools/call")]);
        assert!(mismatch(&missing, "tools/call", Some("e")).unwrap().contains("missing"));
        let mut twice = good.clone();
        twice.append("mcp-name", "x".parse().unwrap());
        assert!(mismatch(&twice, "tools/call", Some("é")).unwrap().contains("twice"));
    }

    #[test]
    fn arguments_are_mirrored_as_they_are_written() {
        let schema = br#"{"properties": {
            "s": {"x-mcp-header": "S"}, "n": {"x-mcp-header": "N"}, "b": {"x-mcp-header": "B"}, "none": {"x-mcp-header": "None"},
            "bad": {"x-mcp-header": "a b"}, "o": {"properties": {"in": {"x-mcp-header": "In"}}}}}"#;
        for (text, expected) in [
            ("plain", "plain"),
            ("two words", "two words"),
            (" led", "=?base64?IGxlZA==?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?x?=", "=?base64?PT9iYXNlNjQ/eD89?="),
            ("", ""),
        ] {
            let input = serde_json::json!({"s": text, "n": 42, "b": true, "none": null, "o": {"in": "x"}}).to_string();
            let found = mirrored(schema, input.as_bytes());
            let value = |name: &str| {
                let one = found.iter().find(|mirrored| mirrored.name == name).unwrap();
                one.value.as_ref().map(|value| value.to_str().unwrap())
            };
            assert_eq!(value("mcp-param-s"), Some(expected));
            assert_eq!((value("mcp-param-n"), value("mcp-param-b")), (Some("42"), Some("true")));
            assert_eq!((value("mcp-param-none"), value("mcp-param-in")), (None, Some("x")));
            assert_eq!(found.len(), 5);
        }
    }
}
