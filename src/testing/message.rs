use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::answer::Step;
use super::gate::Gate;
use crate::wire::anthropic::{error_body, error_event};
use crate::wire::json::quote;
use crate::wire::sse;

/// What the scripted model says in one answer: blocks in order, and how the answer ends.
///
/// The same message can be streamed or whole. Streamed, it has the events and the order of the real service: a ping after
/// the start, text in several deltas, arguments in several fragments of which the first is empty. [`Message::sse`] and
/// [`Message::json`] tell the exact bytes.
///
/// ```
/// use hookgate::testing::Message;
/// let message = Message::new("msg_1").thinking("hm", "c2ln").text("Reading.").tool("toolu_1", "read", r#"{"p": 1e2}"#);
/// assert!(std::str::from_utf8(&message.json()).unwrap().contains(r#""input":{"p": 1e2}"#));
/// ```
#[derive(Clone, Debug)]
pub struct Message {
    id: String,
    parts: Vec<Part>,
    stop_reason: Option<String>,
    input_tokens: u64,
    output_tokens: u64,
    extra: Vec<(String, Value)>,
}

#[derive(Clone, Debug)]
enum Part {
    Block(Block),
    Step(Step),
    Error(String, String),
}

#[derive(Clone, Debug)]
struct Block {
    /// The block as it begins in a stream.
    start: String,
    /// The deltas of the stream.
    deltas: Vec<String>,
    /// The block as it stands in a whole message.
    whole: String,
    /// Whether the stream says that it is over.
    closed: bool,
}

impl Message {
    /// An empty answer of that id. It ends with `end_turn`, or with `tool_use` once it has a call.
    pub fn new(id: &str) -> Self {
        Message {
            id: id.to_owned(),
            parts: Vec::new(),
            stop_reason: None,
            input_tokens: 10,
            output_tokens: 5,
            extra: Vec::new(),
        }
    }

    fn push(mut self, start: Value, deltas: Vec<String>, whole: String) -> Self {
        self.parts.push(Part::Block(Block { start: start.to_string(), deltas, whole, closed: true }));
        self
    }

