//! The two ways of speaking with a handler.

mod claude_code;
mod native;

use bytes::Bytes;

use super::envelope::Envelope;
use super::{Answer, Dialect, Event, Failure, FailureKind, OutcomeKind, Salvaged};
use crate::limits::{MAX_CONTEXT_BYTES, MAX_HANDLER_ANSWER_BYTES, MAX_REASON_BYTES};
use crate::wire::json::{Node, Value};

/// An HTTP answer, as far as a dialect looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) status: u16,
    pub(crate) content_type: Option<&'a [u8]>,
    /// Whether the body is compressed; nobody asked for that.
    pub(crate) encoded: bool,
    pub(crate) body: &'a [u8],
    /// Whether that is the whole body; reading stops at the cap.
    pub(crate) complete: bool,
}

impl Dialect {
    /// The body of a request to a handler.
    pub(crate) fn request(self, envelope: &Envelope<'_>) -> Bytes {
        match self {
            Dialect::Native => native::request(envelope),
            Dialect::ClaudeCode => claude_code::request(envelope),
        }
    }

    /// Reads what a handler answered. In a failure a refusal that can still be read is kept, where the event has one.
    pub(crate) fn answer(self, event: Event, received: Received<'_>) -> Result<Answer, Failure> {
        let answer = match self {
            Dialect::Native => native::answer(event, received),
            Dialect::ClaudeCode => claude_code::answer(event, received),
        };
        answer.map_err(|failure| match event.allows(OutcomeKind::Deny) {
            true => Failure { deny: self.salvage(received.body), ..failure },
            false => failure,
        })
    }

    fn salvage(self, body: &[u8]) -> Option<Salvaged> {
        match self {
            Dialect::Native => native::salvage(body),
            Dialect::ClaudeCode => claude_code::salvage(body),
        }
    }
}

/// Checks what comes before the body's meaning.
fn check_head(received: &Received<'_>, good: impl Fn(u16) -> bool) -> Result<(), Failure> {
    if !received.complete {
        let cause = format!("its answer is over {MAX_HANDLER_ANSWER_BYTES} bytes");
        return Err(Failure::new(FailureKind::TooLarge, cause));
    }
    if !good(received.status) {
        let note = if (300..400).contains(&received.status) { ", and redirects are not followed" } else { "" };
        return Err(Failure::new(FailureKind::Status, format!("HTTP {}{note}", received.status)));
    }
    if received.encoded {
        return Err(malformed("its answer is compressed, which was not asked for"));
    }
    Ok(())
}

fn malformed(cause: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Malformed, cause)
}

/// A decoded string, or the failure that it is none.
fn text(node: &Node<'_>, name: &str) -> Result<String, Failure> {
    match &node.value {
        Value::String(string) => Ok(string.decode().into_owned()),
        _ => Err(malformed(format!("\"{name}\" is not a string"))),
    }
}

/// Checks a reason's length; an empty one is none.
fn reason(text: String) -> Result<Option<String>, Failure> {
    capped("reason", text, MAX_REASON_BYTES)
}

/// Checks a context's length; an empty one is none.
fn context(text: String) -> Result<Option<String>, Failure> {
    capped("context", text, MAX_CONTEXT_BYTES)
}

fn capped(what: &str, text: String, cap: usize) -> Result<Option<String>, Failure> {
    match text.len() {
        0 => Ok(None),
        len if len > cap => Err(Failure::new(FailureKind::TooLarge, format!("its {what} is over {cap} bytes"))),
        _ => Ok(Some(text)),
    }
}

/// The outcome of an event that does not have it.
fn foreign_outcome(event: Event, outcome: &str) -> Failure {
    let mut shown = outcome.to_owned();
    shown.truncate(shown.floor_char_boundary(40));
    let names: Vec<_> = event.outcomes().map(OutcomeKind::name).collect();
    let cause = format!("it answered {shown:?}, and {} has only {}", event.name(), names.join(", "));
    Failure::new(FailureKind::Outcome, cause)
}

/// A reason cut at its cap.
fn cut_reason(text: &str) -> Option<String> {
    let cut = &text[..text.floor_char_boundary(MAX_REASON_BYTES)];
    (!cut.is_empty()).then(|| cut.to_owned())
}
