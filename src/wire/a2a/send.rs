//! Messages to agents.

use bytes::Bytes;

use super::tree::{PARTS, elements, member, only_member, string, within};
use super::{Binding, Revision};
use crate::wire::json::{Edits, Inserts, Node, Span, Value, find_duplicate, parse_tree, quote, splice};

/// A message that is sent to an agent, as spans of the request's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Send {
    /// The task that it goes on with; `None`: it delegates something.
    pub task: Option<String>,
    /// The conversation that it belongs to.
    pub context: Option<String>,
    /// The name that its sender gave it.
    pub message: Option<String>,
    /// Its texts, joined by a newline.
    pub prompt: String,
    /// Whose names it is written with.
    pub revision: Revision,
    /// How it is put into HTTP.
    pub binding: Binding,
    /// The array of its parts, and each of them.
    list: Span,
    parts: Vec<Span>,
    /// Its texts, by the parts that they are in.
    texts: Vec<(usize, Span)>,
}

impl Send {
    /// Reads the parameters of a JSON-RPC request, whose method tells the revision, or the body of an HTTP+JSON one.
    ///
    /// ```
    /// use hookgate::wire::a2a::{Binding, Send};
    /// use hookgate::wire::json::Span;
    /// let text = br#"{"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Hi"}, {"text": "you"}]}}"#;
    /// let send = Send::read(text, Span { start: 0, end: text.len() }, Binding::Rest, None).unwrap();
    /// assert_eq!((send.prompt.as_str(), send.task), ("Hi\nyou", None));
    /// ```
    ///
    /// # Errors
    /// Not every reader would read it alike, or it is no message. What is wrong, in a few words.
    pub fn read(text: &[u8], params: Span, binding: Binding, revision: Option<Revision>) -> Result<Self, String> {
        let json = params.of(text);
        match find_duplicate(json) {
            Ok(None) => {}
            Ok(Some(duplicate)) => return Err(format!("it has the member {:?} twice", duplicate.name)),
            Err(error) => return Err(format!("it is not JSON: {error}")),
        }
        let tree = parse_tree(json).map_err(|error| format!("it is not JSON: {error}"))?;
        let (message, named_request) = match binding {
            Binding::Rpc => (member(&tree, &["message"]), false),
            // Protobuf calls it `request` in 0.3.
            Binding::Rest => (only_member(&tree, &["message", "request"])?, member(&tree, &["request"]).is_some()),
        };
        let message = message.filter(|message| matches!(message.value, Value::Object(_)));
        let message = message.ok_or("it has no message")?;
        let list = only_member(message, PARTS)?.filter(|list| matches!(list.value, Value::Array(_)));
        let list = list.ok_or("its message has no parts")?;
        let of_0_3 = named_request || member(message, &["content"]).is_some();
        let (mut parts, mut texts, mut prompt) = (Vec::new(), Vec::new(), Vec::new());
        for (index, part) in elements(list).iter().enumerate() {
            if !matches!(part.value, Value::Object(_)) {
                return Err("a part of its message is not an object".to_owned());
            }
            parts.push(within(params.start, part.span));
            let Some(text) = member(part, &["text"]) else { continue };
            prompt.push(string(text).ok_or("a text of its message is not a string")?);
            texts.push((index, within(params.start, text.span)));
        }
        Ok(Send {
            task: id(message, &["taskId", "task_id"])?,
            context: id(message, &["contextId", "context_id"])?,
            message: id(message, &["messageId", "message_id"])?,
            prompt: prompt.join("\n"),
            revision: revision.unwrap_or(if of_0_3 { Revision::V0_3 } else { Revision::V1 }),
            binding,
            list: within(params.start, list.span),
            parts,
            texts,
        })
    }

    /// Puts another text in the place of all texts; parts of other kinds stay.
    pub fn replace_prompt(&self, prompt: &str, edits: &mut Edits) {
        let Some(((_, first), others)) = self.texts.split_first() else {
            return self.add_text(prompt, edits);
        };
        edits.replace(*first, quote(prompt));
        let mut drop = vec![false; self.parts.len()];
        for (part, _) in others {
            drop.get_mut(*part).into_iter().for_each(|drop| *drop = true);
        }
        splice(edits, &self.parts, &drop, Inserts::default());
    }

    /// Adds to the end of the last text.
    pub fn append_to_prompt(&self, text: &str, edits: &mut Edits) {
        match self.texts.last() {
            Some((_, last)) => edits.insert(last.end - 1, Bytes::from(unquoted(text))),
            None => self.add_text(text, edits),
        }
    }

    /// A text in front of what has none.
    fn add_text(&self, text: &str, edits: &mut Edits) {
        let kind = match (self.revision, self.binding) {
            (Revision::V0_3, Binding::Rpc) => "\"kind\":\"text\",",
            _ => "",
        };
        let comma = if self.parts.is_empty() { "" } else { "," };
        edits.insert(self.list.start + 1, format!("{{{kind}\"text\":{}}}{comma}", quote(text)));
    }
}

/// The name of something; in Protobuf an empty one is none.
fn id(message: &Node<'_>, names: &[&str]) -> Result<Option<String>, String> {
    let Some(id) = only_member(message, names)? else { return Ok(None) };
    let id = string(id).ok_or_else(|| format!("its {} is not a string", names.join(" or ")))?;
    Ok(Some(id.into_owned()).filter(|id| !id.is_empty()))
}

