//! Making a client's history true: what was denied, replaced, added or answered by hookgate is put where it belongs.

use std::sync::Arc;

use bytes::Bytes;

use super::anchor::{self, Anchors};
use super::prompt::UserMessage;
use super::record::{After, AnswerRecord, Round, Shown, SuppliedResult, calls_digest};
use super::spoken::Spoken;
use crate::id::Digest;
use crate::wire::answer::BlockKind;
use crate::wire::conversation::{Conversation, Message, Part, PartKind, Role};
use crate::wire::json::{Edits, Inserts, Span, splice};
use crate::wire::protocol::Protocol;

/// What was decided about a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PromptDecision {
    /// Why it was refused, if it was.
    pub(crate) denied: Option<String>,
    /// It was refused because a handler failed: when it is sent again, it is asked about again.
    pub(crate) failed: bool,
    /// What stands in its place.
    pub(crate) replacement: Option<String>,
    /// What follows it, delimited and ready to be read by the model.
    pub(crate) context: Vec<String>,
}

/// What is known about a history: the ledger answers, tests may.
pub(crate) trait Known {
    /// Whether there is any decision about a prompt.
    fn has_prompts(&self) -> bool;
    /// The decision about a prompt.
    fn prompt(&self, prompt: Digest) -> Option<PromptDecision>;
    /// The record of an answer by the chain before it and its digest.
    fn answer(&self, before: Digest, own: Digest) -> Option<Arc<AnswerRecord>>;
    /// The record of an answer by the ids of its calls: for an echo whose text or history the client has changed.
    fn answer_by_calls(&self, calls: Digest) -> Option<Arc<AnswerRecord>>;
    /// Whether a message is a refusal that does not stand behind its own prompt, but behind this one: a client that sums
    /// up a conversation keeps the last answer.
    fn is_moved_refusal(&self, message: Digest, behind: Digest) -> bool;
    /// What the model is to read after the result of a call.
    fn call_context(&self, call_id: &str) -> Vec<String>;
    /// What callbacks brought, to stand behind the user's message with this anchor.
    fn messages(&self, behind: Digest) -> Vec<String>;
}

/// Collects the edits that make the history true. `pending` are results that belong into the first user message, with
/// server-side history.
pub(crate) fn rewrite(
    protocol: Protocol,
    conversation: &Conversation,
    anchors: &Anchors,
    known: &impl Known,
    mut pending: Vec<SuppliedResult>,
    edits: &mut Edits,
) {
    let answers = answers(conversation, anchors, known);
    // Whether the turn under the cursor is left out.
    let mut dropped = false;
    let mut last_prompt = Digest::EMPTY;
    let mut drop = vec![false; conversation.messages.len()];
    let mut inserts = Inserts::default();
    for (index, message) in conversation.messages.iter().enumerate() {
        match message.role {
            Role::System => {}
            Role::Assistant => {
                if !pending.is_empty() {
                    // The client sent no results for the calls that it got: the refused ones still need theirs.
                    inserts.before(index, protocol.user_message(&results(protocol, std::mem::take(&mut pending))));
                }
                drop[index] = dropped || known.is_moved_refusal(anchors.own[index], last_prompt);
                if let Some(record) = answers[index].as_ref().filter(|_| !drop[index]) {
                    restore(protocol, conversation, message, record, edits);
                    pending = record.open_results().to_vec();
                }
            }
            Role::User => {
                // Results in the turn that is left out answer calls that are left out with it.
                let orphaned = dropped;
                // So do those with words of the user in them: the tool may have written these itself.
                if orphaned && !message.begins_turn() {
                    drop[index] = true;
                    continue;
                }
                let prompts = Spoken::in_message(conversation, anchors, index, known).decided(known);
                if let Some((prompt, decision)) = prompts.last() {
                    last_prompt = prompt.id;
                    dropped = decision.denied.is_some();
                }
                let messages = if dropped { Vec::new() } else { known.messages(anchors.prompt(index)) };
                let parts = UserMessage { protocol, conversation, message, orphaned, messages, prompts };
                drop[index] = parts.edit(results(protocol, std::mem::take(&mut pending)), known, edits);
            }
        }
    }
    if !pending.is_empty()
        && let Some(last) = conversation.messages.len().checked_sub(1)
    {
        inserts.after(last, protocol.user_message(&results(protocol, pending)));
    }
    let spans: Vec<Span> = conversation.messages.iter().map(|message| message.span).collect();
    splice(edits, &spans, &drop, inserts);
}

