//! The native contract, version 1.

use bytes::Bytes;

use super::{Received, check_head, context, cut_reason, foreign_outcome, malformed, reason, text};
use crate::hooks::envelope::Envelope;
use crate::hooks::{Answer, Event, Failure, OutcomeKind, Replacement, Salvaged};
use crate::limits::MAX_REASON_BYTES;
use crate::wire::json::{Cursor, Node, Value, find_duplicate, parse_tree};

pub(super) fn request(envelope: &Envelope<'_>) -> Bytes {
    envelope.native()
}

/// Reads an answer as strictly as the contract asks.
pub(super) fn answer(event: Event, received: Received<'_>) -> Result<Answer, Failure> {
    check_head(&received, |status| status == 200)?;
    // An answer without a type is read, since nothing says that it is something else.
    if received.content_type.is_some_and(|value| !is_json(value)) {
        return Err(malformed("its answer is not application/json"));
    }
    if received.body.is_empty() {
        return Err(malformed("its answer is empty"));
    }
    let root = parse_tree(received.body).map_err(|error| malformed(format!("its answer is not JSON: {error}")))?;
    if let Ok(Some(duplicate)) = find_duplicate(received.body) {
        return Err(malformed(format!("a key stands twice in its answer, at byte {}", duplicate.offset)));
    }
    Fields::read(&root, received.body)?.understand(event, received.body)
}

#[derive(Default)]
struct Fields<'n, 't> {
    outcome: Option<String>,
    reason: Option<&'n Node<'t>>,
    replacement: Option<&'n Node<'t>>,
    context: Option<&'n Node<'t>>,
}

impl<'n, 't> Fields<'n, 't> {
    fn read(root: &'n Node<'t>, body: &[u8]) -> Result<Self, Failure> {
        let Value::Object(members) = &root.value else { return Err(malformed("its answer is not an object")) };
        let mut fields = Fields::default();
        let mut versioned = false;
        for member in members {
            let value = &member.value;
            match &*member.key.decode() {
                "schemaVersion" if value.span.of(body) == b"1" => versioned = true,
                "schemaVersion" => return Err(malformed("\"schemaVersion\" is not 1")),
                "outcome" => fields.outcome = Some(text(value, "outcome")?),
                "reason" => fields.reason = Some(value),
                "replacement" => fields.replacement = Some(value),
                "additionalContext" => fields.context = Some(value),
                _ => {
                    return Err(malformed(format!(
                        "an unknown field stands in its answer, at byte {}",
                        member.key.span().start
                    )));
                }
            }
        }
        if !versioned {
            return Err(malformed("\"schemaVersion\" is missing"));
        }
        Ok(fields)
    }

    fn understand(self, event: Event, body: &[u8]) -> Result<Answer, Failure> {
        let Some(outcome) = self.outcome else { return Err(malformed("\"outcome\" is missing")) };
        let kind = OutcomeKind::parse(&outcome)
            .filter(|kind| event.allows(*kind))
            .ok_or_else(|| foreign_outcome(event, &outcome))?;
        let misfit = |name: &str| Err(malformed(format!("\"{name}\" does not fit \"{outcome}\" of {}", event.name())));
        let refuses = matches!(kind, OutcomeKind::Deny | OutcomeKind::Continue);
        if self.reason.is_some() && !refuses {
            return misfit("reason");
        }
        if self.replacement.is_some() && kind != OutcomeKind::Modify {
            return misfit("replacement");
        }
        if self.context.is_some() && (refuses || !event.accepts_context()) {
            return misfit("additionalContext");
        }
        let given_reason = self.reason.map(|node| reason(text(node, "reason")?)).transpose()?.flatten();
        let added = self.context.map(|node| context(text(node, "additionalContext")?)).transpose()?.flatten();
        Ok(match kind {
            OutcomeKind::Pass => Answer::Pass { context: added },
            OutcomeKind::Deny => Answer::Deny { reason: given_reason },
            OutcomeKind::Continue => Answer::Continue { reason: given_reason },
            OutcomeKind::Modify => {
                let Some(node) = self.replacement else { return Err(malformed("\"replacement\" is missing")) };
                Answer::Modify { replacement: replacement(event, node, body)?, context: added }
            }
        })
    }
}

fn replacement(event: Event, node: &Node<'_>, body: &[u8]) -> Result<Replacement, Failure> {
    match (&node.value, event) {
        (Value::Object(_), Event::PreToolUse) => Ok(Replacement::Object(Bytes::copy_from_slice(node.span.of(body)))),
        (_, Event::PreToolUse) => Err(malformed("\"replacement\" is not an object")),
        _ => text(node, "replacement").map(Replacement::Text),
    }
}

fn is_json(content_type: &[u8]) -> bool {
    let Ok(value) = std::str::from_utf8(content_type) else { return false };
    let mut parts = value.split(';');
    let essence = parts.next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
        && parts.all(|parameter| match parameter.trim().split_once('=') {
            Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
                value.trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}

/// Looks for `"outcome": "deny"` in an answer that failed: whole or cut off, with text before or after it.
pub(super) fn salvage(body: &[u8]) -> Option<Salvaged> {
    let text = String::from_utf8_lossy(body);
    let mut cursor = Cursor::new_at(text.as_bytes(), text.find('{')?);
    let mut denied = false;
    let mut reason = None;
    // An error ends the walk; what was read before it counts.
    let _ = cursor.object(|cursor, key| {
        if key.is("outcome") {
            denied |= cursor.string_or_skip()?.is_some_and(|outcome| outcome.is("deny"));
        } else if key.is("reason") {
            let start = cursor.position();
            match cursor.string_or_skip() {
                Ok(string) => reason = string.and_then(|string| cut_reason(&string.decode())),
                Err(error) => {
                    reason = unfinished_string(&text, start);
                    return Err(error);
                }
            }
        } else {
            cursor.skip()?;
        }
        Ok(())
    });
    denied.then_some(Salvaged { reason })
}

/// The beginning of a string whose end is missing.
fn unfinished_string(text: &str, start: usize) -> Option<String> {
    /// An escaped character takes at most this many bytes, so that a cut inside one is healed by going back so far.
    const LONGEST_ESCAPE: usize = 12;
    let rest = text.get(start..)?.strip_prefix('"')?;
    // Six bytes of escape give at least one byte of text.
    let rest = &rest[..rest.floor_char_boundary(6 * MAX_REASON_BYTES)];
    (0..=LONGEST_ESCAPE).find_map(|back| {
        let quoted = format!("\"{}\"", rest.get(..rest.len().checked_sub(back)?)?);
        let string = Cursor::document(quoted.as_bytes(), |cursor| Ok(cursor.string()?.decode().into_owned())).ok()?;
        cut_reason(&string)
    })
}

#[cfg(test)]
#[path = "native_tests.rs"]
mod tests;
