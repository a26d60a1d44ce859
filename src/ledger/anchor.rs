//! Anchors: digests of what was said, by which later requests find earlier decisions.
//!
//! Clients resend the history in a form of their own: they move `cache_control`, collapse lists of one text into a
//! string, drop reasoning, join neighbouring texts. A message's digest therefore covers only what survives that: who
//! speaks, the text (neighbouring parts joined), the ids and names of calls, the ids of results. Each message is chained to
//! the ones before it, so that five equal messages have five anchors.

use crate::id::{Digest, Hasher};
use crate::wire::answer::{Block, BlockKind};
use crate::wire::conversation::{Conversation, Message, Part, PartKind, Role};
use crate::wire::json::Str;

/// The most places at which a message is tried to be taken apart: each costs a digest. Clients join two or three.
const MAX_SEAMS: usize = 8;

/// The anchors of a request's messages.
#[derive(Clone, Debug)]
pub(crate) struct Anchors {
    /// For each message, the chain of all messages before it.
    pub(crate) before: Vec<Digest>,
    /// For each message, its own digest.
    pub(crate) own: Vec<Digest>,
    /// The chain of all messages.
    pub(crate) end: Digest,
}

impl Anchors {
    /// Computes the anchors. Instructions in mid-conversation are passed over: clients add and move them.
    pub(crate) fn of(conversation: &Conversation) -> Self {
        let mut chain = Digest::EMPTY;
        let mut before = Vec::with_capacity(conversation.messages.len());
        let mut own = Vec::with_capacity(conversation.messages.len());
        for message in &conversation.messages {
            before.push(chain);
            let digest = of_message(conversation, message);
            own.push(digest);
            if message.role != Role::System {
                chain = link(chain, digest);
            }
        }
        Anchors { before, own, end: chain }
    }

    /// The identity of the prompt in message `index`.
    pub(crate) fn prompt(&self, index: usize) -> Digest {
        link(self.before[index], self.own[index])
    }
}

/// The chain after one more message.
pub(crate) fn link(chain: Digest, message: Digest) -> Digest {
    let mut hasher = Hasher::new();
    hasher.digest(chain);
    hasher.digest(message);
    hasher.finish()
}

fn of_message(conversation: &Conversation, message: &Message) -> Digest {
    of_parts(conversation, message.role, &message.parts)
}

/// The places within a user's message at which a prompt may end and another one begin, because the client joined two
/// messages: how many parts are before it, and the digests that a message of these parts may have had. Clients put a
/// newline where they join texts.
pub(super) fn seams(conversation: &Conversation, message: &Message) -> Vec<(usize, Vec<Digest>)> {
    let mut seams = Vec::new();
    let mut digest = MessageDigest::new(message.role);
    // The last text, and the digest before it.
    let mut last: Option<(MessageDigest, String)> = None;
    let mut spoken = false;
    for (index, part) in message.parts.iter().enumerate() {
        if part.is_prompt() && spoken {
            let mut digests = vec![digest.clone().finish()];
            if let Some((before, text)) = &last {
                let ends = [text.strip_suffix('\n').unwrap_or(text), text.trim_end()];
                for end in ends.into_iter().filter(|end| end.len() < text.len()) {
                    let mut digest = before.clone();
                    digest.text(end.as_bytes());
                    digests.push(digest.finish());
                }
            }
            seams.push((index, digests));
            if seams.len() == MAX_SEAMS {
                break;
            }
        }
        if part.is_prompt() || part.is_typed() {
            spoken = true;
            last = match part.kind {
                PartKind::Text(text) => Some((digest.clone(), conversation.string(text))),
                _ => None,
            };
        }
        digest.part(conversation, part);
    }
    seams
}

/// The digest of a message of some of a message's parts.
pub(super) fn of_parts(conversation: &Conversation, role: Role, parts: &[Part]) -> Digest {
    let mut digest = MessageDigest::new(role);
    parts.iter().for_each(|part| digest.part(conversation, part));
    digest.finish()
}

/// The digest of a message that the model answers with these blocks.
pub(crate) fn of_answer<'a>(blocks: impl IntoIterator<Item = &'a BlockKind>) -> Digest {
    let mut digest = MessageDigest::new(Role::Assistant);
    blocks.into_iter().for_each(|kind| digest.block(kind));
    digest.finish()
}

/// The digest of a message that gives a reason in the place of an answer.
pub(super) fn of_refusal(reason: &str) -> Digest {
    let mut digest = MessageDigest::new(Role::Assistant);
    digest.text(reason.as_bytes());
    digest.finish()
}

