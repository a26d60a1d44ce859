//! What a server answers to `tools/call`, and what hookgate answers in its place.

use bytes::Bytes;

use crate::id::{Digest, Hasher};
use crate::wire::json::{Cursor, Edits, Kind, Span, Str, quote_into};
use crate::wire::jsonrpc;

/// What an answer to a call says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolAnswer {
    /// The tool is done.
    Complete {
        /// It failed.
        failed: bool,
    },
    /// The server wants to know something first, and the client will call again with this state.
    InputRequired(Option<Digest>),
    /// It goes on as a task of this id.
    Task(String),
}

/// Reads the `result` of an answer to `tools/call`, or of what stands for it.
///
/// ```
/// use hookgate::wire::mcp::{ToolAnswer, read_answer};
/// assert_eq!(read_answer(br#"{"content": [], "isError": true}"#), ToolAnswer::Complete { failed: true });
/// assert_eq!(read_answer(br#"{"resultType": "task", "taskId": "t"}"#), ToolAnswer::Task("t".into()));
/// assert_eq!(read_answer(br#"{"task": {"taskId": "t"}}"#), ToolAnswer::Task("t".into()));
/// ```
pub fn read_answer(result: &[u8]) -> ToolAnswer {
    let [mut kind, mut failed, mut state, mut task, mut task_id] = [None; 5];
    let mut cursor = Cursor::new(result);
    if cursor.kind() == Ok(Kind::Object) {
        // What is not JSON is a result like any other: nothing is decided by it.
        let _ = cursor.object(|cursor, key| {
            let value = cursor.skip()?;
            let slot = match &*key.bytes() {
                b"resultType" => &mut kind,
                b"isError" => &mut failed,
                b"requestState" => &mut state,
                b"task" => &mut task,
                b"taskId" => &mut task_id,
                _ => return Ok(()),
            };
            *slot = Some(value);
            Ok(())
        });
    }
    let string = |span: Span| Str::at(result, span).decode().into_owned();
    let kind = kind.filter(|kind| kind.of(result).starts_with(b"\"")).map(string);
    // The experimental tasks of 2025-11-25 nest what the modern ones have beside the kind of result.
    let nested = task.and_then(|task| task_id_in(task.of(result)));
    let own = task_id.filter(|id| id.of(result).starts_with(b"\"")).map(string);
    match (kind.as_deref(), nested, own) {
        (Some("input_required"), _, _) => {
            ToolAnswer::InputRequired(state.map(|state| Hasher::new().with(b"state").with(state.of(result)).finish()))
        }
        (Some("task"), _, Some(id)) | (None, Some(id), _) => ToolAnswer::Task(id),
        _ => ToolAnswer::Complete { failed: failed.is_some_and(|failed| failed.of(result) == b"true") },
    }
}

fn task_id_in(task: &[u8]) -> Option<String> {
    let id = crate::wire::json::pointer(task, "/taskId").ok()??;
    id.of(task).starts_with(b"\"").then(|| Str::at(task, id).decode().into_owned())
}

/// The answer to a call that is refused: a result that the model reads as the tool's failure.
///
/// ```
/// let body = hookgate::wire::mcp::denied(b"\"q-1\"", "not here", true);
/// assert_eq!(
///     body,
///     r#"{"jsonrpc":"2.0","id":"q-1","result":{"content":[{"type":"text","text":"not here"}],"isError":true,"resultType":"complete"}}"#
/// );
/// ```
pub fn denied(id: &[u8], reason: &str, modern: bool) -> Bytes {
    let mut result = b"{\"content\":[".to_vec();
    text_block(&mut result, reason);
    result.extend_from_slice(b"],\"isError\":true");
    if modern {
        result.extend_from_slice(b",\"resultType\":\"complete\"");
    }
    result.push(b'}');
    jsonrpc::result(id, &result)
}

/// The edits that add a text to the content of a result at `span`. Without content there is none to add to.
pub fn add_text(text: &[u8], span: Span, added: &str, edits: &mut Edits) {
    let Ok(Some(content)) = crate::wire::json::pointer(span.of(text), "/content") else { return };
    let inner = content.of(span.of(text));
    if !inner.starts_with(b"[") {
        return;
    }
    let is_empty = Cursor::new(inner).array(|_| Err(crate::wire::json::JsonError { what: "", offset: 0 })).is_ok();
    let mut block = if is_empty { Vec::new() } else { vec![b','] };
    text_block(&mut block, added);
    edits.insert(span.start + content.end - 1, block);
}

fn text_block(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
    quote_into(out, text);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_added_behind_the_others() {
        for (before, after) in [
            (r#"{"content":[]}"#, r#"{"content":[{"type":"text","text":"x"}]}"#),
            (r#"{"content": [ {"a":1} ],"b":2}"#, r#"{"content": [ {"a":1} ,{"type":"text","text":"x"}],"b":2}"#),
            (r#"{"b":2}"#, r#"{"b":2}"#),
        ] {
            let text = Bytes::from(format!("[{before}]"));
            let mut edits = Edits::default();
            add_text(&text, Span { start: 1, end: text.len() - 1 }, "x", &mut edits);
            assert_eq!(edits.apply(&text).to_bytes(), format!("[{after}]"));
        }
    }

    #[test]
    fn results_are_told_apart() {
        let complete = |failed| ToolAnswer::Complete { failed };
        for (text, expected) in [
            (r#"{"content":[]}"#, complete(false)),
            (r#"{"content":[],"isError":false,"resultType":"complete"}"#, complete(false)),
            (r#"{"isError":true}"#, complete(true)),
            (r#"{"resultType":"new kind","isError":true}"#, complete(true)),
            (r#"{"resultType":"input_required","inputRequests":{}}"#, ToolAnswer::InputRequired(None)),
            ("[]", complete(false)),
            (r#"{"task":{}}"#, complete(false)),
        ] {
            assert_eq!(read_answer(text.as_bytes()), expected, "{text}");
        }
        let state = |text: &str| match read_answer(text.as_bytes()) {
            ToolAnswer::InputRequired(state) => state.unwrap(),
            other => panic!("{other:?}"),
        };
        let asked = state(r#"{"requestState":"s","resultType":"input_required"}"#);
        let again = r#"[{"name":"t","requestState":"s","inputResponses":{}}]"#;
        let span = Span { start: 1, end: again.len() - 1 };
        assert_eq!(super::super::CallParams::read(again.as_bytes(), span).unwrap().state, Some(asked));
    }
}