/// The record of each message that has one. Some servers use the same call ids in every answer, so a record that was
/// found in its place is nowhere else, and one is used by its calls only once.
fn answers(conversation: &Conversation, anchors: &Anchors, known: &impl Known) -> Vec<Option<Arc<AnswerRecord>>> {
    let is_answer = |message: &Message| message.role == Role::Assistant;
    let in_place = conversation.messages.iter().enumerate();
    let mut found: Vec<Option<Arc<AnswerRecord>>> = in_place
        .map(|(index, message)| {
            is_answer(message).then(|| known.answer(anchors.before[index], anchors.own[index])).flatten()
        })
        .collect();
    for (index, message) in conversation.messages.iter().enumerate() {
        if found[index].is_some() || !is_answer(message) {
            continue;
        }
        let record = calls(conversation, message).and_then(|calls| known.answer_by_calls(calls));
        let used = |record: &Arc<AnswerRecord>| found.iter().flatten().any(|known| Arc::ptr_eq(known, record));
        found[index] = record.filter(|record| !used(record));
    }
    found
}

fn results(protocol: Protocol, supplied: Vec<SuppliedResult>) -> Vec<Bytes> {
    supplied.iter().map(|result| protocol.result(&result.call_id, &result.text, result.refused)).collect()
}

fn calls(conversation: &Conversation, message: &Message) -> Option<Digest> {
    let ids: Vec<String> = message
        .parts
        .iter()
        .filter_map(|part| match part.kind {
            PartKind::Call { id, .. } => Some(conversation.string(id)),
            _ => None,
        })
        .collect();
    calls_digest(ids.iter().map(String::as_str))
}

/// Puts an answer's rounds in the place of the client's echo of it.
fn restore(
    protocol: Protocol,
    conversation: &Conversation,
    message: &Message,
    record: &AnswerRecord,
    edits: &mut Edits,
) {
    if !record.differs() {
        return;
    }
    let pieces = aligned(protocol, conversation, message, record).or_else(|| from_record(record));
    if let ([_], false, Some(pieces)) = (record.rounds.as_slice(), message.plain, &pieces)
        && let [round] = pieces.as_slice()
        && insert_hidden(message, record, round, edits)
    {
        return;
    }
    match pieces {
        Some(pieces) => {
            let messages: Vec<Bytes> = record
                .rounds
                .iter()
                .zip(&pieces)
                .enumerate()
                .flat_map(|(index, (round, parts))| {
                    let parts: Vec<Bytes> = parts.iter().map(|piece| piece.bytes.clone()).collect();
                    let last = index + 1 == record.rounds.len();
                    let said = (!parts.is_empty()).then(|| protocol.assistant_message(&parts));
                    said.into_iter().chain(if last { None } else { told(protocol, round) })
                })
                .collect();
            let messages: Vec<&[u8]> = messages.iter().map(|message| &message[..]).collect();
            edits.replace(message.span, messages.join(&b","[..]));
        }
        // The echo cannot be split. The hidden calls of the last round still must stand before the calls that the client
        // answers, since their results are about to be added.
        None => insert_before_calls(message, record, edits),
    }
}

/// What hookgate said after a round, as a message.
pub(crate) fn told(protocol: Protocol, round: &Round) -> Option<Bytes> {
    match &round.after {
        After::Nothing => None,
        After::Results(supplied) => Some(protocol.user_message(&results(protocol, supplied.clone()))),
        After::User(text) => Some(protocol.user_message(&[protocol.text_part(text)])),
    }
}

/// A part of a restored message.
struct Piece {
    bytes: Bytes,
    hidden: bool,
}

