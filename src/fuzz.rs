//! Laws that must hold for any bytes, as functions for fuzzers. `fuzz/` calls them with cargo-fuzz; the tests below run
//! each on mutated examples.
#![allow(missing_docs, clippy::missing_panics_doc, reason = "a broken law is a panic")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::hooks::HookSet;
use crate::intercept::round::{CallVerdict, Policy, StopVerdict};
use crate::intercept::stream::{Action, Stream};
use crate::ledger::{Anchors, Known, PromptDecision, rewrite};
use crate::wire::anthropic::{StreamEvent, parse, read_event};
use crate::wire::json::{Cursor, Edits, find_duplicate, parse_tree, pointer};
use crate::wire::protocol::Protocol;
use crate::wire::sse::Splitter;
use crate::wire::{a2a, http_tool, jsonrpc, mcp};

/// What one reader takes for JSON, the others do too, and nothing but the edited spans changes.
pub fn json(data: &[u8]) {
    let accepted = Cursor::document(data, |cursor| cursor.skip());
    let depth = data.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if depth < 100 {
        let serde = serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok();
        assert_eq!(accepted.is_ok(), serde && std::str::from_utf8(data).is_ok(), "{accepted:?}");
    }
    assert_eq!(parse_tree(data).is_ok(), accepted.is_ok());
    assert_eq!(find_duplicate(data).is_ok(), accepted.is_ok());
    if let Ok(span) = accepted {
        assert_eq!(pointer(data, ""), Ok(Some(span)));
        let mut edits = Edits::default();
        edits.replace(span, "0");
        let edited = edits.apply(&Bytes::copy_from_slice(data)).to_bytes();
        assert_eq!(edited.len(), data.len() - (span.end - span.start) + 1);
    }
}

/// A stream of events means the same however it is cut, and no byte of it is lost.
pub fn sse(data: &[u8]) {
    let Some((cut, text)) = data.split_first() else { return };
    let read = |chunks: &[&[u8]]| {
        let mut splitter = Splitter::new(1 << 20);
        let (mut raw, mut events) = (Vec::new(), Vec::new());
        for chunk in chunks {
            splitter.push(Bytes::copy_from_slice(chunk));
            while let Ok(Some(event)) = splitter.next() {
                raw.extend_from_slice(&splitter.slice(event.raw.clone()));
                let data = splitter.data(&event).into_owned();
                if !data.is_empty() {
                    events.push((splitter.name(&event).to_vec(), data));
                }
            }
        }
        raw.extend_from_slice(&splitter.rest());
        (raw, events)
    };
    let whole = read(&[text]);
    assert_eq!(whole.0, text);
    let (head, tail) = text.split_at(usize::from(*cut).min(text.len()));
    let parts = read(&[head, tail]);
    assert_eq!(parts.0, text);
    assert_eq!(parts.1, whole.1);
}

/// Nothing is known of any history, or all its prompts are known to be denied.
struct All(Option<PromptDecision>);

impl Known for All {
    fn has_prompts(&self) -> bool {
        self.0.is_some()
    }
    fn prompt(&self, _: crate::id::Digest) -> Option<PromptDecision> {
        self.0.clone()
    }
    fn answer(&self, _: crate::id::Digest, _: crate::id::Digest) -> Option<Arc<crate::ledger::AnswerRecord>> {
        None
    }
    fn answer_by_calls(&self, _: crate::id::Digest) -> Option<Arc<crate::ledger::AnswerRecord>> {
        None
    }
    fn is_moved_refusal(&self, _: crate::id::Digest, _: crate::id::Digest) -> bool {
        false
    }
    fn call_context(&self, _: &str) -> Vec<String> {
        Vec::new()
    }
    fn messages(&self, _: crate::id::Digest) -> Vec<String> {
        Vec::new()
    }
}

