//! Content blocks: collected from a stream, or read from a finished message.

use bytes::Bytes;

use super::event::Delta;
use crate::wire::answer::{Block, BlockKind, Call};
use crate::wire::json::{Cursor, Edits, JsonError, Span, Str};

/// The members of a content block that are read.
#[derive(Default)]
struct Fields {
    kind: String,
    id: Option<String>,
    name: Option<String>,
    tool_use_id: Option<String>,
    text: Option<Span>,
    thinking: Option<Span>,
    signature: Option<Span>,
    input: Option<Span>,
    content: Option<Span>,
    citations: Option<Span>,
    failed: bool,
    end: usize,
}

fn fields(json: &[u8]) -> Result<Fields, JsonError> {
    let mut fields = Fields::default();
    let mut kind = None;
    let span = Cursor::document(json, |cursor| {
        cursor.object(|cursor, key| {
            let name = key.decode();
            let start = cursor.position();
            let string = |cursor: &mut Cursor<'_>| -> Result<Option<String>, JsonError> {
                Ok(cursor.string_or_skip()?.map(|string| string.decode().into_owned()))
            };
            match &*name {
                "type" => {
                    let value = cursor.string()?.decode().into_owned();
                    if kind.replace(value).is_some() {
                        return Err(JsonError { what: "a block has two types", offset: key.span().start });
                    }
                    return Ok(());
                }
                "id" => return once(&mut fields.id, string(cursor)?, key),
                "name" => return once(&mut fields.name, string(cursor)?, key),
                "tool_use_id" => return once(&mut fields.tool_use_id, string(cursor)?, key),
                "content" => {
                    fields.failed = error_content(cursor)?;
                }
                "is_error" => {
                    let value = cursor.skip()?.of(json) == b"true";
                    fields.failed |= value;
                    return Ok(());
                }
                _ => drop(cursor.skip()?),
            }
            let slot = match &*name {
                "text" => &mut fields.text,
                "thinking" => &mut fields.thinking,
                "signature" => &mut fields.signature,
                "input" => &mut fields.input,
                "content" => &mut fields.content,
                "citations" => &mut fields.citations,
                _ => return Ok(()),
            };
            once(slot, Some(Span { start, end: cursor.offset() }), key)
        })
    })?;
    fields.kind = kind.unwrap_or_default();
    fields.end = span.end - 1;
    // No policy can say anything about it, and what a client makes of it is not known.
    if fields.kind == "tool_use" && (fields.id.is_none() || fields.name.is_none()) {
        return Err(JsonError { what: "a call has no id or no name", offset: span.start });
    }
    Ok(fields)
}

fn once<T>(slot: &mut Option<T>, value: Option<T>, key: Str<'_>) -> Result<(), JsonError> {
    if slot.is_some() {
        return Err(JsonError { what: "a member of a block stands twice", offset: key.span().start });
    }
    *slot = value;
    Ok(())
}

/// Whether a provider tool's result is an error object: `{"type": "…_error", …}`.
fn error_content(cursor: &mut Cursor<'_>) -> Result<bool, JsonError> {
    let mut failed = false;
    if cursor.kind()? == crate::wire::json::Kind::Object {
        cursor.object(|cursor, key| {
            if let (true, Some(kind)) = (key.is("type"), cursor.string_or_skip()?) {
                failed = kind.decode().ends_with("_error");
            }
            Ok(())
        })?;
    } else {
        cursor.skip()?;
    }
    Ok(failed)
}

impl Fields {
    fn block_kind(&self, json: &Bytes) -> BlockKind {
        let slice = |span: Span| json.slice(span.start..span.end);
        let call = || {
            let input = self.input.map_or(Bytes::from_static(b"{}"), slice);
            Some(Call { id: self.id.clone()?, name: self.name.clone()?, input })
        };
        match self.kind.as_str() {
            "text" => {
                let text = self.text.filter(|span| span.of(json).starts_with(b"\""));
                BlockKind::Text(text.map_or(String::new(), |span| Str::at(json, span).decode().into_owned()))
            }
            "thinking" | "redacted_thinking" => BlockKind::Thinking,
            "tool_use" => call().map_or(BlockKind::Other, BlockKind::Call),
            "server_tool_use" | "mcp_tool_use" => call().map_or(BlockKind::Other, BlockKind::ProviderCall),
            kind if kind.ends_with("_tool_result") => match &self.tool_use_id {
                Some(id) => BlockKind::ProviderResult {
                    id: id.clone(),
                    failed: self.failed,
                    content: self.content.map_or(Bytes::from_static(b"null"), slice),
                },
                None => BlockKind::Other,
            },
            _ => BlockKind::Other,
        }
    }
}

