//! Whose request it is: tenant, session, agent.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use crate::id::{Hasher, SessionKey, Tenant, ThreadKey};
use crate::ledger::{Ledger, Lineage, Sighting, TurnMark};
use crate::time::Timestamp;
use crate::wire::client::ClientIdentity;
use crate::wire::conversation::Conversation;
use crate::wire::protocol::Protocol;

/// How many bytes of a prompt tell it from another one in the same place.
const MARKED_BYTES: usize = 256;

/// Whose request it is.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) thread: ThreadKey,
    pub(super) parent_agent: Option<Arc<str>>,
    /// What the answer that the request goes on from was, with server-side history.
    pub(super) lineage: Option<Lineage>,
}

/// Finds the session: by headers, by the body's own mark, by the answer that it goes on from, else by how it began.
pub(super) fn identify(
    protocol: Protocol,
    conversation: &Conversation,
    tenant: Tenant,
    client: ClientIdentity,
    ledger: &Ledger,
) -> Identity {
    let tenant = tenant.into_name();
    let ClientIdentity { session, agent, parent, .. } = client;
    let previous = conversation.previous.map(|span| conversation.string(span));
    let lineage = previous.and_then(|id| ledger.lineage(&tenant, &id));
    let named = session.or_else(|| protocol.session(conversation));
    let thread = match (named, &lineage) {
        (None, Some(lineage)) => lineage.thread.clone(),
        (named, _) => {
            let session = named.unwrap_or_else(|| by_beginning(&tenant, conversation));
            let session = SessionKey { tenant, session: session.into() };
            ThreadKey { session, agent: agent.map(Into::into) }
        }
    };
    Identity { thread, parent_agent: parent.map(Into::into), lineage }
}

/// What a request tells of its session. `own`: it is of the agent's own conversation.
pub(super) fn sighting<'a>(
    conversation: &Conversation,
    own: bool,
    program: Option<&'static str>,
    model: Option<&'a Arc<str>>,
) -> Sighting<'a> {
    let bare = Sighting::at(Instant::now(), Timestamp::now());
    if !own {
        return Sighting { client: program, ..bare };
    }
    Sighting { client: program, model, turn: turn_mark(conversation), ..bare }
}

/// A mark of the turn that a request begins. It is made of little, so that it costs nothing that grows with the
/// conversation: which message the prompt is, how it begins, how long it is, and what it goes on from.
fn turn_mark(conversation: &Conversation) -> Option<TurnMark> {
    let news = conversation.since_last_answer();
    let at = news.iter().rposition(|message| message.begins_turn())?;
    let text = news[at].span.of(&conversation.text);
    let mut hasher = DefaultHasher::new();
    (conversation.messages.len() - news.len() + at, text.len()).hash(&mut hasher);
    text[..text.len().min(MARKED_BYTES)].hash(&mut hasher);
    conversation.previous.map(|previous| previous.of(&conversation.text)).hash(&mut hasher);
    Some(hasher.finish())
}

/// A name made of the tenant, the instructions and the first message of the user: what stays the same over a conversation
/// of a client that names no session.
fn by_beginning(tenant: &str, conversation: &Conversation) -> String {
    let mut hasher = Hasher::new().with(b"session").with(tenant.as_bytes());
    if let Some(system) = conversation.system {
        hasher.part(&instructions(conversation.slice(system).as_ref()));
    }
    if let Some(first) = conversation.messages.iter().find(|message| message.begins_turn()) {
        hasher.part(conversation.said(&first.parts).as_bytes());
    }
    hasher.finish().to_uuid()
}

/// The texts of the instructions, without the marks that clients move from request to request.
fn instructions(system: &[u8]) -> Vec<u8> {
    let mut texts = Vec::new();
    if let Ok(tree) = crate::wire::json::parse_tree(system) {
        collect(&tree, &mut texts);
    }
    texts
}

fn collect(node: &crate::wire::json::Node<'_>, texts: &mut Vec<u8>) {
    use crate::wire::json::Value;
    match &node.value {
        Value::String(string) => string.chunks(|chunk| texts.extend_from_slice(chunk)),
        Value::Array(parts) => parts.iter().for_each(|part| collect(part, texts)),
        Value::Object(members) => {
            members.iter().filter(|member| member.key.is("text")).for_each(|member| collect(&member.value, texts));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;
    use crate::limits::Limits;

    fn session(body: &'static str) -> String {
        let conversation = Protocol::Anthropic.parse(&Bytes::from_static(body.as_bytes()), &HeaderMap::new()).unwrap();
        let ledger = Ledger::new(Limits::default());
        identify(Protocol::Anthropic, &conversation, Tenant::new("t"), ClientIdentity::default(), &ledger)
            .thread
            .session
            .session
            .to_string()
    }

    #[test]
    fn a_conversation_keeps_its_name_while_it_grows() {
        let first = session(r#"{"system":"s","messages":[{"role":"user","content":"hi"}]}"#);
        for other in [
            r#"{"system":[{"type":"text","text":"s","cache_control":{}}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},{"role":"assistant","content":"x"}]}"#,
            r#"{"messages":[{"role":"system","content":"later"},{"role":"user","content":"h\u0069"}],"system":"s"}"#,
        ] {
            assert_eq!(session(other), first, "{other}");
        }
        assert_ne!(session(r#"{"system":"t","messages":[{"role":"user","content":"hi"}]}"#), first);
        assert_eq!(session(r#"{"messages":[],"metadata":{"user_id":"{\"session_id\":\"abc\"}"}}"#), "abc");
    }

    #[test]
    fn a_turn_is_counted_once_and_every_turn_is() {
        let mark = |messages: &str| {
            let body = Bytes::from(format!(r#"{{"messages":[{messages}]}}"#));
            turn_mark(&Protocol::Anthropic.parse(&body, &HeaderMap::new()).unwrap())
        };
        let first = r#"{"role":"user","content":"go on"}"#;
        let second = format!(r#"{first},{{"role":"assistant","content":"x"}},{first}"#);
        assert!(mark(first).is_some() && mark(first) == mark(first));
        assert_ne!(mark(first), mark(&second), "the same words are another turn");
        assert_ne!(mark(first), mark(r#"{"role":"user","content":"go up"}"#));
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}"#;
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}"#;
        assert_eq!(mark(&format!("{first},{call},{result}")), None, "a result goes on with a turn");
    }
}