/// A history of which nothing is known stays as it is; taking things out of a request, and putting one in, leaves JSON.
/// What a client is known to put into its requests makes no request unreadable, and no denied prompt stays.
pub fn request(data: &[u8]) {
    let text = Bytes::copy_from_slice(data);
    let known = parse(&text, true);
    assert_eq!(known.is_ok(), parse(&text, false).is_ok());
    let Ok(known) = known else { return };
    for denied in [false, true] {
        let decision = PromptDecision { denied: Some("no".into()), ..PromptDecision::default() };
        let decided = All(denied.then_some(decision));
        let mut edits = Edits::default();
        rewrite(Protocol::Anthropic, &known, &Anchors::of(&known), &decided, Vec::new(), &mut edits);
        assert!(denied || edits.is_empty());
        let edited = edits.apply(&text).to_bytes();
        let left = parse(&edited, true);
        let prompts = left.map(|left| left.messages.iter().filter(|message| message.is_prompt()).count());
        assert!(!denied || prompts == Ok(0), "{prompts:?} in {}", String::from_utf8_lossy(&edited));
    }
    let Ok(conversation) = Protocol::Anthropic.parse(&text, &http::HeaderMap::new()) else { return };
    let names: Vec<String> = conversation.tools.iter().map(|tool| tool.name.clone()).collect();
    let tool = Protocol::Anthropic.tool("t", "A tool.", "{}");
    for added in [None, Some(tool)] {
        let mut edits = Edits::default();
        Protocol::Anthropic.redeclare(&conversation, &names, added, &mut edits);
        let edited = edits.apply(&text).to_bytes();
        assert!(Cursor::document(&edited, |cursor| cursor.skip()).is_ok(), "{}", String::from_utf8_lossy(&edited));
    }
}

/// An answer never releases a call that nobody decided about, and what is allowed comes out as it went in.
pub fn answer(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let policy = Policy {
        protocol: Protocol::Anthropic,
        gated: Some(Arc::new(|_| true)),
        stop_gated: choice & 1 != 0,
        record: true,
        feedback: choice & 2 != 0,
        max_deny_rounds: 1,
        max_held: 1 << 16,
        keepalive: Duration::from_secs(5),
        max_hold: Duration::from_secs(240),
    };
    let decide = choice & 4 != 0;
    let now = Instant::now();
    let mut stream = Stream::new(policy);
    let mut out = Vec::new();
    let (mut asked, mut failed) = (false, false);
    let (head, tail) = text.split_at(text.len() / 2);
    for chunk in [Some(head), Some(tail), None] {
        match chunk {
            Some(chunk) if stream.wants_input() => stream.chunk(now, Bytes::copy_from_slice(chunk)),
            Some(_) => {}
            None => stream.end_of_input(now, None),
        }
        loop {
            while let Some(bytes) = stream.output() {
                out.extend_from_slice(&bytes);
            }
            let Some(action) = stream.action() else { break };
            match action {
                Action::Decide { slot, .. } | Action::Undecidable { slot, .. } => {
                    asked = true;
                    if decide {
                        stream.verdict(now, slot, CallVerdict::Allow);
                    }
                }
                Action::AskStop { .. } => stream.stop_verdict(now, StopVerdict::End),
                Action::Commit { .. } => stream.committed(now),
                Action::Continue { .. } => stream.round_failed(now),
                Action::Failed { .. } => failed = true,
                Action::GiveUp | Action::Truncated { .. } | Action::NotScanned => {}
            }
        }
    }
    let mut splitter = Splitter::new(1 << 20);
    splitter.push(Bytes::copy_from_slice(&out));
    let (mut ended, mut called) = (false, false);
    while let Ok(Some(event)) = splitter.next() {
        let data = splitter.data(&event);
        ended |= matches!(read_event(splitter.name(&event), &data), Ok(StreamEvent::Stop));
        // As a client reads it, which does not look at what hookgate makes of it.
        let read: serde_json::Value = serde_json::from_slice(&data).unwrap_or_default();
        called |= read["type"] == "content_block_start" && read["content_block"]["type"] == "tool_use";
    }
    let shown = || String::from_utf8_lossy(&out).into_owned();
    assert!(decide || !asked || !called, "an undecided call is released: {}", shown());
    assert!(!failed || !ended, "a failed answer has no end: {}", shown());
}

/// A document of hooks is taken or refused with a place for every fault.
pub fn document(data: &[u8]) {
    match HookSet::builder().document("fuzz.json", data).allowed_hosts(["hooks.example.com"]).build() {
        Ok(hooks) => drop(hooks),
        Err(errors) => assert!(errors.to_string().contains("fuzz.json")),
    }
}