/// Reads a finished content block.
///
/// # Errors
/// When it is not an object, a member that matters stands twice, or it is a call without an id or a name.
pub fn read_block(json: &Bytes) -> Result<Block, JsonError> {
    let fields = fields(json)?;
    Ok(Block { kind: fields.block_kind(json), json: Some(json.clone()) })
}

/// Collects one streamed block until it is whole. Deltas are kept as the JSON text that they came as and joined before
/// they are decoded, so that an escape or a surrogate pair cut by the stream comes out right.
#[derive(Debug)]
pub struct BlockBuilder {
    start: Bytes,
    kind: BlockKind,
    text: Vec<u8>,
    input: Vec<u8>,
    thinking: Vec<u8>,
    signature: Vec<u8>,
    citations: Vec<Bytes>,
    /// The deltas are all of known kinds and within the bound.
    whole: bool,
    room: usize,
}

impl BlockBuilder {
    /// Begins with the `content_block` of the start event; keeps at most `room` bytes of deltas.
    ///
    /// # Errors
    /// When the block is not an object, a member that matters stands twice, or it is a call without an id or a name.
    pub fn new(start: Bytes, room: usize) -> Result<Self, JsonError> {
        let kind = fields(&start)?.block_kind(&start);
        Ok(BlockBuilder {
            start,
            kind,
            text: Vec::new(),
            input: Vec::new(),
            thinking: Vec::new(),
            signature: Vec::new(),
            citations: Vec::new(),
            whole: true,
            room,
        })
    }

    /// What the block is, as far as its start tells.
    pub fn kind(&self) -> &BlockKind {
        &self.kind
    }

    /// Adds a delta whose spans point into `data`.
    pub fn add(&mut self, delta: Delta<'_>, data: &[u8]) {
        let (to, piece) = match delta {
            Delta::Text(text) => (&mut self.text, text.raw()),
            Delta::Input(json) => (&mut self.input, json.raw()),
            Delta::Thinking(text) => (&mut self.thinking, text.raw()),
            Delta::Signature(text) => (&mut self.signature, text.raw()),
            Delta::Citation(citation) => {
                self.citations.push(Bytes::copy_from_slice(citation.of(data)));
                return;
            }
            Delta::Other => {
                self.whole = false;
                return;
            }
        };
        if piece.len() > self.room {
            self.whole = false;
            self.room = 0;
            return;
        }
        self.room -= piece.len();
        to.extend_from_slice(piece);
    }