/// As it stands between the quotes of a JSON string.
fn unquoted(text: &str) -> String {
    let quoted = quote(text);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(text: &str) -> Result<Send, String> {
        Send::read(text.as_bytes(), Span { start: 0, end: text.len() }, Binding::Rest, None)
    }

    fn edited(text: &str, edit: impl FnOnce(&Send, &mut Edits)) -> String {
        let mut edits = Edits::default();
        edit(&rest(text).unwrap(), &mut edits);
        String::from_utf8(edits.apply(&Bytes::copy_from_slice(text.as_bytes())).to_bytes().to_vec()).unwrap()
    }

    #[test]
    fn both_spellings_and_both_revisions_are_read() {
        for (text, revision) in [
            (r#"{"message":{"taskId":"t","contextId":"c","messageId":"m","parts":[{"text":"a"}]}}"#, Revision::V1),
            (r#"{"message":{"task_id":"t","context_id":"c","message_id":"m","parts":[{"text":"a"}]}}"#, Revision::V1),
            (
                r#"{"request":{"task_id":"t","context_id":"c","message_id":"m","content":[{"text":"a"}]}}"#,
                Revision::V0_3,
            ),
        ] {
            let send = rest(text).unwrap();
            let ids = [send.task, send.context, send.message].map(Option::unwrap_or_default);
            assert_eq!((ids, send.revision), (["t", "c", "m"].map(str::to_owned), revision), "{text}");
        }
        let nothing = rest(r#"{"message":{"taskId":"","contextId":null,"parts":[]}}"#).unwrap();
        assert_eq!((nothing.task, nothing.context, nothing.prompt.as_str()), (None, None, ""));
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_read() {
        for (text, says) in [
            (r#"{"message":{"parts":[]},"message":{"parts":[]}}"#, "\"message\" twice"),
            (r#"{"message":{"parts":[{"text":"a","t\u0065xt":"b"}]}}"#, "\"text\" twice"),
            (r#"{"message":{"parts":[]},"request":{"content":[]}}"#, "message, request"),
            (r#"{"message":{"parts":[],"content":[]}}"#, "parts, content"),
            (r#"{"message":{"taskId":"","task_id":"t","parts":[]}}"#, "taskId, task_id"),
            (r#"{"message":{"taskId":7,"parts":[]}}"#, "not a string"),
            (r#"{"message":{"parts":[{"text":["a"]}]}}"#, "not a string"),
            (r#"{"message":{"parts":["a"]}}"#, "not an object"),
            (r#"{"message":{"parts":{}}}"#, "no parts"),
            (r#"{"message":"hi"}"#, "no message"),
            (r#"[]"#, "no message"),
            (r#"{"message""#, "not JSON"),
        ] {
            let wrong = rest(text).unwrap_err();
            assert!(wrong.contains(says), "{text}: {wrong}");
        }
    }

    #[test]
    fn a_replacement_is_one_text_and_leaves_other_parts_alone() {
        let text = r#"{"message":{"parts":[{"raw":"AA=="}, {"text":"a","metadata":{"n":1.0}} , {"text":"b"},{"data":{}}],"x": 1}}"#;
        assert_eq!(
            edited(text, |send, edits| send.replace_prompt("c\"", edits)),
            r#"{"message":{"parts":[{"raw":"AA=="}, {"text":"c\"","metadata":{"n":1.0}} , {"data":{}}],"x": 1}}"#
        );
        let only_file = r#"{"message":{"parts":[{"raw":"AA=="}]}}"#;
        assert_eq!(
            edited(only_file, |send, edits| send.replace_prompt("c", edits)),
            r#"{"message":{"parts":[{"text":"c"},{"raw":"AA=="}]}}"#
        );
        let empty = r#"{"message":{"parts":[ ]}}"#;
        assert_eq!(
            edited(empty, |send, edits| send.append_to_prompt("c", edits)),
            r#"{"message":{"parts":[{"text":"c"} ]}}"#
        );
    }

    #[test]
    fn what_is_added_stands_at_the_end_of_the_last_text() {
        let text = r#"{"message":{"parts":[{"text":"a"},{"text":"\ud800b"},{"url":"u"}]}}"#;
        assert_eq!(
            edited(text, |send, edits| send.append_to_prompt("\n\nc", edits)),
            r#"{"message":{"parts":[{"text":"a"},{"text":"\ud800b\n\nc"},{"url":"u"}]}}"#
        );
    }

    #[test]
    fn a_json_rpc_text_of_0_3_has_its_kind() {
        let text = br#"{"jsonrpc":"2.0","params":{"message":{"parts":[]}}}"#;
        let params = crate::wire::json::pointer(text, "/params").unwrap().unwrap();
        let send = Send::read(text, params, Binding::Rpc, Some(Revision::V0_3)).unwrap();
        let mut edits = Edits::default();
        send.replace_prompt("a", &mut edits);
        let out = edits.apply(&Bytes::from_static(text)).to_bytes();
        assert_eq!(out, r#"{"jsonrpc":"2.0","params":{"message":{"parts":[{"kind":"text","text":"a"}]}}}"#);
    }
}
