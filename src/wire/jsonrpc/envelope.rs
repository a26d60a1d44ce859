//! Reading envelopes.

use crate::wire::json::{Cursor, JsonError, Kind as JsonKind, Span};

/// The most messages that one batch may have.
const MAX_BATCH: usize = 1_000;

/// One message, as spans of the text that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// All of it.
    pub span: Span,
    /// Its `id`, unless that is missing. The text is kept: `1` and `"1"` are two ids.
    pub id: Option<Span>,
    /// What it is.
    pub kind: Kind,
}

/// What a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something is asked: it has a method and an id.
    Request {
        /// The method.
        method: String,
        /// `params`, if there are any.
        params: Option<Span>,
    },
    /// Something is told: it has a method and no id.
    Notification {
        /// The method.
        method: String,
        /// `params`, if there are any.
        params: Option<Span>,
    },
    /// An answer that is good.
    Result(Span),
    /// An answer that is an error.
    Error(Span),
}

/// What a body holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// One message.
    One(Envelope),
    /// Several, in an array; never none.
    Batch(Vec<Envelope>),
}

/// Why a text is no JSON-RPC message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    Json(#[from] JsonError),
    /// It is JSON, and no message. What is wrong, in a few words.
    #[error("{0}")]
    Envelope(String),
}

/// Reads one message or a batch.
///
/// ```
/// use hookgate::wire::jsonrpc::{Kind, Payload, read};
/// let text = br#"{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": "x"}}"#;
/// let Ok(Payload::One(message)) = read(text) else { panic!() };
/// assert_eq!(message.id.unwrap().of(text), b"\"a\"");
/// assert!(matches!(message.kind, Kind::Request { method, .. } if method == "tools/call"));
/// assert!(read(br#"{"jsonrpc": "2.0", "method": "a", "method": "b"}"#).is_err());
/// ```
///
/// # Errors
/// [`Malformed`]: the text is not JSON, has no or no known form of a message, has a member of the envelope twice, or is a
/// batch of none or of more than 1,000.
pub fn read(text: &[u8]) -> Result<Payload, Malformed> {
    let mut wrong = None;
    let payload = Cursor::document(text, |cursor| {
        if cursor.kind()? != JsonKind::Array {
            return Ok(one(cursor, &mut wrong)?.map(Payload::One));
        }
        let mut messages = Vec::new();
        cursor.array(|cursor| {
            messages.extend(one(cursor, &mut wrong)?);
            if messages.len() > MAX_BATCH {
                wrong.get_or_insert_with(|| format!("a batch may have {MAX_BATCH} messages"));
                messages.clear();
            }
            Ok(())
        })?;
        if messages.is_empty() {
            wrong.get_or_insert_with(|| "the batch is empty".to_owned());
        }
        Ok(Some(Payload::Batch(messages)))
    })?;
    match (payload, wrong) {
        (Some(payload), None) => Ok(payload),
        (_, wrong) => Err(Malformed::Envelope(wrong.unwrap_or_default())),
    }
}

/// The members of an envelope, where they stand.
#[derive(Default)]
struct Members {
    version: Option<Span>,
    id: Option<Span>,
    method: Option<String>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
}

/// Reads one message; what is wrong with it goes into `wrong`, so that broken JSON behind it is still seen as such.
fn one(cursor: &mut Cursor<'_>, wrong: &mut Option<String>) -> Result<Option<Envelope>, JsonError> {
    if cursor.kind()? != JsonKind::Object {
        cursor.skip()?;
        wrong.get_or_insert_with(|| "a message is a JSON object".to_owned());
        return Ok(None);
    }
    let mut members = Members::default();
    let span = cursor.object(|cursor, key| {
        let slot = if key.is("method") {
            if members.method.is_some() {
                wrong.get_or_insert_with(|| "it has the member \"method\" twice".to_owned());
            }
            let method = cursor.string_or_skip()?;
            if method.is_none() {
                wrong.get_or_insert_with(|| "its method is not a string".to_owned());
            }
            members.method = Some(method.map_or_else(String::new, |method| method.decode().into_owned()));
            return Ok(());
        } else if key.is("jsonrpc") {
            &mut members.version
        } else if key.is("id") {
            &mut members.id
        } else if key.is("params") {
            &mut members.params
        } else if key.is("result") {
            &mut members.result
        } else if key.is("error") {
            &mut members.error
        } else {
            cursor.skip()?;
            return Ok(());
        };
        if slot.replace(cursor.skip()?).is_some() {
            wrong.get_or_insert_with(|| format!("it has the member {:?} twice", key.decode()));
        }
        Ok(())
    })?;
    match members.envelope(cursor.text(), span) {
        Ok(envelope) => Ok(Some(envelope)),
        Err(what) => {
            wrong.get_or_insert_with(|| what.to_owned());
            Ok(None)
        }
    }
}

