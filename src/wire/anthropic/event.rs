//! One event of a streamed answer, told by its data's `type`.

use crate::wire::answer::Usage;
use crate::wire::json::{Cursor, JsonError, Kind, Span, Str};

/// What an event says. Spans point into the event's data.
#[derive(Clone, Debug)]
pub enum StreamEvent<'a> {
    /// `message_start`
    Start {
        /// The message's id.
        id: Option<Str<'a>>,
        /// The model that answers.
        model: Option<Str<'a>>,
        /// The figures known at the start.
        usage: Usage,
    },
    /// `content_block_start`
    BlockStart {
        /// The index (a number).
        index: Span,
        /// The block as it begins.
        block: Span,
    },
    /// `content_block_delta`
    Delta {
        /// The index (a number).
        index: Span,
        /// What is added.
        delta: Delta<'a>,
    },
    /// `content_block_stop`
    BlockStop {
        /// The index (a number).
        index: Span,
    },
    /// `message_delta`
    MessageDelta {
        /// Why the answer ends.
        stop_reason: Option<Str<'a>>,
        /// The figures at the end.
        usage: Usage,
        /// Where the usage object stands.
        usage_span: Option<Span>,
    },
    /// `message_stop`
    Stop,
    /// `ping`, or an event without data.
    Ping,
    /// `error`
    Error {
        /// The error's type.
        kind: Option<Str<'a>>,
        /// The error's message.
        message: Option<Str<'a>>,
    },
    /// A type that this version does not know.
    Unknown,
}

/// What a `content_block_delta` adds.
#[derive(Clone, Copy, Debug)]
pub enum Delta<'a> {
    /// `text_delta`
    Text(Str<'a>),
    /// `input_json_delta`
    Input(Str<'a>),
    /// `thinking_delta`
    Thinking(Str<'a>),
    /// `signature_delta`
    Signature(Str<'a>),
    /// `citations_delta`: the citation.
    Citation(Span),
    /// A type that this version does not know.
    Other,
}

/// Reads an event.
///
/// # Errors
/// When the data is not JSON, a member that matters is missing or doubled, or the event's name contradicts its type: two
/// readers of such an event could see two different things.
pub fn read<'a>(name: &[u8], data: &'a [u8]) -> Result<StreamEvent<'a>, JsonError> {
    if data.is_empty() {
        return Ok(StreamEvent::Ping);
    }
    let mut fields = Fields::default();
    Cursor::document(data, |cursor| cursor.object(|cursor, key| fields.member(cursor, key)))?;
    let kind = fields.kind.ok_or(JsonError { what: "an event without a type", offset: 0 })?;
    if !name.is_empty() && !kind.is(std::str::from_utf8(name).unwrap_or_default()) {
        return Err(JsonError { what: "the event's name and its type differ", offset: kind.span().start });
    }
    fields.event(kind)
}

#[derive(Default)]
struct Fields<'a> {
    kind: Option<Str<'a>>,
    index: Option<Span>,
    block: Option<Span>,
    delta: Option<Inner<'a>>,
    message: Option<Inner<'a>>,
    error: Option<Inner<'a>>,
    usage: Option<(Span, Usage)>,
}

/// The members of `message`, `delta` and `error` that are read.
#[derive(Default)]
struct Inner<'a> {
    kind: Option<Str<'a>>,
    id: Option<Str<'a>>,
    model: Option<Str<'a>>,
    text: Option<Str<'a>>,
    partial_json: Option<Str<'a>>,
    thinking: Option<Str<'a>>,
    signature: Option<Str<'a>>,
    citation: Option<Span>,
    stop_reason: Option<Str<'a>>,
    message: Option<Str<'a>>,
    usage: Option<Usage>,
}

impl<'a> Fields<'a> {
    fn member(&mut self, cursor: &mut Cursor<'a>, key: Str<'a>) -> Result<(), JsonError> {
        match key.raw() {
            b"type" => set(&mut self.kind, cursor.string()?, key),
            b"index" => {
                let index = number(cursor)?;
                set(&mut self.index, index, key)
            }
            b"content_block" => {
                let block = cursor.skip()?;
                set(&mut self.block, block, key)
            }
            b"delta" => inner(&mut self.delta, cursor, key),
            b"message" => inner(&mut self.message, cursor, key),
            b"error" => inner(&mut self.error, cursor, key),
            b"usage" => {
                let start = cursor.position();
                let figures = usage(cursor)?;
                set(&mut self.usage, (Span { start, end: cursor.offset() }, figures), key)
            }
            // A name with escapes could be any of the above to another reader.
            raw if raw.contains(&b'\\') => {
                Err(JsonError { what: "an escaped member name in an event", offset: key.span().start })
            }
            _ => cursor.skip().map(drop),
        }
    }

