use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::wire::answer::Call;
use crate::wire::protocol::Protocol;

fn policy() -> Policy {
    Policy {
        protocol: Protocol::Anthropic,
        gated: Some(Arc::new(|name| name != "free")),
        stop_gated: true,
        record: true,
        feedback: true,
        max_deny_rounds: 3,
        max_held: 1 << 20,
        keepalive: Duration::from_secs(5),
        max_hold: Duration::from_secs(240),
    }
}

fn event(data: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    format!("event: {}\ndata: {data}\n\n", value["type"].as_str().unwrap())
}

fn start(id: &str) -> String {
    event(&format!(
        r#"{{"type":"message_start","message":{{"id":"{id}","type":"message","model":"m","content":[],"usage":{{"input_tokens":10,"output_tokens":1}}}}}}"#
    ))
}

fn text(index: u32, text: &str) -> String {
    event(&format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"text","text":""}}}}"#))
        + &event(&format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{text}"}}}}"#
        ))
        + &stop(index)
}

fn stop(index: u32) -> String {
    event(&format!(r#"{{"type":"content_block_stop","index":{index}}}"#))
}

fn call(index: u32, id: &str, name: &str, input: &str) -> String {
    let input = serde_json::to_string(input).unwrap();
    event(&format!(
        r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"{id}","name":"{name}","input":{{}}}}}}"#
    )) + &event(&format!(
        r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":{input}}}}}"#
    )) + &stop(index)
}

fn end(reason: &str) -> String {
    event(&format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{{"output_tokens":5}}}}"#
    )) + &event(r#"{"type":"message_stop"}"#)
}

/// Runs a machine with fixed answers; gives what the client got and what was asked.
struct Run {
    stream: Stream,
    now: Instant,
    out: String,
    asked: Vec<String>,
    records: Vec<AnswerRecord>,
    verdict: fn(&Call) -> CallVerdict,
    stops: Vec<StopVerdict>,
    rounds: Vec<String>,
}

impl Run {
    fn new(policy: Policy, verdict: fn(&Call) -> CallVerdict) -> Self {
        Run {
            stream: Stream::new(policy),
            now: Instant::now(),
            out: String::new(),
            asked: Vec::new(),
            records: Vec::new(),
            verdict,
            stops: Vec::new(),
            rounds: Vec::new(),
        }
    }

    fn feed(&mut self, chunk: &[u8]) {
        self.stream.chunk(self.now, Bytes::copy_from_slice(chunk));
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            while let Some(bytes) = self.stream.output() {
                self.out += std::str::from_utf8(&bytes).unwrap();
            }
            let Some(action) = self.stream.action() else { return };
            match action {
                Action::Decide { slot, call } => {
                    self.asked.push(format!("{} {}", call.name, String::from_utf8_lossy(&call.input)));
                    self.stream.verdict(self.now, slot, (self.verdict)(&call));
                }
                Action::Undecidable { slot, why, .. } => {
                    self.asked.push(why.what.clone());
                    self.stream.verdict(self.now, slot, CallVerdict::Deny(why.what));
                }
                Action::AskStop { response, stop_reason } => {
                    self.asked.push(format!("stop {stop_reason} {response}"));
                    let verdict = if self.stops.is_empty() { StopVerdict::End } else { self.stops.remove(0) };
                    self.stream.stop_verdict(self.now, verdict);
                }
                Action::Commit { record, .. } => {
                    self.records.push(record);
                    self.stream.committed(self.now);
                }
                Action::Continue { .. } if self.rounds.is_empty() => self.stream.round_failed(self.now),
                Action::Continue { .. } => {
                    self.stream.round(self.now);
                    let next = self.rounds.remove(0);
                    self.feed(next.as_bytes());
                }
                Action::Failed { kind, .. } => self.asked.push(format!("failed {kind}")),
                Action::Truncated { call } => self.asked.push(format!("truncated {}", call.name)),
                Action::NotScanned => self.asked.push("not scanned".into()),
                Action::GiveUp => self.asked.push("give up".into()),
            }
        }
    }

    /// (index, type, text or input) of every block that the client got, checked to be gapless.
    fn blocks(&self) -> Vec<String> {
        let mut blocks: Vec<(u64, String)> = Vec::new();
        let mut open: Option<u64> = None;
        for line in self.out.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            let index = value["index"].as_u64();
            match value["type"].as_str().unwrap() {
                "content_block_start" => {
                    assert_eq!(index, Some(blocks.len() as u64), "gapless: {}", self.out);
                    assert_eq!(open, None);
                    open = index;
                    let block = &value["content_block"];
                    let label = block["name"].as_str().or(block["type"].as_str()).unwrap();
                    blocks.push((index.unwrap(), format!("{label}:")));
                }
                "content_block_delta" => {
                    assert_eq!(index, open);
                    let delta = &value["delta"];
                    let piece = delta["text"].as_str().or(delta["partial_json"].as_str()).unwrap_or("");
                    blocks.last_mut().unwrap().1 += piece;
                }
                "content_block_stop" => {
                    assert_eq!(index, open);
                    open = None;
                }
                _ => {}
            }
        }
        assert_eq!(open, None, "{}", self.out);
        blocks.into_iter().map(|(_, block)| block).collect()
    }
}

