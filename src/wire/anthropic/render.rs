//! What hookgate itself says in this protocol.

use bytes::Bytes;
use http::StatusCode;

use crate::wire::answer::{Block, BlockKind, Ending, Usage};
use crate::wire::json::{Edits, Rope, pointer, quote};
use crate::wire::sse;

/// The figures that tell what the last request to the model took in; the rest counts what came out.
const INPUT_FIGURES: [&str; 3] = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/// The name of the figure that is summed over the rounds of an answer.
pub const OUTPUT_FIGURE: &str = "output_tokens";

/// The protocol's error type for a status.
pub fn error_type(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        400..500 => "invalid_request_error",
        _ => "api_error",
    }
}

/// An error as a JSON body.
///
/// ```
/// use hookgate::wire::anthropic::error_body;
/// assert_eq!(
///     error_body("invalid_request_error", "no"),
///     r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#
/// );
/// ```
pub fn error_body(kind: &str, message: &str) -> Bytes {
    format!(r#"{{"type":"error","error":{{"type":{},"message":{}}}}}"#, quote(kind), quote(message)).into()
}

/// An error as the last event of a stream.
pub fn error_event(kind: &str, message: &str) -> Bytes {
    sse::event("error", std::str::from_utf8(&error_body(kind, message)).unwrap_or_default())
}

/// A keep-alive that every client ignores.
pub fn ping() -> Bytes {
    sse::event("ping", r#"{"type": "ping"}"#)
}

/// A keep-alive that counts as content, inside an open text block.
pub fn empty_text(index: u64) -> Bytes {
    delta(index, r#"{"type":"text_delta","text":""}"#)
}

/// Opens a text block.
pub fn text_start(index: u64) -> Bytes {
    block_start(index, r#"{"type":"text","text":""}"#)
}

/// Closes a block.
pub fn block_stop(index: u64) -> Bytes {
    sse::event("content_block_stop", &format!(r#"{{"type":"content_block_stop","index":{index}}}"#))
}

fn block_start(index: u64, block: &str) -> Bytes {
    let data = format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#);
    sse::event("content_block_start", &data)
}

fn delta(index: u64, delta: &str) -> Bytes {
    let data = format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
    sse::event("content_block_delta", &data)
}

/// Arguments as the one delta of a call's block.
pub fn input_delta(index: u64, input: &[u8]) -> Bytes {
    let input = quote(&String::from_utf8_lossy(input));
    delta(index, &format!(r#"{{"type":"input_json_delta","partial_json":{input}}}"#))
}

/// A text block as it stands in a message.
pub fn text_block(text: &str) -> Bytes {
    format!(r#"{{"type":"text","text":{}}}"#, quote(text)).into()
}

/// A call's result, as it stands in a user message.
pub fn result(id: &str, text: &str, failed: bool) -> Bytes {
    let failed = if failed { r#""is_error":true,"# } else { "" };
    format!(r#"{{"type":"tool_result","tool_use_id":{},{failed}"content":{}}}"#, quote(id), quote(text)).into()
}

/// The declaration of a tool.
pub fn tool(name: &str, description: &str, schema: &str) -> Bytes {
    format!(r#"{{"name":{},"description":{},"input_schema":{schema}}}"#, quote(name), quote(description)).into()
}

/// A message of the history.
pub fn message(role: &str, parts: &[Bytes]) -> Bytes {
    let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
    [format!(r#"{{"role":"{role}","content":["#).as_bytes(), &parts.join(&b","[..]), b"]}"].concat().into()
}

/// A finished block as the events of a stream: start, deltas, stop.
pub fn block_events(index: u64, block: &Block) -> Option<Rope> {
    let json = block.json.as_ref()?;
    let mut events = Rope::default();
    match &block.kind {
        BlockKind::Text(text) => {
            events.push(text_start(index));
            events.push(delta(index, &format!(r#"{{"type":"text_delta","text":{}}}"#, quote(text))));
        }
        BlockKind::Call(call) => {
            // All members of the block stay; its arguments come as a delta, as clients expect.
            let mut start = Edits::default();
            if let Some(input) = pointer(json, "/input").ok()? {
                start.replace(input, "{}");
            }
            let start = start.apply(json).to_bytes();
            events.push(block_start(index, std::str::from_utf8(&start).ok()?));
            events.push(input_delta(index, &call.input));
        }
        // Blocks without a delta form of their own may begin whole, as results of provider tools do.
        _ => events.push(block_start(index, std::str::from_utf8(json).ok()?)),
    }
    events.push(block_stop(index));
    Some(events)
}

/// The head of a streamed answer of our own.
pub fn message_start(id: &str, model: &str) -> Bytes {
    sse::event("message_start", &format!(r#"{{"type":"message_start","message":{}}}"#, whole(id, model, "", "null")))
}

/// The end of a streamed answer.
pub fn message_end(ending: &Ending) -> Rope {
    let data = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":{},"stop_sequence":null}},"usage":{}}}"#,
        quote(&ending.stop_reason),
        usage_object(&ending.usage)
    );
    let mut rope = Rope::from(sse::event("message_delta", &data));
    rope.push(sse::event("message_stop", r#"{"type":"message_stop"}"#));
    rope
}

/// A whole JSON answer with one text, as if the model had said it; usage zero.
pub fn text_message(id: &str, model: &str, text: &str) -> Bytes {
    let block = text_block(text);
    whole(id, model, std::str::from_utf8(&block).unwrap_or_default(), r#""end_turn""#).into()
}

/// The same as a stream.
pub fn text_stream(id: &str, model: &str, text: &str) -> Rope {
    let mut rope = Rope::from(message_start(id, model));
    rope.push(text_start(0));
    rope.push(delta(0, &format!(r#"{{"type":"text_delta","text":{}}}"#, quote(text))));
    rope.push(block_stop(0));
    let mut usage = Usage::default();
    usage.set(OUTPUT_FIGURE, "0");
    rope.append(message_end(&Ending { stop_reason: "end_turn".into(), usage }));
    rope
}

fn whole(id: &str, model: &str, content: &str, stop_reason: &str) -> String {
    format!(
        r#"{{"id":{},"type":"message","role":"assistant","model":{},"content":[{content}],"stop_reason":{stop_reason},"stop_sequence":null,"usage":{{"input_tokens":0,"output_tokens":0}}}}"#,
        quote(id),
        quote(model)
    )
}

/// Usage figures as an object.
pub fn usage_object(usage: &Usage) -> String {
    let figures: Vec<String> = usage
        .figures
        .iter()
        .map(|(name, value)| format!("{}:{}", quote(name), String::from_utf8_lossy(value)))
        .collect();
    format!("{{{}}}", figures.join(","))
}

/// The figures that a client is shown for an answer of several rounds: what went in is the last round's, since clients
/// decide by it when to compact; what came out is the sum.
pub fn visible_usage(started: &Usage, ended: &Usage, output_before: u64) -> Usage {
    let mut usage = ended.clone();
    for name in INPUT_FIGURES {
        if let (Some((_, value)), None) = (find(started, name), find(ended, name)) {
            usage.set(name, value.clone());
        }
    }
    usage.set(OUTPUT_FIGURE, (output_before + ended.number(OUTPUT_FIGURE)).to_string());
    usage
}

fn find<'a>(usage: &'a Usage, name: &str) -> Option<&'a (String, Bytes)> {
    usage.figures.iter().find(|(known, _)| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_json() {
        let rope = text_stream("msg_1", "m", "no \"x\"\n");
        let text = String::from_utf8(rope.to_bytes().to_vec()).unwrap();
        let mut names = Vec::new();
        for line in text.lines() {
            if let Some(data) = line.strip_prefix("data: ") {
                let value: serde_json::Value = serde_json::from_str(data).unwrap();
                names.push(value["type"].as_str().unwrap().to_owned());
            }
        }
        let expected =
            "message_start content_block_start content_block_delta content_block_stop message_delta message_stop";
        assert_eq!(names.join(" "), expected);
        let value: serde_json::Value = serde_json::from_slice(&text_message("i", "m", "t")).unwrap();
        assert_eq!(value["content"][0]["text"], "t");
        let user = message("user", &[result("t\"1", "why", true), text_block("x")]);
        assert!(serde_json::from_slice::<serde_json::Value>(&user).is_ok());
    }

    #[test]
    fn usage_of_rounds() {
        let usage = |pairs: &[(&str, &'static str)]| {
            let mut usage = Usage::default();
            pairs.iter().for_each(|(name, value)| usage.set(name, *value));
            usage
        };
        let started = usage(&[("input_tokens", "20"), ("cache_read_input_tokens", "5"), ("output_tokens", "1")]);
        let ended = usage(&[("output_tokens", "7"), ("server_tool_use", r#"{"n":1}"#)]);
        let shown = visible_usage(&started, &ended, 3);
        assert_eq!(
            usage_object(&shown),
            r#"{"output_tokens":10,"server_tool_use":{"n":1},"input_tokens":20,"cache_read_input_tokens":5}"#
        );
    }
}