/// The digest of one finished block, to be compared with [`of_part`].
pub(crate) fn of_block(block: &Block) -> Digest {
    of_answer([&block.kind])
}

/// The digest of one part of a model's message.
pub(crate) fn of_part(conversation: &Conversation, part: &Part) -> Digest {
    let mut digest = MessageDigest::new(Role::Assistant);
    digest.part(conversation, part);
    digest.finish()
}

#[derive(Clone)]
struct MessageDigest {
    hasher: Hasher,
    /// Bytes of the text that is being joined.
    text: usize,
}

impl MessageDigest {
    fn new(role: Role) -> Self {
        let role: &[u8] = match role {
            Role::User => b"user",
            Role::Assistant => b"assistant",
            Role::System => b"system",
        };
        MessageDigest { hasher: Hasher::new().with(role), text: 0 }
    }

    fn part(&mut self, conversation: &Conversation, part: &Part) {
        let text = &conversation.text;
        match &part.kind {
            PartKind::Text(span) => Str::at(text, *span).chunks(|chunk| self.text(chunk)),
            PartKind::ClientContext(_) | PartKind::Thinking => {}
            PartKind::Call { id, name, .. } => self.call(&conversation.string(*id), &conversation.string(*name)),
            PartKind::Result { id, typed, .. } => {
                self.other(b"result", conversation.string(*id).as_bytes());
                for typed in typed {
                    self.other(b"typed", conversation.stretch(typed.words).as_bytes());
                }
            }
            PartKind::Media { kind, .. } => self.other(b"media", kind.of(text)),
            PartKind::Other => self.other(b"other", b""),
        }
    }

    fn block(&mut self, kind: &BlockKind) {
        match kind {
            BlockKind::Text(text) => self.text(text.as_bytes()),
            BlockKind::Thinking => {}
            BlockKind::Call(call) => self.call(&call.id, &call.name),
            BlockKind::ProviderCall(_) | BlockKind::ProviderResult { .. } | BlockKind::Other => {
                self.other(b"other", b"")
            }
        }
    }

    fn text(&mut self, chunk: &[u8]) {
        self.text += chunk.len();
        self.hasher.piece(chunk);
    }

    fn call(&mut self, id: &str, name: &str) {
        self.other(id.as_bytes(), name.as_bytes());
    }

    fn other(&mut self, kind: &[u8], what: &[u8]) {
        self.end_text();
        self.hasher.part(kind);
        self.hasher.part(what);
    }

    fn end_text(&mut self) {
        if self.text > 0 {
            self.hasher.end(std::mem::take(&mut self.text));
            self.hasher.part(b"text");
        }
    }

    fn finish(mut self) -> Digest {
        self.end_text();
        self.hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::wire::anthropic;

    fn anchors(messages: &str) -> Anchors {
        let body = Bytes::from(format!(r#"{{"messages":[{messages}]}}"#));
        Anchors::of(&anthropic::parse(&body, true).unwrap())
    }

    #[test]
    fn what_clients_change_does_not_matter() {
        let plain = anchors(r#"{"role":"user","content":"hi"},{"role":"assistant","content":"a b"}"#);
        for other in [
            r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},
               {"role":"assistant","content":[{"type":"text","text":"a "},{"type":"text","text":"b"}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"<system-reminder>x"},{"type":"text","text":"h\u0069"}]},
               {"role":"system","content":"later"},
               {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a b"}]}"#,
        ] {
            assert_eq!(anchors(other).end, plain.end, "{other}");
        }
    }

    #[test]
    fn what_was_said_matters() {
        let one = anchors(r#"{"role":"user","content":"hi"}"#);
        for other in [
            r#"{"role":"user","content":"hi!"}"#,
            r#"{"role":"assistant","content":"hi"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","source":{}}]}"#,
        ] {
            assert_ne!(anchors(other).end, one.end, "{other}");
        }
        let five = anchors(&[r#"{"role":"user","content":"Done."}"#; 5].join(","));
        let mut prompts: Vec<Digest> = (0..5).map(|index| five.prompt(index)).collect();
        prompts.dedup();
        assert_eq!(prompts.len(), 5);
    }

    #[test]
    fn an_answer_and_its_echo_have_one_digest() {
        let echo = anchors(
            r#"{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"n","input":{}}]}"#,
        );
        let call = crate::wire::answer::Call { id: "t".into(), name: "n".into(), input: Bytes::from_static(b"{}") };
        let blocks = [BlockKind::Text("a".into()), BlockKind::Thinking, BlockKind::Call(call)];
        assert_eq!(of_answer(&blocks), echo.own[0]);
    }
}
