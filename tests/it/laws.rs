//! Laws that hold for any input: what is cut differently means the same, what is not changed stays the same, and nothing
//! that can be sent makes a reader fall over.

use bytes::Bytes;
use hookgate::wire::anthropic::{BlockBuilder, Delta, StreamEvent, parse, read_block, read_event};
use hookgate::wire::json::{Cursor, Edits, Span, find_duplicate, parse_tree, pointer, quote};
use hookgate::wire::sse::Splitter;
use proptest::collection::vec;
use proptest::prelude::*;

/// Requests and events as real clients and servers send them; the properties mutate them.
const REQUESTS: [&str; 4] = [
    r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}"#,
    r#"{ "stream" : true, "tools":[{"name":"a","input_schema":{"type":"object","required":["x"]}},{"type":"web_search_20250305","name":"web_search"}],
  "system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],
  "messages":[{"role":"user","content":[{"type":"text","text":"a\ud800b"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]},
  {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln"},{"type":"tool_use","id":"t1","name":"a","input":{"x":123456789012345678901234567890}}]},
  {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"r"}],"is_error":true}]},
  {"role":"system","content":"later"}]}"#,
    r#"{"thread":{"type":"continue","previous_message_id":"msg_1"},"messages":[{"role":"user","content":[]}]}"#,
    r#"{"messages":[{"content":null,"role":"user"}],"metadata":{"user_id":"{\"session_id\":\"s\"}"},"tool_choice":{"type":"tool","name":"a"}}"#,
];

const EVENTS: [&str; 8] = [
    r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"\\uD83D"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é\n"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15}}"#,
    r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
    r#"{"type":"ping"}"#,
];

/// Bytes near to a given text: some replaced, removed, doubled.
fn near(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>(), 0..4u8);
    (prop::sample::select(texts), vec(change, 0..6)).prop_map(|(text, changes)| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, byte, kind) in changes {
            let at = at.index(bytes.len().max(1));
            match kind {
                0 if at < bytes.len() => bytes[at] = byte,
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
        }
        bytes
    })
}

/// Any JSON text, with white space in it.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-0.10e+2".to_owned()),
        Just("123456789012345678901234567890".to_owned()),
        Just(r#""\ud800 \u0041\n""#.to_owned()),
        any::<String>().prop_map(|text| quote(&text)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{} ]", items.join(" ,\n"))),
            vec((any::<String>(), inner), 0..4).prop_map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("{} :\t{value}", quote(name))).collect();
                format!("{{ {}}}", members.join(","))
            }),
        ]
    })
}

/// An event's name and data.
type Event = (Vec<u8>, Vec<u8>);

/// All events, their raw bytes joined, and what is left.
fn split(chunks: &[Bytes]) -> (Vec<Event>, Vec<u8>, Vec<u8>) {
    let mut splitter = Splitter::new(1 << 20);
    let (mut events, mut raw) = (Vec::new(), Vec::new());
    for chunk in chunks {
        splitter.push(chunk.clone());
        while let Some(event) = splitter.next().unwrap() {
            raw.extend_from_slice(&splitter.slice(event.raw.clone()));
            let data = splitter.data(&event).into_owned();
            if !data.is_empty() {
                events.push((splitter.name(&event).to_vec(), data));
            }
        }
    }
    (events, raw, splitter.rest().to_vec())
}

fn chop(text: &[u8], cuts: &[prop::sample::Index]) -> Vec<Bytes> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    cuts.sort_unstable();
    let mut start = 0;
    let mut chunks = Vec::new();
    for cut in cuts.into_iter().chain([text.len()]) {
        chunks.push(Bytes::copy_from_slice(&text[start..cut]));
        start = cut;
    }
    chunks
}

fn sse() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        prop::sample::select(&EVENTS[..]).prop_map(|data| format!("data: {data}")),
        "data:[ ]?[a-z\u{e9}\u{5b66}]{0,4}",
        "event:[ ]?[a-z]{0,4}",
        ":[ a-z]{0,4}",
        "(id|retry|x)(: 1)?",
        Just(String::new()),
        Just(String::new()),
    ];
    let end = prop::sample::select(&["\n", "\r\n", "\r"][..]);
    vec((line, end), 0..24).prop_map(|lines| {
        let text: String = lines.iter().flat_map(|(line, end)| [line.as_str(), end]).collect();
        text.into_bytes()
    })
}

