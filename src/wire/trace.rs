//! W3C Trace Context: where in a trace a request stands.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

/// The length of the fields that version 00 has, which later versions begin with too.
const LENGTH: usize = 55;

/// A valid `traceparent` value in the form of version 00: 55 characters, of which nothing but hexadecimal digits are a
/// client's choice.
///
/// ```
/// use hookgate::wire::trace::TraceParent;
/// let value = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// assert_eq!(TraceParent::parse(value.as_bytes()).unwrap().to_string(), value);
/// assert_eq!(TraceParent::parse(b"00-anything"), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TraceParent(Arc<str>);

impl TraceParent {
    /// Reads a request's headers; `None` when there is no value, more than one, or one that is not valid.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all("traceparent").iter();
        let value = values.next()?;
        values.next().is_none().then(|| Self::parse(value.as_bytes())).flatten()
    }

    /// Reads one value. Of a version after 00 the known fields are kept, as its readers are told to do.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let known = std::str::from_utf8(value.get(..LENGTH)?).ok()?;
        let mut fields = known.split('-');
        let (version, trace, parent, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let lengths = [version, trace, parent, flags].map(str::len);
        let hexadecimal = known.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'));
        let zero = |field: &str| field.bytes().all(|byte| byte == b'0');
        if lengths != [2, 32, 16, 2] || !hexadecimal || version == "ff" || zero(trace) || zero(parent) {
            return None;
        }
        match (version, value.get(LENGTH)) {
            ("00", None) => Some(TraceParent(known.into())),
            ("00", Some(_)) => None,
            (_, None | Some(b'-')) => {
                let sampled = u8::from_str_radix(flags, 16).ok()? & 1;
                Some(TraceParent(format!("00-{trace}-{parent}-0{sampled}").into()))
            }
            _ => None,
        }
    }

    /// The value for a request's header.
    pub fn header(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.0).ok()
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceParent").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";

    fn read(value: &str) -> Option<String> {
        TraceParent::parse(value.as_bytes()).map(|trace| trace.to_string())
    }

    #[test]
    fn valid_values_are_kept() {
        for flags in ["00", "01", "03", "ff"] {
            let value = format!("00-{TRACE}-{flags}");
            assert_eq!(read(&value), Some(value));
        }
        // Of later versions what is known.
        for (later, flags) in [("01", "03"), ("cc", "01-what-the-future-will-be-like")] {
            assert_eq!(read(&format!("{later}-{TRACE}-{flags}")), Some(format!("00-{TRACE}-01")));
        }
        assert_eq!(read(&format!("fe-{TRACE}-02")), Some(format!("00-{TRACE}-00")));
    }

    #[test]
    fn others_are_not() {
        for value in [
            "",
            "00",
            &format!("00-{TRACE}-1"),
            &format!("00-{TRACE}-01-more"),
            &format!("00-{TRACE}-01\t"),
            &format!("cc-{TRACE}-01.more"),
            &format!("ff-{TRACE}-01"),
            &format!("00-{}-01", TRACE.to_uppercase()),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47361-0f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(read(value), None, "{value}");
        }
    }

    #[test]
    fn only_one_value_says_where() {
        let mut headers = HeaderMap::new();
        assert_eq!(TraceParent::of(&headers), None);
        let value: HeaderValue = format!("00-{TRACE}-01").parse().unwrap();
        headers.append("traceparent", value.clone());
        assert_eq!(TraceParent::of(&headers).and_then(|trace| trace.header()), Some(value.clone()));
        headers.append("traceparent", value);
        assert_eq!(TraceParent::of(&headers), None);
    }
}