/// Of a call of an MCP tool nothing but the arguments is replaced, a list without its tools has none, and what is added to a
/// result leaves it a result. Every message of agents and of plain HTTP is read or refused.
pub fn tools(data: &[u8]) {
    let text = Bytes::copy_from_slice(data);
    let messages = match jsonrpc::read(&text) {
        Ok(jsonrpc::Payload::One(message)) => vec![message],
        Ok(jsonrpc::Payload::Batch(messages)) => messages,
        Err(_) => Vec::new(),
    };
    for message in &messages {
        let edited = match &message.kind {
            jsonrpc::Kind::Request { params: Some(params), .. } => {
                let Ok(call) = mcp::CallParams::read(&text, *params) else { continue };
                let mut edits = Edits::default();
                call.replace_input(&Bytes::from_static(b"{\"replaced\":1}"), &mut edits);
                let edited = edits.apply(&text).to_bytes();
                let input = &b"{\"replaced\":1}"[..];
                assert!(memchr::memmem::find(&edited, input).is_some());
                assert!(edited.len() <= text.len() + "\"arguments\":,".len() + input.len());
                edited
            }
            jsonrpc::Kind::Result(span) => {
                let mut edits = Edits::default();
                if let Ok(list) = mcp::ToolList::read(&text, *span) {
                    list.hide(|_| true, &mut edits);
                }
                let edited = edits.apply(&text).to_bytes();
                if let Ok(jsonrpc::Payload::One(jsonrpc::Envelope { kind: jsonrpc::Kind::Result(span), .. })) =
                    jsonrpc::read(&edited)
                {
                    assert!(
                        mcp::ToolList::read(&edited, span).is_ok_and(|list| list.tools.is_empty()) || edited == text
                    );
                }
                let mut edits = Edits::default();
                mcp::add_text(&text, *span, "added", &mut edits);
                let _ = mcp::read_answer(span.of(&text));
                edits.apply(&text).to_bytes()
            }
            _ => continue,
        };
        assert!(jsonrpc::read(&edited).is_ok(), "{}", String::from_utf8_lossy(&edited));
    }
    let _ = a2a::read_answer(data);
    let _ = a2a::failure(data);
    if let Ok(path) = std::str::from_utf8(data) {
        let _ = http_tool::PlainPath::read(path);
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    // What fuzzers begin with, too.
    const STREAM: &str = include_str!("../tests/seeds/stream.txt");
    const REQUEST: &str = include_str!("../tests/seeds/request.json");
    const DOCUMENT: &str = include_str!("../tests/seeds/document.json");

    const CALL: &str = include_str!("../tests/seeds/call.json");
    const RESULT: &str = include_str!("../tests/seeds/result.json");

    /// Bytes near to an example, behind one byte that chooses.
    fn near(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
        let change = (any::<prop::sample::Index>(), any::<u8>(), 0..4u8);
        (any::<u8>(), vec(change, 0..5)).prop_map(move |(choice, changes)| {
            let mut bytes = vec![choice];
            bytes.extend_from_slice(text.as_bytes());
            for (at, byte, kind) in changes {
                let at = 1 + at.index(bytes.len() - 1);
                match kind {
                    0 if at < bytes.len() => bytes[at] = byte,
                    1 if at < bytes.len() && bytes.len() > 2 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, byte),
                    _ if at > 1 => bytes.truncate(at),
                    _ => {}
                }
            }
            bytes
        })
    }

    /// Found by a fuzzer: such a call passed as a block that is none.
    #[test]
    fn a_call_without_a_name_or_an_id_is_not_released() {
        for (member, other) in
            [("\"name\":\"n\"", "\"namd\":\"n\""), ("\"name\":\"n\"", "\"name\":1"), ("\"id\":\"t\",", "")]
        {
            // A call that somebody is asked about stands behind it.
            let [text, call, end] =
                ["\"index\":0,\"content_block\"", "\"index\":1,\"content_block\"", "event: message_delta"]
                    .map(|part| STREAM.find(part).and_then(|at| STREAM[..at + 5].rfind("event: ")).unwrap());
            let wrong = STREAM[call..end].replace("\"index\":1", "\"index\":0").replace(member, other);
            answer([&STREAM[..text], &wrong, &STREAM[call..]].concat().as_bytes());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn json_laws(data in near(REQUEST), any in vec(any::<u8>(), 0..64)) {
            json(&data[1..]);
            json(&any);
        }

        #[test]
        fn sse_laws(data in near(STREAM), any in vec(prop::sample::select(&b"\r\n:d ata"[..]), 0..32)) {
            sse(&data);
            sse(&any);
        }

        #[test]
        fn request_laws(data in near(REQUEST)) {
            request(&data[1..]);
        }

        #[test]
        fn answer_laws(data in near(STREAM)) {
            answer(&data);
        }

        #[test]
        fn tool_laws(call in near(CALL), result in near(RESULT)) {
            tools(&call[1..]);
            tools(&result[1..]);
        }

        #[test]
        fn document_laws(data in near(DOCUMENT)) {
            document(&data[1..]);
        }
    }
}