impl Members {
    fn envelope(self, text: &[u8], span: Span) -> Result<Envelope, &'static str> {
        if self.version.is_none_or(|version| version.of(text) != b"\"2.0\"") {
            return Err("its member jsonrpc is not \"2.0\"");
        }
        let id_is_fit = self.id.is_none_or(|id| matches!(id.of(text).first(), Some(b'"' | b'-' | b'0'..=b'9' | b'n')));
        if !id_is_fit {
            return Err("its id is neither a string nor a number");
        }
        let (id, params) = (self.id, self.params);
        let kind = match (self.method, self.result, self.error) {
            // `null` is what an id is that could not be read: nobody can be answered by it.
            (Some(_), None, None) if id.is_some_and(|id| id.of(text) == b"null") => {
                return Err("the id of a request is not null");
            }
            (Some(method), None, None) if id.is_some() => Kind::Request { method, params },
            (Some(method), None, None) => Kind::Notification { method, params },
            (None, Some(result), None) if id.is_some() => Kind::Result(result),
            (None, None, Some(error)) => Kind::Error(error),
            (Some(_), _, _) => return Err("it has a method and is an answer too"),
            (None, Some(_), Some(_)) => return Err("it has a result and an error"),
            (None, Some(_), None) => return Err("an answer needs an id"),
            (None, None, None) => return Err("it has no method, and is no answer"),
        };
        Ok(Envelope { span, id, kind })
    }
}

impl Envelope {
    /// The id as it was written.
    pub fn id_text<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.id.map(|id| id.of(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Result<Kind, String> {
        match read(text.as_bytes()) {
            Ok(Payload::One(envelope)) => Ok(envelope.kind),
            Ok(Payload::Batch(_)) => Err("a batch".into()),
            Err(malformed) => Err(malformed.to_string()),
        }
    }

    #[test]
    fn each_kind_of_message_is_told_from_the_others() {
        let asked = kind(r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#).unwrap();
        assert_eq!(asked, Kind::Request { method: "m".into(), params: None });
        let told = kind(r#"{"method":"\u006d","jsonrpc":"2.0","params":{}}"#).unwrap();
        assert!(matches!(told, Kind::Notification { method, params: Some(_) } if method == "m"));
        assert!(matches!(kind(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#), Ok(Kind::Result(_))));
        assert!(matches!(kind(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#), Ok(Kind::Error(_))));
        assert!(matches!(kind(r#"{"jsonrpc":"2.0","error":{}}"#), Ok(Kind::Error(_))));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_read() {
        for (text, says) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","meth\u006fd":"b"}"#, "\"method\" twice"),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, "\"id\" twice"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{},"params":{}}"#, "\"params\" twice"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","result":{}}"#, "an answer too"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "a result and an error"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#, "not null"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#, "neither a string nor a number"),
            (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, "not a string"),
            (r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#, "jsonrpc"),
            (r#"{"id":1,"method":"a"}"#, "jsonrpc"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "no method"),
            (r#""a""#, "a JSON object"),
            (r#"{"jsonrpc":"2.0""#, "not JSON"),
            ("", "not JSON"),
        ] {
            let wrong = kind(text).unwrap_err();
            assert!(wrong.contains(says), "{text}: {wrong}");
        }
    }

    #[test]
    fn batches_are_read_whole() {
        let text = br#" [{"jsonrpc":"2.0","id":1,"method":"a"}, {"jsonrpc":"2.0","method":"b"}]"#;
        let Ok(Payload::Batch(messages)) = read(text) else { panic!() };
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[1].span.of(text), br#"{"jsonrpc":"2.0","method":"b"}"#);
        assert!(read(b"[]").unwrap_err().to_string().contains("empty"));
        assert!(read(br#"[{"jsonrpc":"2.0","method":"b"}, 1]"#).is_err());
        let many = format!("[{}]", vec![r#"{"jsonrpc":"2.0","method":"b"}"#; MAX_BATCH + 1].join(","));
        assert!(read(many.as_bytes()).unwrap_err().to_string().contains("1000"));
    }
}