    /// The finished block. A call whose arguments went over the bound has them as far as they were kept, which is not JSON.
    ///
    /// # Errors
    /// Never for a block that [`BlockBuilder::new`] accepted; the start is read again here.
    pub fn finish(self) -> Result<Block, JsonError> {
        let fields = fields(&self.start)?;
        let mut edits = Edits::default();
        let mut set = |name: &str, at: Option<Span>, value: Vec<u8>| match at {
            Some(span) => edits.replace(span, value),
            None => edits.insert(fields.end, [format!(",\"{name}\":").into_bytes(), value].concat()),
        };
        let mut input = None;
        let mut text = None;
        for (name, at, added) in [
            ("text", fields.text, &self.text),
            ("thinking", fields.thinking, &self.thinking),
            ("signature", fields.signature, &self.signature),
        ] {
            if !added.is_empty() {
                let before = at.map(|span| span.of(&self.start)).filter(|text| text.starts_with(b"\""));
                let before = before.map_or(&[][..], |text| &text[1..text.len() - 1]);
                let joined = [b"\"", before, added, b"\""].concat();
                if name == "text" {
                    text = Some(Str::at(&joined, Span { start: 0, end: joined.len() }).decode().into_owned());
                }
                set(name, at, joined);
            }
        }
        if !self.input.is_empty() {
            let joined = [b"\"", &self.input[..], b"\""].concat();
            let mut decoded = Vec::with_capacity(joined.len());
            Str::at(&joined, Span { start: 0, end: joined.len() }).chunks(|chunk| decoded.extend_from_slice(chunk));
            set("input", fields.input, decoded.clone());
            input = Some(Bytes::from(decoded));
        }
        if !self.citations.is_empty() {
            let before = fields.citations.map(|span| span.of(&self.start)).filter(|list| list.starts_with(b"["));
            let before = before.map_or(&[][..], |list| list[1..list.len() - 1].trim_ascii());
            let list: Vec<&[u8]> = Some(before)
                .into_iter()
                .filter(|list| !list.is_empty())
                .chain(self.citations.iter().map(|c| &c[..]))
                .collect();
            set("citations", fields.citations, [b"[", &list.join(&b","[..])[..], b"]"].concat());
        }
        let kind = match (self.kind, input.clone(), text) {
            (BlockKind::Call(call), Some(input), _) => BlockKind::Call(Call { input, ..call }),
            (BlockKind::ProviderCall(call), Some(input), _) => BlockKind::ProviderCall(Call { input, ..call }),
            (BlockKind::Text(_), _, Some(text)) => BlockKind::Text(text),
            (kind, ..) => kind,
        };
        let valid = input.as_ref().is_none_or(|input| Cursor::document(input, |cursor| cursor.skip()).is_ok());
        let json = (self.whole && valid).then(|| edits.apply(&self.start).to_bytes());
        Ok(Block { kind, json })
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{StreamEvent, read};
    use super::*;

    fn build(start: &'static str, deltas: &[&str]) -> Block {
        let mut builder = BlockBuilder::new(Bytes::from_static(start.as_bytes()), 1 << 16).unwrap();
        for delta in deltas {
            let data = format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#);
            let StreamEvent::Delta { delta, .. } = read(b"", data.as_bytes()).unwrap() else { panic!() };
            builder.add(delta, data.as_bytes());
        }
        builder.finish().unwrap()
    }

    #[test]
    fn text_joins_cut_escapes() {
        let block = build(
            r#"{"type":"text","text":""}"#,
            &[r#"{"type":"text_delta","text":"a\ud83d"}"#, r#"{"type":"text_delta","text":"\ude00"}"#],
        );
        assert_eq!(block.kind, BlockKind::Text("a😀".into()));
        assert_eq!(block.json.unwrap(), r#"{"type":"text","text":"a\ud83d\ude00"}"#);
    }

    #[test]
    fn arguments_are_the_text_that_the_model_wrote() {
        let block = build(
            r#"{"type":"tool_use","id":"t","name":"n","input":{}}"#,
            &[
                r#"{"type":"input_json_delta","partial_json":""}"#,
                r#"{"type":"input_json_delta","partial_json":"{\"n\":  1.0e2, \"s\":\"\\uD8"}"#,
                r#"{"type":"input_json_delta","partial_json":"3D\\uDE00\"}"}"#,
            ],
        );
        let BlockKind::Call(call) = block.kind else { panic!() };
        assert_eq!(call.input, r#"{"n":  1.0e2, "s":"\uD83D\uDE00"}"#);
        assert_eq!(
            block.json.unwrap(),
            r#"{"type":"tool_use","id":"t","name":"n","input":{"n":  1.0e2, "s":"\uD83D\uDE00"}}"#
        );
    }

    #[test]
    fn no_arguments_are_an_empty_object() {
        let block =
            build(r#"{"type":"tool_use","id":"t","name":"n"}"#, &[r#"{"type":"input_json_delta","partial_json":""}"#]);
        let BlockKind::Call(call) = block.kind else { panic!() };
        assert_eq!(call.input, "{}");
    }

    #[test]
    fn thinking_keeps_its_signature() {
        let block = build(
            r#"{"type":"thinking","thinking":"","signature":""}"#,
            &[r#"{"type":"thinking_delta","thinking":"hm"}"#, r#"{"type":"signature_delta","signature":"c2ln"}"#],
        );
        assert_eq!(block.json.unwrap(), r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#);
    }

    #[test]
    fn citations_are_listed_in_order() {
        let block = build(
            r#"{"type":"text","text":"","citations":[{"n":0}]}"#,
            &[r#"{"type":"citations_delta","citation":{"n":1}}"#, r#"{"type":"text_delta","text":"x"}"#],
        );
        assert_eq!(block.json.unwrap(), r#"{"type":"text","text":"x","citations":[{"n":0},{"n":1}]}"#);
    }

    #[test]
    fn a_block_with_unknown_deltas_cannot_be_said_again() {
        assert_eq!(build(r#"{"type":"text","text":""}"#, &[r#"{"type":"new_delta","x":1}"#]).json, None);
    }

    #[test]
    fn provider_results_say_whether_they_failed() {
        let json = r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":{"type":"web_search_tool_result_error","error_code":"x"}}"#;
        let block = read_block(&Bytes::from_static(json.as_bytes())).unwrap();
        assert!(matches!(block.kind, BlockKind::ProviderResult { failed: true, .. }));
    }
}
