//! Making one user message true: what was decided about its prompts, and what belongs beside its results.

use bytes::Bytes;

use super::rewrite::{Known, PromptDecision};
use super::spoken::Prompt;
use crate::wire::conversation::{Conversation, Message, Part, PartKind, Typed};
use crate::wire::json::{Cursor, Edits, Inserts, Span, quote, splice};
use crate::wire::protocol::Protocol;

/// A user message that is edited.
pub(super) struct UserMessage<'a> {
    pub(super) protocol: Protocol,
    pub(super) conversation: &'a Conversation,
    pub(super) message: &'a Message,
    /// The results in it answer calls that are left out.
    pub(super) orphaned: bool,
    /// What callbacks brought.
    pub(super) messages: Vec<String>,
    /// Its prompts, in order.
    pub(super) prompts: Vec<(Prompt, PromptDecision)>,
}

/// The edits of a list of parts that are under way.
struct Changes<'a> {
    drop: Vec<bool>,
    inserts: Inserts,
    edits: &'a mut Edits,
}

impl UserMessage<'_> {
    /// Collects the edits. `supplied` are results that the client does not have. Returns whether the whole message is to be
    /// left out.
    pub(super) fn edit(&self, supplied: Vec<Bytes>, known: &impl Known, edits: &mut Edits) -> bool {
        let parts = &self.message.parts;
        let drop = parts.iter().map(|part| self.orphaned && part.is_result()).collect();
        let mut changes = Changes { drop, inserts: Inserts::default(), edits };
        let last_result = parts.iter().rposition(Part::is_result);
        for part in self.beside_results(supplied, known) {
            match last_result {
                Some(at) => changes.inserts.after(at, part),
                None => changes.inserts.before(0, part),
            }
        }
        for (prompt, decision) in &self.prompts {
            if decision.denied.is_some() {
                self.take_out(prompt, None, &mut changes);
                continue;
            }
            if let Some(replacement) = &decision.replacement {
                self.replace(prompt, replacement, &mut changes);
            }
            // All results come first in a message.
            let spoken = parts[prompt.parts.clone()].iter().rposition(Part::is_prompt);
            let at = spoken.map(|at| prompt.parts.start + at).or(last_result).unwrap_or(parts.len().saturating_sub(1));
            for text in &decision.context {
                changes.inserts.after(at, self.protocol.text_part(text));
            }
        }
        for text in &self.messages {
            changes.inserts.after(parts.len().saturating_sub(1), self.protocol.text_part(text));
        }
        let Changes { drop, inserts, edits } = changes;
        if !parts.is_empty() && drop.iter().all(|drop| *drop) && inserts.is_empty() {
            return true;
        }
        if self.message.plain {
            self.splice_plain(drop == [true], inserts, edits);
        } else {
            let spans: Vec<Span> = parts.iter().map(|part| part.span).collect();
            splice(edits, &spans, &drop, inserts);
        }
        false
    }

    /// What the model is to read with the results: those that the client does not have, and what was added to calls.
    fn beside_results(&self, mut supplied: Vec<Bytes>, known: &impl Known) -> Vec<Bytes> {
        for part in &self.message.parts {
            if let PartKind::Result { id, .. } = part.kind {
                let context = known.call_context(&self.conversation.string(id));
                supplied.extend(context.iter().map(|text| self.protocol.text_part(text)));
            }
        }
        supplied
    }

    /// Takes a prompt out, but for the part of that index.
    fn take_out(&self, prompt: &Prompt, but: Option<usize>, changes: &mut Changes<'_>) {
        for index in prompt.parts.clone().filter(|index| Some(*index) != but) {
            match &self.message.parts[index].kind {
                PartKind::Text(_) => changes.drop[index] = true,
                // What is not text stays beside a replacement.
                PartKind::Media { .. } => changes.drop[index] |= but.is_none(),
                PartKind::Result { content, typed, .. } => self.take_out_of_result(*content, typed, changes.edits),
                _ => {}
            }
        }
    }

    /// A text of a result that holds nothing else goes as a part: texts must not be empty.
    fn take_out_of_result(&self, content: Option<Span>, typed: &[Typed], edits: &mut Edits) {
        let text = &self.conversation.text;
        let Some(content) = content.filter(|_| !typed.is_empty()) else { return };
        let mut elements = Vec::new();
        if content.of(text).starts_with(b"[") {
            let read =
                Cursor::new_at(text, content.start).array(|cursor| cursor.skip().map(|span| elements.push(span)));
            debug_assert!(read.is_ok(), "it was read before");
        }
        let is_in = |typed: &&Typed, element: &Span| element.start < typed.whole.start && typed.whole.end < element.end;
        let alone = |element: &Span| typed.iter().any(|typed| typed.alone && is_in(&typed, element));
        let drop: Vec<bool> = elements.iter().map(alone).collect();
        for typed in typed {
            edits.remove(typed.whole);
        }
        splice(edits, &elements, &drop, Inserts::default());
    }

    /// All texts of the prompt become one, in the last one's place: clients mark the last part for the provider's cache.
    fn replace(&self, prompt: &Prompt, with: &str, changes: &mut Changes<'_>) {
        let parts = &self.message.parts;
        let of_prompt = || prompt.parts.clone().rev();
        let text = of_prompt().find(|index| matches!(parts[*index].kind, PartKind::Text(_)));
        let last = text.or_else(|| of_prompt().find(|index| parts[*index].is_typed()));
        match last.map(|index| (index, &parts[index].kind)) {
            Some((index, PartKind::Text(text))) => {
                if !self.message.plain {
                    changes.edits.replace(*text, quote(with));
                }
                self.take_out(prompt, Some(index), changes);
            }
            Some((index, PartKind::Result { content, typed, .. })) => {
                if let Some((last, others)) = typed.split_last() {
                    let quoted = Bytes::from(quote(with));
                    changes.edits.replace(last.words, quoted.slice(1..quoted.len() - 1));
                    self.take_out_of_result(*content, others, changes.edits);
                }
                self.take_out(prompt, Some(index), changes);
            }
            _ => changes.inserts.after(prompt.parts.end.saturating_sub(1), self.protocol.text_part(with)),
        }
    }

    /// A content that is one string becomes a list when something is to stand beside it.
    fn splice_plain(&self, dropped: bool, inserts: Inserts, edits: &mut Edits) {
        let Some(content) = self.message.content else { return };
        let replacement = self.prompts.last().and_then(|(_, decision)| decision.replacement.as_deref());
        let text = match replacement {
            Some(replacement) => Bytes::from(quote(replacement)),
            None => self.conversation.slice(content),
        };
        if inserts.is_empty() {
            if replacement.is_some() {
                edits.replace(content, text);
            }
            return;
        }
        let own = (!dropped).then(|| self.protocol.text_part_of(&text));
        let list: Vec<Bytes> = inserts.around(own);
        let list: Vec<&[u8]> = list.iter().map(|part| &part[..]).collect();
        edits.replace(content, [b"[", &list.join(&b","[..])[..], b"]"].concat());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::id::Digest;
    use crate::ledger::anchor::Anchors;
    use crate::ledger::record::AnswerRecord;
    use crate::ledger::rewrite::rewrite;
    use crate::wire::anthropic;

    /// Prompts with what was decided about them.
    #[derive(Default)]
    struct Decided(Vec<(Digest, PromptDecision)>);

    impl Decided {
        /// Of the prompt in the last of these messages.
        fn and(mut self, messages: &str, decision: PromptDecision) -> Self {
            let conversation = read(messages);
            self.0.push((Anchors::of(&conversation).prompt(conversation.messages.len() - 1), decision));
            self
        }
    }

    impl Known for Decided {
        fn has_prompts(&self) -> bool {
            !self.0.is_empty()
        }

        fn prompt(&self, prompt: Digest) -> Option<PromptDecision> {
            self.0.iter().find(|(id, _)| *id == prompt).map(|(_, decision)| decision.clone())
        }

        fn answer(&self, _: Digest, _: Digest) -> Option<Arc<AnswerRecord>> {
            None
        }

        fn answer_by_calls(&self, _: Digest) -> Option<Arc<AnswerRecord>> {
            None
        }

        fn is_moved_refusal(&self, _: Digest, _: Digest) -> bool {
            false
        }

        fn call_context(&self, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn messages(&self, _: Digest) -> Vec<String> {
            Vec::new()
        }
    }

    fn read(messages: &str) -> Conversation {
        anthropic::parse(&Bytes::from(format!(r#"{{"messages":[{messages}]}}"#)), true).unwrap()
    }

    fn run(messages: &str, known: &Decided) -> String {
        let conversation = read(messages);
        let anchors = Anchors::of(&conversation);
        let mut edits = Edits::default();
        rewrite(Protocol::Anthropic, &conversation, &anchors, known, Vec::new(), &mut edits);
        let out = String::from_utf8(edits.apply(&conversation.text).to_bytes().to_vec()).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
        out.strip_prefix(r#"{"messages":["#).unwrap().strip_suffix("]}").unwrap().to_owned()
    }

    fn allowed() -> PromptDecision {
        PromptDecision::default()
    }

    fn denied() -> PromptDecision {
        PromptDecision { denied: Some("no".into()), ..PromptDecision::default() }
    }

    fn replaced(with: &str) -> PromptDecision {
        PromptDecision { replacement: Some(with.into()), ..PromptDecision::default() }
    }

    fn user(parts: &[&str]) -> String {
        format!(r#"{{"role":"user","content":[{}]}}"#, parts.join(","))
    }

    fn text(text: &str) -> String {
        format!(r#"{{"type":"text","text":"{text}"}}"#)
    }

    fn result(content: &str) -> String {
        format!(r#"{{"type":"tool_result","tool_use_id":"t", "content": {content},"is_error":false}}"#)
    }

    fn reminder(words: &str) -> String {
        format!(r"<system-reminder>\n{words}\n</system-reminder>")
    }

    const TYPED: &str = r#"The user sent a new message while you were working:\nbad \"one\""#;

    #[test]
    fn words_in_a_result_are_taken_out_of_it() {
        let typed = reminder(TYPED);
        let part = text(&typed);
        for (content, left) in [
            (format!(r#""out\u0021\n\n{typed}""#), r#""out\u0021""#),
            (format!(r#""out\n\n{typed}\n\n{typed}""#), r#""out""#),
            (format!(r#""{typed}""#), r#""""#),
            (format!(r#"[ {}, {part} ]"#, text("out")), r#"[ {"type":"text","text":"out"} ]"#),
            (format!(r#"[{part},{{"type":"image"}},{part}]"#), r#"[{"type":"image"}]"#),
            (format!("[{part},{part}]"), "[]"),
        ] {
            let message = |content: &str| user(&[&result(content), &result(r#""2""#)]);
            let known = Decided::default().and(&message(&content), denied());
            assert_eq!(run(&message(&content), &known), message(left), "{content}");
            // With the refusal, and with what is said later.
            let later =
                format!(r#"{},{{"role":"assistant","content":"no"}},{}"#, message(&content), user(&[&text("c")]));
            assert_eq!(run(&later, &known), format!("{},{}", message(left), user(&[&text("c")])));
        }
    }

    #[test]
    fn words_in_a_result_are_replaced_within_their_marks() {
        let message = |words: &str| user(&[&result(&format!(r#""out\n\n{}""#, reminder(words))), &result(r#""2""#)]);
        let known = Decided::default().and(&message(TYPED), replaced("\"good\""));
        assert_eq!(run(&message(TYPED), &known), message(r#"\"good\""#));
        // Of several the last one's place is taken.
        let two = |first: &str, words: &str| {
            user(&[&result(first), &result(&format!(r#"["out",{}]"#, text(&reminder(words))))])
        };
        let first = format!(r#""1\n\n{}""#, reminder(TYPED));
        let known = Decided::default().and(&two(&first, TYPED), replaced("good"));
        assert_eq!(run(&two(&first, TYPED), &known), two(r#""1""#, "good"));
    }

    #[test]
    fn context_stands_behind_all_results() {
        let message = |after: &[&str]| {
            let typed = result(&format!(r#""out\n\n{}""#, reminder(TYPED)));
            user(&[&[&*typed, &*result(r#""2""#)], after].concat())
        };
        let decision = PromptDecision { context: vec!["<c>".into()], ..PromptDecision::default() };
        let known = Decided::default().and(&message(&[]), decision);
        assert_eq!(run(&message(&[]), &known), message(&[&text("<c>")]));
    }

    #[test]
    fn words_in_a_result_do_not_bring_back_a_turn() {
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}"#;
        let turn = format!(
            r#"{},{call},{}"#,
            user(&[&text("bad")]),
            user(&[&result(&format!(r#""out\n\n{}""#, reminder(TYPED)))])
        );
        let known = Decided::default().and(&user(&[&text("bad")]), denied()).and(&turn, allowed());
        let next = user(&[&text("c")]);
        assert_eq!(run(&format!(r#"{turn},{{"role":"assistant","content":"b"}},{next}"#), &known), next);
    }

    #[test]
    fn what_was_decided_before_holds_where_it_is_joined_with_more() {
        let (bad, more) = (text(r"bad\n"), text("more"));
        let joined = user(&[&bad, &more]);
        let first = || user(&[&text("bad")]);
        let known = || Decided::default().and(&first(), denied());
        assert_eq!(run(&joined, &known()), user(&[&more]));
        for trimmed in ["bad", r"bad  \n", r"bad\n\n"] {
            assert_eq!(run(&user(&[&text(trimmed), &more]), &known()), user(&[&more]), "{trimmed}");
        }
        let new = Decided::default().and(&first(), replaced("good"));
        assert_eq!(run(&joined, &new), user(&[&text("good"), &more]));
        // The rest has its own decision, as if it were the next message.
        let both = known().and(&format!("{},{}", first(), user(&[&more])), replaced("less"));
        assert_eq!(run(&joined, &both), user(&[&text("less")]));
        let rest = Decided::default().and(&first(), allowed());
        let rest = rest.and(&format!("{},{}", first(), user(&[&more])), denied());
        assert_eq!(run(&joined, &rest), user(&[&bad]));
        // Results stay where words in them, or beside them, are taken out.
        let typed = result(&format!(r#""out\n\n{}""#, reminder(TYPED)));
        let known = Decided::default().and(&user(&[&typed]), denied());
        assert_eq!(run(&user(&[&typed, &more]), &known), user(&[&result(r#""out""#), &more]));
    }

    #[test]
    fn what_was_decided_of_the_whole_goes_before_its_parts() {
        let (a, b, c) = (text("a"), text("b"), text("c"));
        let known = Decided::default().and(&user(&[&a]), allowed()).and(&user(&[&a, &b]), denied());
        assert_eq!(run(&user(&[&a, &b]), &known), "");
        assert_eq!(run(&user(&[&a, &b, &c]), &known), user(&[&c]));
        // A handler's failure is no decision.
        let failed = PromptDecision { failed: true, ..denied() };
        let known = Decided::default().and(&user(&[&a]), failed);
        assert_eq!(run(&user(&[&a, &b]), &known), user(&[&a, &b]));
    }
}