fn allow(_: &Call) -> CallVerdict {
    CallVerdict::Allow
}

fn deny(call: &Call) -> CallVerdict {
    CallVerdict::Deny(format!("no {}", call.id))
}

fn answer() -> String {
    "\u{feff}".to_owned()
        + &start("msg_1")
        + &event(r#"{"type": "ping"}"#)
        + &text(0, "a\\ud83d\\ude00学")
        + &call(1, "t1", "x", r#"{"a": 1.0e5, "a2":"\ud800"}"#)
        + ": comment\r\n\r\n"
        + &call(2, "t2", "free", "")
        + &event(r#"{"type":"future_event","x":[1]}"#)
        + &text(3, "end")
        + &end("tool_use")
}

#[test]
fn allowed_answers_are_identical_for_every_split() {
    let answer = answer();
    let bytes = answer.as_bytes();
    for first in (0..=bytes.len()).step_by(3) {
        let second = (first + 211).min(bytes.len());
        let mut run = Run::new(policy(), allow);
        run.feed(&bytes[..first]);
        run.feed(&bytes[first..second]);
        run.feed(&bytes[second..]);
        run.stream.end_of_input(run.now, None);
        run.drain();
        assert_eq!(run.out, answer, "cut at {first}");
        assert_eq!(run.asked, [r#"x {"a": 1.0e5, "a2":"\ud800"}"#, "not scanned"]);
        assert!(run.records.is_empty());
    }
}

#[test]
fn bytes_come_out_one_at_a_time_as_they_go_in() {
    let answer = start("m") + &text(0, "hello") + &end("end_turn");
    let mut run = Run::new(policy(), allow);
    for byte in answer.as_bytes() {
        run.feed(&[*byte]);
    }
    assert_eq!(run.out, answer);
    assert_eq!(run.asked, ["stop end_turn hello"]);
}

#[test]
fn no_prefix_releases_an_undecided_call() {
    let answer = start("m") + &text(0, "t") + &call(1, "t1", "x", r#"{"a":1}"#) + &end("tool_use");
    for cut in 0..answer.len() {
        let mut run = Run::new(policy(), allow);
        run.stream.chunk(run.now, Bytes::copy_from_slice(&answer.as_bytes()[..cut]));
        run.stream.end_of_input(run.now, Some("cut"));
        while let Some(bytes) = run.stream.output() {
            run.out += std::str::from_utf8(&bytes).unwrap();
        }
        assert!(!run.out.contains("tool_use"), "cut at {cut}: {}", run.out);
        assert!(run.out.ends_with("\n\n") && run.out.contains("event: error"), "cut at {cut}: {}", run.out);
        assert!(!run.out.contains("message_stop"), "cut at {cut}");
    }
}

#[test]
fn text_passes_while_nothing_is_held_and_waits_behind_a_call() {
    let mut run = Run::new(policy(), allow);
    run.feed(start("m").as_bytes());
    let begun = event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#)
        + &event(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#);
    run.feed(begun.as_bytes());
    assert_eq!(run.out, start("m") + &begun);
    run.feed(stop(0).as_bytes());
    let held = call(1, "t1", "x", "{}");
    let parts: Vec<&str> = held.split_inclusive("\n\n").collect();
    run.feed(parts[0].as_bytes());
    run.feed(parts[1].as_bytes());
    assert_eq!(run.out, start("m") + &begun, "the text's end is kept while the call is held");
    assert!(run.stream.is_holding());
    run.feed(parts[2].as_bytes());
    assert!(run.asked.is_empty(), "the next event tells whether the call was cut off");
    run.feed(end("tool_use").as_bytes());
    assert_eq!(run.out, start("m") + &begun + &stop(0) + &held + &end("tool_use"));
}

#[test]
fn a_denied_call_among_others_leaves_no_gap() {
    let mut run = Run::new(policy(), |call| if call.id == "t2" { deny(call) } else { CallVerdict::Allow });
    let answer = start("m")
        + &text(0, "t")
        + &call(1, "t1", "x", r#"{"n":1}"#)
        + &call(2, "t2", "x", r#"{"n":2}"#)
        + &call(3, "t3", "x", r#"{"n":3}"#)
        + &end("tool_use");
    run.feed(answer.as_bytes());
    assert_eq!(run.blocks(), ["text:t", r#"x:{"n":1}"#, r#"x:{"n":3}"#]);
    assert!(run.out.ends_with(&end("tool_use")));
    let record = run.records.last().unwrap();
    assert_eq!(record.open_results(), [SuppliedResult { call_id: "t2".into(), text: "no t2".into(), refused: true }]);
    let shown: Vec<Shown> = record.rounds[0].blocks.iter().map(|block| block.shown).collect();
    assert_eq!(shown, [Shown::Both, Shown::Both, Shown::ModelOnly, Shown::Both]);
}

#[test]
fn a_rewritten_call_is_rewritten_in_its_own_block_only() {
    let mut run = Run::new(policy(), |_| CallVerdict::Modify(Bytes::from_static(br#"{"n":  2}"#)));
    let answer = start("m") + &text(0, "t") + &call(1, "t1", "x", r#"{"n":1}"#) + &end("tool_use");
    run.feed(answer.as_bytes());
    assert_eq!(run.blocks(), ["text:t", r#"x:{"n":  2}"#]);
    assert!(run.out.starts_with(&(start("m") + &text(0, "t"))) && run.out.ends_with(&end("tool_use")));
    assert!(run.records.is_empty(), "the client echoes what it ran");
}

#[test]
fn when_all_calls_are_denied_the_model_goes_on_in_the_same_answer() {
    let mut run = Run::new(policy(), deny);
    run.rounds.push(start("msg_2") + &text(0, "then") + &end("end_turn"));
    run.feed((start("msg_1") + &text(0, "t") + &call(1, "t1", "x", "{}") + &end("tool_use")).as_bytes());
    assert_eq!(run.blocks(), ["text:t", "text:then"]);
    assert_eq!(run.out.matches("message_start").count(), 2, "one event, named twice");
    assert!(run.out.contains("msg_1") && !run.out.contains("msg_2"));
    assert!(run.out.contains(r#""usage":{"output_tokens":10,"input_tokens":10}"#), "{}", run.out);
    assert_eq!(run.asked, ["x {}", "stop end_turn then"]);
    assert_eq!(run.stream.last_id(), "msg_2");
    let record = run.records.last().unwrap();
    assert_eq!(record.rounds.len(), 2);
}

#[test]
fn denials_end_the_answer_with_their_reasons_when_there_is_no_next_round() {
    let mut run = Run::new(policy(), deny);
    run.feed((start("m") + &call(0, "t1", "x", "{}") + &call(1, "t2", "x", "{}") + &end("tool_use")).as_bytes());
    assert_eq!(run.blocks(), ["text:no t1\nno t2"]);
    assert!(run.out.contains(r#""stop_reason":"end_turn""#) && !run.out.contains(r#""stop_reason":"tool_use""#));
    assert!(run.out.ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
}

#[test]
fn denial_rounds_are_capped() {
    let mut run = Run::new(policy(), deny);
    for round in 0..5 {
        run.rounds.push(start("m") + &call(0, &format!("t{round}"), "x", "{}") + &end("tool_use"));
    }
    run.feed((start("m") + &call(0, "t", "x", "{}") + &end("tool_use")).as_bytes());
    assert_eq!(run.rounds.len(), 2, "three continuations");
    assert_eq!(run.blocks(), ["text:no t2"]);
}

#[test]
fn a_stop_hook_can_go_on_and_block() {
    let mut run = Run::new(policy(), allow);
    run.stops = vec![StopVerdict::Continue("more".into()), StopVerdict::End];
    run.rounds.push(start("m2") + &text(0, "two") + &end("end_turn"));
    run.feed((start("m1") + &text(0, "one") + &end("end_turn")).as_bytes());
    assert_eq!(run.blocks(), ["text:one", "text:two"]);
    assert_eq!(run.asked, ["stop end_turn one", "stop end_turn two"]);
    assert_eq!(run.records.last().unwrap().rounds[0].after, After::User("more".into()));

    let mut run = Run::new(policy(), allow);
    run.stops = vec![StopVerdict::Block("policy is down".into())];
    run.feed((start("m1") + &text(0, "one") + &end("end_turn")).as_bytes());
    assert!(
        run.out.contains("hook_blocked") && run.out.contains("policy is down") && !run.out.contains("message_stop")
    );

    let mut run = Run::new(policy(), allow);
    run.stops = vec![StopVerdict::Continue("more".into())];
    let answer = start("m1") + &text(0, "one") + &end("end_turn");
    run.feed(answer.as_bytes());
    assert_eq!(run.blocks(), ["text:one"], "without a next round the answer ends as it stood");
    assert!(run.out.contains(r#""stop_reason":"end_turn""#));
}

#[test]
fn what_was_cut_off_is_withheld_and_never_repaired() {
    for input in [r#"{"path":"a.txt","body":"half"#, r#"{"path":"a.txt"}"#] {
        let mut run = Run::new(policy(), allow);
        run.feed((start("m") + &text(0, "t") + &call(1, "t1", "x", input) + &end("max_tokens")).as_bytes());
        assert_eq!(run.blocks(), ["text:t"]);
        assert_eq!(run.asked, ["truncated x"]);
        assert!(run.out.contains(r#""stop_reason":"max_tokens""#));
    }
    let mut run = Run::new(policy(), allow);
    let ungated = start("m") + &call(0, "t1", "free", r#"{"pa"#) + &end("max_tokens");
    run.feed(ungated.as_bytes());
    assert_eq!(run.out, ungated, "a call that no one decides about is relayed as the truncated thing it is");
    let mut run = Run::new(policy(), allow);
    run.feed((start("m") + &call(0, "t1", "x", r#"{"pa"#) + &end("tool_use")).as_bytes());
    assert!(run.asked[0].contains("not valid JSON"), "{:?}", run.asked);
}

#[test]
fn a_provider_error_discards_what_is_undecided() {
    let error = event(r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#);
    let mut run = Run::new(policy(), allow);
    let head = start("m") + &text(0, "t");
    let begun = call(1, "t1", "x", "{}");
    run.feed((head + &begun.split_inclusive("\n\n").take(2).collect::<String>() + &error).as_bytes());
    assert!(run.out.ends_with(&error) && !run.out.contains("tool_use"), "{}", run.out);
    assert_eq!(run.asked, ["failed overloaded_error"]);
}

#[test]
fn a_finished_text_ends_before_the_error() {
    let error = event(r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#);
    let begun = call(1, "t1", "x", "{}").split_inclusive("\n\n").take(2).collect::<String>();
    for between in [String::new(), begun] {
        let mut run = Run::new(policy(), allow);
        run.feed((start("m") + &text(0, "t") + &between + &error).as_bytes());
        assert_eq!(run.out, start("m") + &text(0, "t") + &error);
        let mut run = Run::new(policy(), allow);
        run.feed((start("m") + &text(0, "t") + &between).as_bytes());
        run.stream.end_of_input(run.now, None);
        run.drain();
        assert!(run.out.starts_with(&(start("m") + &text(0, "t") + "event: error")), "{}", run.out);
    }
}

#[test]
fn an_event_that_could_hide_a_call_ends_the_answer() {
    let hidden = "event: ping\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"x\",\"input\":{}}}\n\n";
    let mut run = Run::new(policy(), allow);
    run.feed((start("m") + hidden).as_bytes());
    assert!(run.out.contains("event: error") && !run.out.contains("tool_use"), "{}", run.out);
}

#[test]
fn keep_alives_come_while_a_call_is_held_and_count_as_content_when_it_is_long() {
    fn pending(run: &mut Run) -> String {
        let mut out = String::new();
        while let Some(bytes) = run.stream.output() {
            out += std::str::from_utf8(&bytes).unwrap();
        }
        out
    }
    for with_text in [true, false] {
        let mut run = Run::new(policy(), allow);
        let lead = if with_text { text(0, "t") } else { String::new() };
        let index = u32::from(with_text);
        let answer = start("m") + &lead + &call(index, "t1", "x", "{}") + &end("tool_use");
        run.stream.chunk(run.now, Bytes::from(answer.clone()));
        run.out = pending(&mut run);
        let Some(Action::Decide { slot, .. }) = run.stream.action() else { panic!() };
        let mut kinds = Vec::new();
        for _ in 0..8 {
            let due = run.stream.deadline().unwrap();
            run.now = due;
            run.stream.timeout(due);
            let sign = pending(&mut run);
            kinds.push(if sign.contains("ping") { "ping" } else { "text" });
            run.out += &sign;
        }
        assert_eq!(kinds, ["ping", "ping", "ping", "ping", "ping", "text", "text", "text"]);
        run.stream.verdict(run.now, slot, CallVerdict::Allow);
        run.drain();
        let expected: &[&str] = if with_text { &["text:t", "x:{}"] } else { &["text:", "x:{}"] };
        assert_eq!(run.blocks(), expected);
        assert_eq!(run.records.len(), usize::from(!with_text), "the client's empty text is not the model's");
    }
}

#[test]
fn a_hold_has_an_end() {
    let mut run = Run::new(policy(), allow);
    run.stream.chunk(run.now, Bytes::from(start("m") + &call(0, "t1", "x", "{}") + &end("tool_use")));
    assert!(matches!(run.stream.action(), Some(Action::Decide { .. })));
    run.now += Duration::from_secs(240);
    run.stream.timeout(run.now);
    let action = run.stream.action();
    assert!(matches!(&action, Some(Action::Undecidable { why, .. }) if why.kind == FailureKind::Timeout), "{action:?}");
}

#[test]
fn a_call_over_the_bound_is_undecidable() {
    let mut run = Run::new(Policy { max_held: 2000, ..policy() }, allow);
    let mut answer = start("m") + call(0, "t1", "x", "{}").split_inclusive("\n\n").next().unwrap();
    for _ in 0..40 {
        answer += &event(
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"                                "}}"#,
        );
    }
    run.feed((answer + &stop(0) + &end("tool_use")).as_bytes());
    assert!(run.asked[0].contains("over 2000 bytes"), "{:?}", run.asked);
    assert!(!run.out.contains("tool_use"), "{}", run.out);
}

#[test]
fn an_earlier_attempt_is_resumed() {
    let mut first = Run::new(policy(), deny);
    first.rounds.push(String::new());
    first.feed((start("msg_1") + &text(0, "t") + &call(1, "t1", "x", "{}") + &end("tool_use")).as_bytes());
    let rounds = first.stream.record().rounds;
    let mut run = Run::new(policy(), allow);
    run.stream = Stream::resume(policy(), rounds, "msg_1", "m").unwrap();
    run.feed((start("msg_2") + &text(0, "then") + &end("end_turn")).as_bytes());
    assert_eq!(run.blocks(), ["text:t", "text:then"]);
    assert!(run.out.contains("msg_1") && !run.out.contains("msg_2"));
    assert!(run.out.contains(r#""output_tokens":10"#));
}
