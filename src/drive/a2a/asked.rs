//! What a request asks, once its body is read.

use bytes::Bytes;

use crate::wire::a2a::{Binding, Operation, Send, Surface};
use crate::wire::json::{Cursor, Kind as JsonKind, Span};
use crate::wire::jsonrpc::{
    INVALID_PARAMS, INVALID_REQUEST, Kind, METHOD_NOT_FOUND, Malformed, PARSE_ERROR, Payload, read,
};

/// What a request asks.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) what: What,
    pub(super) binding: Binding,
    /// The id of the JSON-RPC request as it was written.
    pub(super) id: Option<Bytes>,
}

#[derive(Debug)]
pub(super) enum What {
    /// A message for the agent. `stream`: the answer is to come as events.
    Send { send: Box<Send>, stream: bool },
    /// Something that delegates nothing. `task`: the task that it is about.
    Known { operation: Operation, task: Option<String> },
    /// Nobody can say whether it delegates something.
    Undecidable { why: String, code: i32 },
    /// Several requests in one.
    Batch,
}

impl Asked {
    /// Reads a request. `text` is its body without its content coding, or why that could not be undone.
    pub(super) fn read(surface: &Surface, path: &str, text: &Result<Bytes, String>) -> Self {
        let binding = if matches!(surface, Surface::Rest(_)) { Binding::Rest } else { Binding::Rpc };
        let undecidable = |why: &str, code| Asked { what: undecidable(why, code), binding, id: None };
        let text = match text {
            Ok(text) => text,
            Err(why) => return undecidable(why, INVALID_REQUEST),
        };
        match surface {
            Surface::Rest(operation) => Asked { what: rest(*operation, path, text), binding, id: None },
            Surface::Rpc => match read(text) {
                Ok(Payload::One(message)) => Asked {
                    id: message.id_text(text).map(|id| text.slice_ref(id)),
                    what: rpc(&message.kind, text),
                    binding,
                },
                Ok(Payload::Batch(_)) => Asked { what: What::Batch, binding, id: None },
                Err(why @ Malformed::Json(_)) => undecidable(&why.to_string(), PARSE_ERROR),
                Err(why) => undecidable(&why.to_string(), INVALID_REQUEST),
            },
            Surface::Card { .. } | Surface::Bodiless => {
                Asked { what: What::Known { operation: Operation::Other, task: None }, binding, id: None }
            }
        }
    }
}

fn undecidable(why: &str, code: i32) -> What {
    What::Undecidable { why: why.to_owned(), code }
}

fn rest(operation: Operation, path: &str, text: &Bytes) -> What {
    // A server may look at the body rather than at the path.
    if looks_like_rpc(text) {
        return undecidable("it is a request of JSON-RPC at a path of HTTP+JSON", INVALID_REQUEST);
    }
    match operation {
        Operation::Send { stream } => {
            let all = Span { start: 0, end: text.len() };
            match Send::read(text, all, Binding::Rest, None) {
                Ok(send) => What::Send { send: Box::new(send), stream },
                Err(why) => undecidable(&why, INVALID_PARAMS),
            }
        }
        operation => What::Known { operation, task: task_in(path).filter(|_| operation == Operation::Task) },
    }
}

/// Whether a body has what only envelopes have, or cannot be read far enough to tell.
fn looks_like_rpc(text: &[u8]) -> bool {
    if text.iter().all(u8::is_ascii_whitespace) {
        return false;
    }
    let mut is_rpc = false;
    let read = Cursor::document(text, |cursor| {
        if cursor.kind()? != JsonKind::Object {
            is_rpc = true;
            return cursor.skip();
        }
        cursor.object(|cursor, key| {
            is_rpc |= key.is("jsonrpc") || key.is("method");
            cursor.skip().map(drop)
        })
    });
    is_rpc || read.is_err()
}

/// The task that a path names.
fn task_in(path: &str) -> Option<String> {
    let last = path.trim_end_matches('/').rsplit('/').next()?;
    let id = last.rsplit_once(':').map_or(last, |(id, _)| id);
    Some(id.to_owned()).filter(|id| !id.is_empty())
}

fn rpc(kind: &Kind, text: &Bytes) -> What {
    // What has no id may be carried out all the same.
    let (Kind::Request { method, params } | Kind::Notification { method, params }) = kind else {
        return undecidable("it is an answer, not a request", INVALID_REQUEST);
    };
    match Operation::of_method(method) {
        Some((Operation::Send { stream }, revision)) => {
            let params = params.ok_or_else(|| "it has no parameters".to_owned());
            match params.and_then(|params| Send::read(text, params, Binding::Rpc, Some(revision))) {
                Ok(send) => What::Send { send: Box::new(send), stream },
                Err(why) => undecidable(&why, INVALID_PARAMS),
            }
        }
        Some((operation, _)) => {
            let task = params.and_then(|params| crate::drive::results::string_at(params.of(text), "/id"));
            What::Known { operation, task }
        }
        None => undecidable("hookgate does not know its method", METHOD_NOT_FOUND),
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn asked(method: Method, path: &str, body: &str) -> Asked {
        Asked::read(&Surface::of(&method, path), path, &Ok(Bytes::copy_from_slice(body.as_bytes())))
    }

    #[test]
    fn a_body_of_json_rpc_is_not_read_as_what_its_path_says() {
        let body =
            r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"parts":[{"text":"evil"}]}}}"#;
        for (path, body) in [
            ("/tasks/t:cancel", body),
            ("/message:send", r#"{"method":"message/send","message":{"parts":[{"text":"harmless"}]}}"#),
            ("/tasks/t:cancel", "[]"),
            ("/tasks/t:cancel", "{\"a\": NaN}"),
            ("/rpc", r#"{"message":{"parts":[{"text":"evil"}]}}"#),
            ("/message%3Bsend", r#"{"message":{"parts":[{"text":"evil"}]}}"#),
            ("/rpc", r#"{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{}}"#),
            ("/rpc", r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage"}"#),
            ("/rpc", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        ] {
            let what = asked(Method::POST, path, body).what;
            assert!(matches!(what, What::Undecidable { .. }), "{path} {body}: {what:?}");
        }
    }

    #[test]
    fn what_is_sent_without_an_id_is_a_message_too() {
        let body = r#"{"jsonrpc":"2.0","method":"SendMessage","params":{"message":{"parts":[{"text":"hi"}]}}}"#;
        let asked = asked(Method::POST, "/", body);
        assert!(matches!(&asked.what, What::Send { send, stream: false } if send.prompt == "hi"), "{asked:?}");
        assert_eq!(asked.id, None);
    }

    #[test]
    fn a_task_is_named_by_the_path_or_by_the_parameters() {
        for (method, path, body) in [
            (Method::GET, "/tasks/t-1", ""),
            (Method::POST, "/acme/tasks/t-1:cancel", "{}"),
            (Method::POST, "/acme/tasks/t-1:subscribe", " "),
            (Method::POST, "/", r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t-1"}}"#),
        ] {
            let what = asked(method, path, body).what;
            let is_named = matches!(&what, What::Known { operation: Operation::Task, task: Some(id) } if id == "t-1");
            assert!(is_named, "{path} {body}: {what:?}");
        }
    }
}