    /// Text, in two deltas when it is longer than one character.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let deltas = pieces(text, 2).map(|text| json!({"type": "text_delta", "text": text}).to_string()).collect();
        self.push(json!({"type": "text", "text": ""}), deltas, json!({"type": "text", "text": text}).to_string())
    }

    /// Reasoning with its signature.
    #[must_use]
    pub fn thinking(self, thinking: &str, signature: &str) -> Self {
        let deltas = vec![
            json!({"type": "thinking_delta", "thinking": thinking}).to_string(),
            json!({"type": "signature_delta", "signature": signature}).to_string(),
        ];
        let whole = json!({"type": "thinking", "thinking": thinking, "signature": signature}).to_string();
        self.push(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas, whole)
    }

    /// A call for the client to run. `input` is JSON text and is sent as it is.
    #[must_use]
    pub fn tool(self, id: &str, name: &str, input: &str) -> Self {
        let fragments: Vec<&str> = std::iter::once("").chain(pieces(input, 3)).collect();
        self.call("tool_use", id, name, input, &fragments)
    }

    /// A call whose arguments are streamed in exactly these fragments, which need not be JSON together. A whole message
    /// has them as they are if they are JSON, else an empty object.
    #[must_use]
    pub fn tool_in_fragments(self, id: &str, name: &str, fragments: &[&str]) -> Self {
        let input = fragments.concat();
        let valid = serde_json::from_str::<serde::de::IgnoredAny>(&input).is_ok();
        self.call("tool_use", id, name, if valid { &input } else { "{}" }, fragments)
    }

    /// A call that the provider runs by itself, and its result (JSON text of the result block's content).
    #[must_use]
    pub fn server_tool(self, id: &str, name: &str, input: &str, content: &str) -> Self {
        let fragments: Vec<&str> = pieces(input, 2).collect();
        let result = format!(r#"{{"type":"{name}_tool_result","tool_use_id":{},"content":{content}}}"#, quote(id));
        self.call("server_tool_use", id, name, input, &fragments).block(&result)
    }

    fn call(self, kind: &str, id: &str, name: &str, input: &str, fragments: &[&str]) -> Self {
        let delta = |json: &&str| json!({"type": "input_json_delta", "partial_json": json}).to_string();
        let deltas = fragments.iter().map(delta).collect();
        let whole = format!(r#"{{"type":"{kind}","id":{},"name":{},"input":{input}}}"#, quote(id), quote(name));
        self.push(json!({"type": kind, "id": id, "name": name, "input": {}}), deltas, whole)
    }

    /// A block without deltas: its JSON text as it is.
    #[must_use]
    pub fn block(mut self, json: &str) -> Self {
        self.parts.push(Part::Block(Block {
            start: json.to_owned(),
            deltas: Vec::new(),
            whole: json.to_owned(),
            closed: true,
        }));
        self
    }

    /// Takes the end of the last block away, as when the answer is cut in the middle of it.
    #[must_use]
    pub fn unclosed(mut self) -> Self {
        if let Some(Part::Block(block)) = self.parts.last_mut() {
            block.closed = false;
        }
        self
    }

    /// An event (streamed answers only), as it is.
    #[must_use]
    pub fn event(mut self, raw: impl Into<Bytes>) -> Self {
        self.parts.push(Part::Step(Step::Send(raw.into())));
        self
    }

    /// Waits here; a whole message waits before its first byte.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.parts.push(Part::Step(Step::Wait(gate.clone())));
        self
    }

    /// The connection breaks here; a whole message breaks in its middle.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.parts.push(Part::Step(Step::Cut));
        self
    }

    /// The stream ends here with an error event; a whole message is status 529 with that error.
    #[must_use]
    pub fn error(mut self, kind: &str, message: &str) -> Self {
        self.parts.push(Part::Error(kind.to_owned(), message.to_owned()));
        self
    }

    /// Sets the stop reason.
    #[must_use]
    pub fn stop(mut self, reason: &str) -> Self {
        self.stop_reason = Some(reason.to_owned());
        self
    }

    /// Sets the usage figures (10 and 5 unless set).
    #[must_use]
    pub fn usage(mut self, input_tokens: u64, output_tokens: u64) -> Self {
        (self.input_tokens, self.output_tokens) = (input_tokens, output_tokens);
        self
    }

    /// Adds a member to the message.
    #[must_use]
    pub fn member(mut self, name: &str, value: Value) -> Self {
        self.extra.push((name.to_owned(), value));
        self
    }

    /// The message as a whole JSON answer.
    pub fn json(&self) -> Bytes {
        let blocks: Vec<&str> = self.blocks().map(|block| block.whole.as_str()).collect();
        self.frame(&blocks.join(","), Some(&self.reason()), self.output_tokens).into()
    }

    /// The message as the bytes of a stream.
    pub fn sse(&self) -> Bytes {
        let sent = self.stream_steps().into_iter().filter_map(|step| match step {
            Step::Send(bytes) => Some(bytes),
            _ => None,
        });
        sent.collect::<Vec<Bytes>>().concat().into()
    }

    /// The JSON text of each block as it stands in a whole message, and so in a history.
    pub fn block_texts(&self) -> Vec<String> {
        self.blocks().map(|block| block.whole.clone()).collect()
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.parts.iter().filter_map(|part| match part {
            Part::Block(block) => Some(block),
            _ => None,
        })
    }

    fn reason(&self) -> String {
        let calls = self.blocks().any(|block| block.start.starts_with(r#"{"type":"tool_use""#));
        self.stop_reason.clone().unwrap_or_else(|| if calls { "tool_use" } else { "end_turn" }.to_owned())
    }

    fn frame(&self, content: &str, stop_reason: Option<&str>, output_tokens: u64) -> String {
        let mut extra = String::new();
        for (name, value) in &self.extra {
            extra.push_str(&format!(",{}:{value}", quote(name)));
        }
        format!(
            r#"{{"id":{},"type":"message","role":"assistant","model":"claude-test","content":[{content}],"stop_reason":{},"stop_sequence":null,"usage":{{"input_tokens":{},"cache_read_input_tokens":0,"output_tokens":{output_tokens}}}{extra}}}"#,
            quote(&self.id),
            stop_reason.map_or("null".to_owned(), quote),
            self.input_tokens,
        )
    }

    pub(super) fn stream_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut send = |name: &str, data: &str| steps.push(Step::Send(sse::event(name, data)));
        let message = self.frame("", None, 1);
        send("message_start", &format!(r#"{{"type":"message_start","message":{message}}}"#));
        send("ping", r#"{"type": "ping"}"#);
        let mut index = 0;
        for part in &self.parts {
            match part {
                Part::Block(block) => {
                    block.events(index, &mut steps);
                    index += 1;
                }
                Part::Step(Step::Cut) => {
                    steps.push(Step::Cut);
                    return steps;
                }
                Part::Step(step) => steps.push(step.clone()),
                Part::Error(kind, message) => {
                    steps.push(Step::Send(error_event(kind, message)));
                    return steps;
                }
            }
        }
        let end = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":{},"stop_sequence":null}},"usage":{{"output_tokens":{}}}}}"#,
            quote(&self.reason()),
            self.output_tokens
        );
        steps.push(Step::Send(sse::event("message_delta", &end)));
        steps.push(Step::Send(sse::event("message_stop", r#"{"type":"message_stop"}"#)));
        steps
    }

    /// The steps of a whole answer, and its status when it is an error.
    pub(super) fn whole_steps(&self) -> (Option<StatusCode>, Vec<Step>) {
        let mut body = self.json();
        let mut status = None;
        let mut steps = Vec::new();
        let mut cut = false;
        for part in &self.parts {
            match part {
                Part::Step(Step::Wait(gate)) => steps.push(Step::Wait(gate.clone())),
                Part::Step(Step::Cut) => cut = true,
                Part::Error(kind, message) => {
                    status = StatusCode::from_u16(529).ok();
                    body = error_body(kind, message);
                }
                _ => {}
            }
        }
        if cut {
            steps.push(Step::Send(body.slice(..body.len() / 2)));
            steps.push(Step::Cut);
        } else {
            steps.push(Step::Send(body));
        }
        (status, steps)
    }
}

impl Block {
    fn events(&self, index: usize, steps: &mut Vec<Step>) {
        let mut send = |name: &str, rest: &str| {
            let data = format!(r#"{{"type":"{name}","index":{index}{rest}}}"#);
            steps.push(Step::Send(sse::event(name, &data)));
        };
        send("content_block_start", &format!(r#","content_block":{}"#, self.start));
        for delta in &self.deltas {
            send("content_block_delta", &format!(r#","delta":{delta}"#));
        }
        if self.closed {
            send("content_block_stop", "");
        }
    }
}

/// A text cut into at most `count` pieces, between characters.
fn pieces(text: &str, count: usize) -> impl Iterator<Item = &str> {
    let size = text.len().div_ceil(count).max(1);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut end = size.min(rest.len());
        while !rest.is_char_boundary(end) {
            end += 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same() {
        let message = Message::new("m").text("héé").tool("t", "n", r#"{"a": 1.50,"b":"é"}"#).usage(7, 9);
        let whole: Value = serde_json::from_slice(&message.json()).unwrap();
        assert_eq!(whole["stop_reason"], "tool_use");
        let sse = String::from_utf8(message.sse().to_vec()).unwrap();
        let (mut text, mut input) = (String::new(), String::new());
        for data in sse.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let data: Value = serde_json::from_str(data).unwrap();
            text.push_str(data["delta"]["text"].as_str().unwrap_or_default());
            input.push_str(data["delta"]["partial_json"].as_str().unwrap_or_default());
        }
        assert_eq!(whole["content"][0]["text"], text);
        assert_eq!(input, r#"{"a": 1.50,"b":"é"}"#);
        assert!(sse.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
    }
}