    fn event(&mut self, kind: Str<'a>) -> Result<StreamEvent<'a>, JsonError> {
        let missing = |what| JsonError { what, offset: 0 };
        let index = self.index.ok_or(missing("a block event without an index"));
        Ok(match kind.raw() {
            b"content_block_delta" => StreamEvent::Delta {
                index: index?,
                delta: self.delta.as_ref().ok_or(missing("a delta event without a delta"))?.delta(),
            },
            b"content_block_start" => StreamEvent::BlockStart {
                index: index?,
                block: self.block.ok_or(missing("a block start without a block"))?,
            },
            b"content_block_stop" => StreamEvent::BlockStop { index: index? },
            b"message_start" => {
                let message = self.message.as_mut().ok_or(missing("a message start without a message"))?;
                let usage = message.usage.take().unwrap_or_default();
                StreamEvent::Start { id: message.id, model: message.model, usage }
            }
            b"message_delta" => {
                let usage = self.usage.take();
                let (usage_span, usage) = usage.map_or((None, Usage::default()), |(at, usage)| (Some(at), usage));
                let stop_reason = self.delta.as_ref().and_then(|delta| delta.stop_reason);
                StreamEvent::MessageDelta { stop_reason, usage, usage_span }
            }
            b"message_stop" => StreamEvent::Stop,
            b"ping" => StreamEvent::Ping,
            b"error" => {
                let error = self.error.as_ref();
                StreamEvent::Error {
                    kind: error.and_then(|error| error.kind),
                    message: error.and_then(|error| error.message),
                }
            }
            _ => StreamEvent::Unknown,
        })
    }
}

impl<'a> Inner<'a> {
    fn delta(&self) -> Delta<'a> {
        let known = match self.kind.as_ref().map(Str::raw) {
            Some(b"text_delta") => self.text.map(Delta::Text),
            Some(b"input_json_delta") => self.partial_json.map(Delta::Input),
            Some(b"thinking_delta") => self.thinking.map(Delta::Thinking),
            Some(b"signature_delta") => self.signature.map(Delta::Signature),
            Some(b"citations_delta") => self.citation.map(Delta::Citation),
            _ => None,
        };
        known.unwrap_or(Delta::Other)
    }
}

/// Reads an object in place: it is large, and there is one in nearly every event.
fn inner<'a>(slot: &mut Option<Inner<'a>>, cursor: &mut Cursor<'a>, key: Str<'a>) -> Result<(), JsonError> {
    set(slot, Inner::default(), key)?;
    let (Some(inner), Kind::Object) = (slot, cursor.kind()?) else { return cursor.skip().map(drop) };
    cursor.object(|cursor, key| {
        let slot = match key.raw() {
            b"type" => &mut inner.kind,
            b"id" => &mut inner.id,
            b"model" => &mut inner.model,
            b"text" => &mut inner.text,
            b"partial_json" => &mut inner.partial_json,
            b"thinking" => &mut inner.thinking,
            b"signature" => &mut inner.signature,
            b"stop_reason" => &mut inner.stop_reason,
            b"message" => &mut inner.message,
            b"citation" => {
                let citation = cursor.skip()?;
                return set(&mut inner.citation, citation, key);
            }
            b"usage" => {
                let figures = usage(cursor)?;
                return set(&mut inner.usage, figures, key);
            }
            raw if raw.contains(&b'\\') => {
                return Err(JsonError { what: "an escaped member name in an event", offset: key.span().start });
            }
            _ => return cursor.skip().map(drop),
        };
        match cursor.string_or_skip()? {
            Some(string) => set(slot, string, key),
            None => Ok(()),
        }
    })?;
    Ok(())
}

/// Reads a usage object: its members as they stand.
pub(super) fn usage(cursor: &mut Cursor<'_>) -> Result<Usage, JsonError> {
    let mut usage = Usage::default();
    if cursor.kind()? != Kind::Object {
        cursor.skip()?;
        return Ok(usage);
    }
    cursor.object(|cursor, key| {
        let value = cursor.skip()?;
        usage.set(&key.decode(), bytes::Bytes::copy_from_slice(value.of(cursor.text())));
        Ok(())
    })?;
    Ok(usage)
}

fn number(cursor: &mut Cursor<'_>) -> Result<Span, JsonError> {
    if cursor.kind()? != Kind::Number {
        return Err(JsonError { what: "expected a number", offset: cursor.offset() });
    }
    cursor.skip()
}

fn set<T>(slot: &mut Option<T>, value: T, key: Str<'_>) -> Result<(), JsonError> {
    if slot.is_some() {
        return Err(JsonError { what: "a member of an event stands twice", offset: key.span().start });
    }
    *slot = Some(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_events_by_their_type() {
        let data = br#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"a\nb"}}"#;
        let StreamEvent::Delta { index, delta: Delta::Text(text) } = read(b"content_block_delta", data).unwrap() else {
            panic!("not a text delta");
        };
        assert_eq!((index.of(data), &*text.decode()), (&b"2"[..], "a\nb"));
        let data = br#"{"type":"message_delta","delta":{"stop_reason":"made_up_2099"},"usage":{"output_tokens":7}}"#;
        let StreamEvent::MessageDelta { stop_reason, usage, usage_span } = read(b"", data).unwrap() else {
            panic!("not a message delta");
        };
        assert!(stop_reason.unwrap().is("made_up_2099"));
        assert_eq!((usage.number("output_tokens"), usage_span.unwrap().of(data)), (7, &br#"{"output_tokens":7}"#[..]));
        assert!(matches!(read(b"new_event", br#"{"type":"new_event"}"#), Ok(StreamEvent::Unknown)));
    }

    #[test]
    fn an_event_that_two_readers_could_read_differently_is_refused() {
        for (name, data) in [
            ("ping", r#"{"type":"content_block_start","index":0,"content_block":{}}"#),
            ("", r#"{"type":"ping","type":"content_block_start"}"#),
            ("", r#"{"t\u0079pe":"content_block_start","type":"ping"}"#),
            ("", r#"{"index":0}"#),
            ("", r#"[]"#),
            ("", r#"{"type":"content_block_stop","index":"0"}"#),
        ] {
            assert!(read(name.as_bytes(), data.as_bytes()).is_err(), "{name} {data}");
        }
    }
}