proptest! {
    #[test]
    fn a_stream_means_the_same_however_it_is_cut(text in sse(), cuts in vec(any::<prop::sample::Index>(), 0..12)) {
        let (events, raw, rest) = split(&[Bytes::from(text.clone())]);
        prop_assert_eq!([raw, rest].concat(), text.clone());
        let (cut_events, cut_raw, cut_rest) = split(&chop(&text, &cuts));
        prop_assert_eq!(cut_events, events);
        prop_assert_eq!([cut_raw, cut_rest].concat(), text);
    }

    #[test]
    fn any_bytes_can_be_split(chunks in vec(vec(any::<u8>(), 0..64), 0..8)) {
        let chunks: Vec<Bytes> = chunks.into_iter().map(Bytes::from).collect();
        let (_, raw, rest) = split(&chunks);
        prop_assert_eq!([raw, rest].concat(), chunks.concat());
    }

    #[test]
    fn without_edits_a_text_stays_as_it_is(text in vec(any::<u8>(), 0..256)) {
        let text = Bytes::from(text);
        prop_assert_eq!(Edits::default().apply(&text).to_bytes(), text);
    }

    #[test]
    fn an_edit_changes_its_own_span_and_nothing_else(text in json(), cut in any::<prop::sample::Index>(), with in json()) {
        let document = format!("{{\"before\": {text}, \"it\": {text} ,\"after\":[{text}]}}");
        let bytes = Bytes::from(document.clone());
        let path = ["/before", "/it", "/after", "/after/0"][cut.index(4)];
        let span = pointer(document.as_bytes(), path).unwrap().unwrap();
        let mut edits = Edits::default();
        edits.replace(span, with.clone());
        let edited = edits.apply(&bytes).to_bytes();
        prop_assert_eq!(&edited[..span.start], &document.as_bytes()[..span.start]);
        prop_assert_eq!(&edited[span.start + with.len()..], &document.as_bytes()[span.end..]);
        let found = pointer(&edited, path).unwrap().unwrap();
        prop_assert_eq!(found.of(&edited), with.as_bytes());
    }

    #[test]
    fn our_reading_of_json_is_the_standard_one(text in prop_oneof![json().prop_map(String::into_bytes), near(&REQUESTS), vec(any::<u8>(), 0..32)]) {
        let ours = Cursor::document(&text, |cursor| cursor.skip());
        // serde_json does not check the encoding of what it skips.
        let theirs = std::str::from_utf8(&text).is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
        prop_assert_eq!(ours.is_ok(), theirs, "{:?}", ours);
        prop_assert_eq!(parse_tree(&text).is_ok(), ours.is_ok());
        prop_assert_eq!(find_duplicate(&text).is_ok(), ours.is_ok());
        if let Ok(span) = ours {
            prop_assert_eq!(span.of(&text), text.trim_ascii());
        }
    }

    #[test]
    fn any_request_is_read_or_refused(text in prop_oneof![near(&REQUESTS), vec(any::<u8>(), 0..64)], reminders: bool) {
        let text = Bytes::from(text);
        if let Ok(request) = parse(&text, reminders) {
            let inside = |span: &Span| span.start <= span.end && span.end <= text.len();
            prop_assert!(request.messages.iter().all(|message| inside(&message.span)));
            prop_assert!(request.messages.iter().flat_map(|message| &message.parts).all(|part| inside(&part.span)));
            prop_assert!(request.members.iter().all(|member| inside(&member.span) && inside(&member.value)));
            let _ = request.since_last_answer();
        }
    }

    #[test]
    fn any_event_is_read_or_refused(data in prop_oneof![near(&EVENTS), vec(any::<u8>(), 0..64)], named: bool) {
        let name: &[u8] = if named { b"content_block_delta" } else { b"" };
        if let Ok(StreamEvent::BlockStart { block, .. }) = read_event(name, &data) {
            let _ = read_block(&Bytes::copy_from_slice(block.of(&data)));
        }
    }

    #[test]
    fn a_block_is_the_same_however_its_arguments_are_cut(text in json(), cuts in vec(any::<prop::sample::Index>(), 0..6)) {
        let start = Bytes::from_static(br#"{"type":"tool_use","id":"t","name":"n","input":{}}"#);
        let input = format!("{{\"v\":{text}}}");
        // As servers do it: the argument text is cut between characters and each piece is quoted by itself.
        let mut builder = BlockBuilder::new(start, 1 << 20).unwrap();
        let characters: Vec<char> = input.chars().collect();
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(characters.len() + 1)).collect();
        ends.push(characters.len());
        ends.sort_unstable();
        let mut from = 0;
        for end in ends {
            let piece: String = characters[from..end].iter().collect();
            from = end;
            let delta = format!(r#"{{"type":"input_json_delta","partial_json":{}}}"#, quote(&piece));
            let data = format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#);
            match read_event(b"", data.as_bytes()).unwrap() {
                StreamEvent::Delta { delta: delta @ Delta::Input(_), .. } => builder.add(delta, data.as_bytes()),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        let block = builder.finish().unwrap();
        let expected = format!(r#"{{"type":"tool_use","id":"t","name":"n","input":{input}}}"#);
        prop_assert_eq!(block.json.unwrap(), expected);
    }
}