/// The rounds made of the client's own parts, with what it never saw put between: the client's cache marks and its choice
/// to drop reasoning stay. `None` when the echo differs from what the client got.
fn aligned(
    protocol: Protocol,
    conversation: &Conversation,
    message: &Message,
    record: &AnswerRecord,
) -> Option<Vec<Vec<Piece>>> {
    let mut echo = message.parts.iter().peekable();
    let mut rounds = Vec::with_capacity(record.rounds.len());
    for round in &record.rounds {
        let mut pieces = Vec::with_capacity(round.blocks.len());
        for recorded in &round.blocks {
            if recorded.shown == Shown::ModelOnly {
                pieces.push(Piece { bytes: recorded.block.json.clone()?, hidden: true });
                continue;
            }
            let thinking = recorded.block.kind == BlockKind::Thinking;
            let is_thinking = |part: &&Part| matches!(part.kind, PartKind::Thinking);
            if thinking && !echo.peek().is_some_and(is_thinking) {
                continue;
            }
            let same = |part: &&Part| anchor::of_part(conversation, part) == anchor::of_block(&recorded.block);
            // A block without content, which hookgate made to keep the stream alive, may have been dropped by the client.
            let part = match echo.next_if(same) {
                Some(part) => part,
                None if recorded.shown == Shown::ClientOnly => continue,
                None => return None,
            };
            if recorded.shown == Shown::Both {
                let bytes = conversation.slice(part.span);
                let bytes = if message.plain { protocol.text_part_of(&bytes) } else { bytes };
                pieces.push(Piece { bytes, hidden: false });
            }
        }
        rounds.push(pieces);
    }
    echo.next().is_none().then_some(rounds)
}

/// The rounds as they were recorded, without reasoning: the client joined or changed parts, so that nothing tells where
/// its reasoning belongs.
fn from_record(record: &AnswerRecord) -> Option<Vec<Vec<Piece>>> {
    let piece = |block: &crate::wire::answer::Block, hidden| Some(Piece { bytes: block.json.clone()?, hidden });
    record
        .rounds
        .iter()
        .map(|round| {
            let said = round.blocks.iter().filter(|recorded| recorded.shown != Shown::ClientOnly);
            let said = said.filter(|recorded| recorded.block.kind != BlockKind::Thinking);
            said.map(|recorded| piece(&recorded.block, recorded.shown == Shown::ModelOnly)).collect()
        })
        .collect()
}

/// With one round, only the hidden parts are put in; everything else stays as the client sent it. False when the parts do
/// not line up with the client's.
fn insert_hidden(message: &Message, record: &AnswerRecord, pieces: &[Piece], edits: &mut Edits) -> bool {
    let visible = pieces.iter().filter(|piece| !piece.hidden).count();
    if visible != message.parts.len() || record.shown().any(|block| block.shown == Shown::ClientOnly) {
        return false;
    }
    let mut inserts = Inserts::default();
    let mut seen = 0;
    for piece in pieces {
        match (piece.hidden, seen) {
            (false, _) => seen += 1,
            (true, 0) => inserts.before(0, piece.bytes.clone()),
            (true, seen) => inserts.after(seen - 1, piece.bytes.clone()),
        }
    }
    let spans: Vec<Span> = message.parts.iter().map(|part| part.span).collect();
    splice(edits, &spans, &vec![false; spans.len()], inserts);
    true
}

