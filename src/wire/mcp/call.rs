//! The parameters of `tools/call`.

use bytes::Bytes;

use crate::id::{Digest, Hasher};
use crate::wire::json::{Cursor, Edits, Kind, Span, Str};

/// The parameters of a call, as spans of the text that they were read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallParams {
    /// The tool's name.
    pub name: String,
    /// `arguments`, if there are any.
    pub arguments: Option<Span>,
    /// `_meta`.
    pub meta: Option<Span>,
    /// What the server gave the client to come back with, when the call goes on from an earlier round.
    pub state: Option<Digest>,
    /// Whether the call goes on from an earlier round, which asked for input.
    pub goes_on: bool,
    /// Where an argument can be put in: behind the opening brace of the parameters.
    inside: usize,
    is_empty: bool,
}

impl CallParams {
    /// Reads the parameters at `span`.
    ///
    /// ```
    /// use hookgate::wire::json::Span;
    /// use hookgate::wire::mcp::CallParams;
    /// let text = br#"{"name": "read", "arguments": {"path": "a"}}"#;
    /// let call = CallParams::read(text, Span { start: 0, end: text.len() }).unwrap();
    /// assert_eq!((&*call.name, call.arguments.unwrap().of(text)), ("read", &br#"{"path": "a"}"#[..]));
    /// ```
    ///
    /// # Errors
    /// What is wrong: they are no object, have no name, or have a member twice that is read here.
    pub fn read(text: &[u8], span: Span) -> Result<Self, &'static str> {
        let inner = span.of(text);
        let mut cursor = Cursor::new(inner);
        if cursor.kind() != Ok(Kind::Object) {
            return Err("the parameters are not an object");
        }
        let [mut name, mut arguments, mut meta, mut state, mut responses] = [None; 5];
        let (mut members, mut twice) = (0, false);
        let object = cursor.object(|cursor, key| {
            members += 1;
            let value = cursor.skip()?;
            let slot = match &*key.bytes() {
                b"name" => &mut name,
                b"arguments" => &mut arguments,
                b"_meta" => &mut meta,
                b"requestState" => &mut state,
                b"inputResponses" => &mut responses,
                _ => return Ok(()),
            };
            twice |= slot.replace(value).is_some();
            Ok(())
        });
        let object = object.map_err(|_| "the parameters are not JSON")?;
        if twice {
            return Err("the parameters have a member twice");
        }
        let name: Span = name.ok_or("the tool's name is missing")?;
        if !name.of(inner).starts_with(b"\"") {
            return Err("the tool's name is not a string");
        }
        let at = |found: Span| Span { start: found.start + span.start, end: found.end + span.start };
        // An explicit null is no object that a tool could get, and no handler could say what it means.
        if arguments.is_some_and(|arguments| !arguments.of(inner).starts_with(b"{")) {
            return Err("the arguments are not an object");
        }
        Ok(CallParams {
            name: Str::at(inner, name).decode().into_owned(),
            arguments: arguments.map(at),
            meta: meta.map(at),
            state: state.map(|state| Hasher::new().with(b"state").with(state.of(inner)).finish()),
            goes_on: state.is_some() || responses.is_some(),
            inside: span.start + object.start + 1,
            is_empty: members == 0,
        })
    }

    /// The arguments' text; a call without any has none to give, which is the empty object.
    pub fn input(&self, text: &Bytes) -> Bytes {
        self.arguments.map_or(Bytes::from_static(b"{}"), |span| text.slice(span.start..span.end))
    }

    /// Puts other arguments in.
    pub fn replace_input(&self, input: &Bytes, edits: &mut Edits) {
        match self.arguments {
            Some(span) => edits.replace(span, input.clone()),
            None => {
                let comma: &[u8] = if self.is_empty { b"" } else { b"," };
                edits.insert(self.inside, [b"\"arguments\":", &**input, comma].concat());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CallParams, &'static str> {
        let text = format!("[{text}]");
        CallParams::read(text.as_bytes(), Span { start: 1, end: text.len() - 1 })
    }

    #[test]
    fn other_arguments_take_the_place_of_the_old_ones() {
        for (before, after) in [
            (r#"{"name":"a", "arguments": {"x": 1}, "_meta":{}}"#, r#"{"name":"a", "arguments": {"y":2}, "_meta":{}}"#),
            (r#"{"name":"a"}"#, r#"{"arguments":{"y":2},"name":"a"}"#),
        ] {
            let text = Bytes::from(format!("[{before}]"));
            let call = read(before).unwrap();
            let mut edits = Edits::default();
            call.replace_input(&Bytes::from_static(br#"{"y":2}"#), &mut edits);
            assert_eq!(edits.apply(&text).to_bytes(), format!("[{after}]"));
        }
    }

    #[test]
    fn what_is_no_call_says_why() {
        for (text, says) in [
            ("[]", "not an object"),
            ("{}", "missing"),
            (r#"{"name":1}"#, "not a string"),
            (r#"{"name":"a","n\u0061me":"b"}"#, "twice"),
            (r#"{"name":"a","arguments":{},"arguments":{}}"#, "twice"),
            (r#"{"name":"a","arguments":null}"#, "not an object"),
            (r#"{"name":"a","arguments":[]}"#, "not an object"),
        ] {
            assert!(read(text).unwrap_err().contains(says), "{text}");
        }
    }

    #[test]
    fn rounds_are_told_apart_by_their_state() {
        let first = read(r#"{"name":"a"}"#).unwrap();
        let second = read(r#"{"name":"a","requestState":"s1","inputResponses":{}}"#).unwrap();
        let third = read(r#"{"name":"a","requestState":"s2"}"#).unwrap();
        assert!(!first.goes_on && second.goes_on && third.goes_on);
        assert!(first.state.is_none() && second.state != third.state);
    }
}