fn insert_before_calls(message: &Message, record: &AnswerRecord, edits: &mut Edits) {
    let Some(first) = message.parts.iter().position(|part| matches!(part.kind, PartKind::Call { .. })) else { return };
    let Some(last) = record.rounds.last() else { return };
    let mut inserts = Inserts::default();
    for recorded in last.blocks.iter().filter(|recorded| recorded.shown == Shown::ModelOnly) {
        if let Some(json) = &recorded.block.json {
            inserts.before(first, json.clone());
        }
    }
    let spans: Vec<Span> = message.parts.iter().map(|part| part.span).collect();
    splice(edits, &spans, &vec![false; spans.len()], inserts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::record::RecordedBlock;
    use crate::wire::anthropic;

    #[derive(Default)]
    struct Fake {
        message: Option<(usize, &'static str)>,
        prompt: Option<(&'static str, PromptDecision)>,
        answer: Option<AnswerRecord>,
        context: Option<(&'static str, &'static str)>,
        anchors: Option<Anchors>,
        texts: Vec<String>,
    }

    impl Known for Fake {
        fn has_prompts(&self) -> bool {
            self.prompt.is_some()
        }

        fn prompt(&self, prompt: Digest) -> Option<PromptDecision> {
            let (text, decision) = self.prompt.as_ref()?;
            let anchors = self.anchors.as_ref()?;
            let index = self.texts.iter().position(|known| known == text)?;
            (anchors.prompt(index) == prompt).then(|| decision.clone())
        }

        fn answer(&self, _: Digest, own: Digest) -> Option<Arc<AnswerRecord>> {
            let record = self.answer.as_ref()?;
            (record.shown_digest() == own).then(|| Arc::new(record.clone()))
        }

        fn answer_by_calls(&self, calls: Digest) -> Option<Arc<AnswerRecord>> {
            let record = self.answer.as_ref()?;
            (record.calls_digest() == Some(calls)).then(|| Arc::new(record.clone()))
        }

        fn is_moved_refusal(&self, _: Digest, _: Digest) -> bool {
            false
        }

        fn call_context(&self, call_id: &str) -> Vec<String> {
            self.context.filter(|(id, _)| *id == call_id).map(|(_, text)| text.to_owned()).into_iter().collect()
        }

        fn messages(&self, behind: Digest) -> Vec<String> {
            let anchors = self.anchors.as_ref();
            let stands = |(index, _): &(usize, &str)| anchors.is_some_and(|anchors| anchors.prompt(*index) == behind);
            self.message.filter(stands).map(|(_, text)| text.to_owned()).into_iter().collect()
        }
    }

    fn run(messages: &str, mut known: Fake) -> String {
        let body = Bytes::from(format!(r#"{{"messages":[{messages}],"x": 1}}"#));
        let conversation = anthropic::parse(&body, true).unwrap();
        let anchors = Anchors::of(&conversation);
        known.anchors = Some(anchors.clone());
        known.texts = conversation
            .messages
            .iter()
            .map(|message| message.texts().map(|text| conversation.string(text)).collect::<Vec<_>>().join("\n"))
            .collect();
        let mut edits = Edits::default();
        rewrite(Protocol::Anthropic, &conversation, &anchors, &known, Vec::new(), &mut edits);
        let out = String::from_utf8(edits.apply(&body).to_bytes().to_vec()).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
        out.strip_prefix(r#"{"messages":["#).unwrap().strip_suffix(r#"],"x": 1}"#).unwrap().to_owned()
    }

    fn denied(text: &'static str) -> Fake {
        let decision = PromptDecision { denied: Some("no".into()), ..PromptDecision::default() };
        Fake { prompt: Some((text, decision)), ..Fake::default() }
    }

    #[test]
    fn a_denied_turn_is_left_out() {
        let messages = r#"{"role":"user","content":"a"}, {"role":"assistant","content":"b"}, {"role":"user","content":"bad"},{"role":"assistant","content":"no"},{"role":"user","content":"c"}"#;
        let expected =
            r#"{"role":"user","content":"a"}, {"role":"assistant","content":"b"}, {"role":"user","content":"c"}"#;
        assert_eq!(run(messages, denied("bad")), expected);
    }

    #[test]
    fn a_denied_turn_takes_its_calls_and_results_with_it() {
        let messages = r#"{"role":"user","content":"bad"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]},{"role":"assistant","content":[{"type":"tool_use","id":"u","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"u","content":"r"},{"type":"text","text":"next"}]}"#;
        assert_eq!(run(messages, denied("bad")), r#"{"role":"user","content":[{"type":"text","text":"next"}]}"#);
    }

    #[test]
    fn results_beside_a_denied_prompt_stay() {
        let messages = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}, {"type":"text","text":"bad"}]},{"role":"assistant","content":"no"}"#;
        let expected = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}"#;
        assert_eq!(run(messages, denied("bad")), expected);
    }

    #[test]
    fn a_replacement_takes_the_place_of_all_texts() {
        let decision = PromptDecision {
            replacement: Some("new".into()),
            context: vec!["<c>".into()],
            ..PromptDecision::default()
        };
        let known = || Fake { prompt: Some(("a\nb", decision.clone())), ..Fake::default() };
        assert_eq!(
            run(
                r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{}},{"type":"text","text":"b","cache_control":{}}]}"#,
                known()
            ),
            r#"{"role":"user","content":[{"type":"image","source":{}},{"type":"text","text":"new","cache_control":{}},{"type":"text","text":"<c>"}]}"#
        );
        let known = Fake { prompt: Some(("a", decision.clone())), ..Fake::default() };
        assert_eq!(
            run(r#"{"role":"user", "content":"a"}"#, known),
            r#"{"role":"user", "content":[{"type":"text","text":"new"},{"type":"text","text":"<c>"}]}"#
        );
    }

    fn block(json: &'static str, shown: Shown) -> RecordedBlock {
        RecordedBlock { block: anthropic::read_block(&Bytes::from_static(json.as_bytes())).unwrap(), shown }
    }

    const THINK: &str = r#"{"type":"thinking","thinking":"t","signature":"s"}"#;
    const CALL_A: &str = r#"{"type":"tool_use","id":"a","name":"n","input":{}}"#;
    const CALL_B: &str = r#"{"type":"tool_use","id":"b","name":"n","input":{}}"#;
    const CALL_C: &str = r#"{"type":"tool_use","id":"c","name":"n","input":{}}"#;

    fn survivors() -> AnswerRecord {
        let blocks = vec![
            block(THINK, Shown::Both),
            block(CALL_A, Shown::Both),
            block(CALL_B, Shown::ModelOnly),
            block(CALL_C, Shown::Both),
        ];
        let after = After::Results(vec![SuppliedResult { call_id: "b".into(), text: "why".into(), refused: true }]);
        AnswerRecord { rounds: vec![Round { blocks, after, output_tokens: 0 }] }
    }

    #[test]
    fn a_denied_call_returns_to_its_place_with_its_result() {
        let known = Fake { answer: Some(survivors()), context: Some(("c", "ctx")), ..Fake::default() };
        let messages = format!(
            r#"{{"role":"assistant","content":[{THINK}, {CALL_A}, {CALL_C}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"1"}},{{"type":"tool_result","tool_use_id":"c","content":"3"}},{{"type":"text","text":"go"}}]}}"#
        );
        let expected = format!(
            r#"{{"role":"assistant","content":[{THINK}, {CALL_A},{CALL_B}, {CALL_C}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"1"}},{{"type":"tool_result","tool_use_id":"c","content":"3"}},{{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"why"}},{{"type":"text","text":"ctx"}},{{"type":"text","text":"go"}}]}}"#
        );
        assert_eq!(run(&messages, known), expected);
    }

    #[test]
    fn what_a_callback_brought_stands_at_the_end_of_its_message() {
        let said = r#"{"role":"assistant","content":"ok"},{"role":"user","content":"and?"}"#;
        let results =
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]},"#.to_owned() + said;
        let known = || Fake { message: Some((0, "[hookgate] done")), ..Fake::default() };
        let expected = format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"1"}},{{"type":"text","text":"[hookgate] done"}}]}},{said}"#
        );
        assert_eq!(run(&results, known()), expected);
        let plain = r#"{"role":"user","content":"go"},"#.to_owned() + said;
        let expected = format!(
            r#"{{"role":"user","content":[{{"type":"text","text":"go"}},{{"type":"text","text":"[hookgate] done"}}]}},{said}"#
        );
        assert_eq!(run(&plain, known()), expected);
    }

    #[test]
    fn an_echo_that_changed_still_gets_its_hidden_call() {
        let known = Fake { answer: Some(survivors()), ..Fake::default() };
        let messages = format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"edited"}},{CALL_A},{CALL_C}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"1"}}]}}"#
        );
        let out = run(&messages, known);
        assert!(out.contains(&format!("{CALL_A},{CALL_B},{CALL_C}")), "{out}");
        assert!(out.contains(r#""tool_use_id":"b","is_error":true"#), "{out}");
    }

    #[test]
    fn a_merged_answer_is_split_again() {
        let first = Round {
            blocks: vec![block(r#"{"type":"text","text":"one"}"#, Shown::Both), block(CALL_A, Shown::ModelOnly)],
            after: After::Results(vec![SuppliedResult { call_id: "a".into(), text: "why".into(), refused: true }]),
            output_tokens: 0,
        };
        let second = Round {
            blocks: vec![
                block(r#"{"type":"text","text":""}"#, Shown::ClientOnly),
                block(r#"{"type":"text","text":"two"}"#, Shown::Both),
            ],
            ..Round::default()
        };
        let record = AnswerRecord { rounds: vec![first, second] };
        let known = || Fake { answer: Some(record.clone()), ..Fake::default() };
        let result =
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":"why"}]}"#;
        let marked = r#"{"type":"text","text":"two","cache_control":{"type":"ephemeral"}}"#;
        let expected = format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"one"}},{CALL_A}]}},{result},{{"role":"assistant","content":[{marked}]}}"#
        );
        for middle in ["", r#"{"type":"text","text":""},"#] {
            let echo = format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"one"}},{middle}{marked}]}}"#);
            assert_eq!(run(&echo, known()), expected);
        }
        // The client joined the texts: the record's own blocks are used.
        let joined = run(r#"{"role":"assistant","content":"onetwo"}"#, known());
        assert_eq!(joined, expected.replace(marked, r#"{"type":"text","text":"two"}"#));
    }
}
