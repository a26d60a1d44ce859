//! The contract of Claude Code's HTTP hooks, for handlers that speak it already.
//!
//! What Claude Code reads as a decision is a decision here. What only looks like one (a decision in the wrong place, an
//! unknown word) is a failure, never "no opinion". Fields that decide nothing are ignored.

use bytes::Bytes;

use super::{Received, check_head, context, cut_reason, foreign_outcome, malformed, reason, text};
use crate::hooks::envelope::Envelope;
use crate::hooks::writer::ObjectWriter;
use crate::hooks::{Answer, Detail, Event, Failure, Replacement, Salvaged};
use crate::wire::json::{Cursor, JsonError, Kind, Node, Value, find_duplicate, parse_tree};

/// Prints a request with Claude Code's names. `transcript_path` and `cwd` are empty: hookgate has neither, and some
/// handlers insist on the members.
pub(super) fn request(envelope: &Envelope<'_>) -> Bytes {
    let mut out = Vec::with_capacity(512);
    let occasion = envelope.occasion;
    ObjectWriter::object(&mut out, |out| {
        out.string("session_id", &occasion.session.session);
        out.string("transcript_path", "");
        out.string("cwd", "");
        out.string("hook_event_name", occasion.event.name());
        out.optional("prompt_id", occasion.turn_id.as_deref());
        if !matches!(envelope.detail, Detail::SubagentStart { .. } | Detail::SubagentStop { .. }) {
            out.optional("agent_id", occasion.agent_id.as_deref());
        }
        out.optional("model", occasion.model.as_deref());
        detail(envelope, out);
        out.flag("truncated", out.truncated);
    });
    out.into()
}

fn detail(envelope: &Envelope<'_>, out: &mut ObjectWriter<'_>) {
    let call = envelope.occasion.tool_call_id.as_deref();
    // Claude Code names a delegation by the id of its call where it has no other.
    let agent = envelope.occasion.agent_id.as_deref().or(call);
    match envelope.detail {
        Detail::SessionStart { source } => {
            out.string("source", if *source == "new" { "startup" } else { source });
        }
        Detail::UserPromptSubmit { prompt, .. } => out.string("prompt", prompt),
        Detail::SubagentStart { subagent, prompt } => {
            out.optional("agent_id", agent);
            out.string("agent_type", subagent);
            out.string("prompt", prompt);
        }
        Detail::PreToolUse { tool_name, input, .. } => {
            out.string("tool_name", tool_name);
            out.raw("tool_input", input);
            out.optional("tool_use_id", call);
        }
        Detail::PostToolUse { tool_name, input, result, .. } => {
            out.string("tool_name", tool_name);
            out.bounded_raw("tool_input", input.as_deref().unwrap_or(b"{}"));
            out.bounded_raw("tool_response", result);
            out.optional("tool_use_id", call);
        }
        Detail::PostToolUseFailure { tool_name, input, error, .. } => {
            out.string("tool_name", tool_name);
            out.bounded_raw("tool_input", input.as_deref().unwrap_or(b"{}"));
            match error.starts_with(b"\"") {
                true => out.bounded_raw("error", error),
                false => out.bounded("error", &String::from_utf8_lossy(error)),
            }
            out.optional("tool_use_id", call);
            out.bool("is_interrupt", false);
        }
        Detail::SubagentStop { subagent, text, .. } => {
            out.optional("agent_id", agent);
            out.string("agent_type", subagent);
            out.bool("stop_hook_active", false);
            out.bounded("last_assistant_message", text);
        }
        Detail::TaskStart { title } => {
            out.optional("task_id", envelope.occasion.task_id.as_deref());
            if let Some(title) = title {
                out.bounded("task_subject", title);
            }
        }
        Detail::TaskStop { status } => {
            out.optional("task_id", envelope.occasion.task_id.as_deref());
            out.string("status", status);
        }
        Detail::Stop { response, attempt, .. } => {
            out.bool("stop_hook_active", *attempt > 1);
            out.number("stop_block_count", attempt.saturating_sub(1));
            out.string("last_assistant_message", response);
        }
        Detail::StopFailure { kind, message, .. } => {
            out.string("error", kind);
            out.bounded("error_details", message);
        }
        Detail::SessionEnd { reason } => out.bounded("reason", reason),
    }
}

/// Reads an answer. Any 2xx status is good, and an empty body is no opinion, as Claude Code has it.
pub(super) fn answer(event: Event, received: Received<'_>) -> Result<Answer, Failure> {
    check_head(&received, |status| (200..300).contains(&status))?;
    if received.body.trim_ascii().is_empty() {
        return Ok(Answer::Pass { context: None });
    }
    let root = parse_tree(received.body).map_err(|error| malformed(format!("its answer is not JSON: {error}")))?;
    if let Ok(Some(duplicate)) = find_duplicate(received.body) {
        return Err(malformed(format!("a key stands twice in its answer, at byte {}", duplicate.offset)));
    }
    Fields::read(event, &root, received.body)?.understand(event)
}

#[derive(Default)]
struct Fields {
    go_on: Option<bool>,
    stop_reason: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
    permission: Option<String>,
    permission_reason: Option<String>,
    updated_input: Option<Bytes>,
    context: Option<String>,
}

impl Fields {
    fn read(event: Event, root: &Node<'_>, body: &[u8]) -> Result<Self, Failure> {
        let Value::Object(members) = &root.value else { return Err(malformed("its answer is not an object")) };
        let mut fields = Fields::default();
        for member in members {
            let value = &member.value;
            match &*member.key.decode() {
                "continue" => fields.go_on = Some(boolean(value, "continue")?),
                "stopReason" => fields.stop_reason = Some(text(value, "stopReason")?),
                "decision" => fields.decision = Some(text(value, "decision")?),
                "reason" => fields.reason = Some(text(value, "reason")?),
                "hookSpecificOutput" => fields.read_specific(event, value, body)?,
                key => ignore(key, member.key.span().start)?,
            }
        }
        Ok(fields)
    }

    fn read_specific(&mut self, event: Event, node: &Node<'_>, body: &[u8]) -> Result<(), Failure> {
        let Value::Object(members) = &node.value else {
            return Err(malformed("\"hookSpecificOutput\" is not an object"));
        };
        let mut named = false;
        for member in members {
            let value = &member.value;
            match &*member.key.decode() {
                "hookEventName" => {
                    if text(value, "hookEventName")? != event.name() {
                        return Err(malformed(format!("\"hookEventName\" is not {}", event.name())));
                    }
                    named = true;
                }
                "permissionDecision" => self.permission = Some(text(value, "permissionDecision")?),
                "permissionDecisionReason" => {
                    self.permission_reason = Some(text(value, "permissionDecisionReason")?);
                }
                "updatedInput" => match value.value {
                    Value::Object(_) => self.updated_input = Some(Bytes::copy_from_slice(value.span.of(body))),
                    _ => return Err(malformed("\"updatedInput\" is not an object")),
                },
                "additionalContext" => self.context = Some(text(value, "additionalContext")?),
                key @ ("updatedToolOutput" | "updatedMCPToolOutput") => return Err(foreign_outcome(event, key)),
                key => ignore(key, member.key.span().start)?,
            }
        }
        if !named {
            return Err(malformed("\"hookEventName\" is missing in \"hookSpecificOutput\""));
        }
        Ok(())
    }

    fn understand(self, event: Event) -> Result<Answer, Failure> {
        let added = self.context.map(context).transpose()?.flatten();
        if added.is_some() && !event.accepts_context() {
            return Err(malformed(format!("\"additionalContext\" does not fit {}", event.name())));
        }
        let blocks = match self.decision.as_deref() {
            None | Some("approve") => false,
            Some("block") if event.gates() => true,
            Some("block") => return Err(foreign_outcome(event, "block")),
            Some(_) => return Err(malformed("\"decision\" is neither \"block\" nor \"approve\"")),
        };
        if (self.permission.is_some() || self.updated_input.is_some()) && event != Event::PreToolUse {
            return Err(foreign_outcome(event, "a decision about a tool"));
        }
        let stops = self.go_on == Some(false);
        if stops && !event.gates() {
            return Err(foreign_outcome(event, "continue: false"));
        }
        if event == Event::Stop {
            // `continue: false` ends the turn, whatever else is said: so Claude Code has it.
            return Ok(match blocks && !stops {
                true => Answer::Continue { reason: self.reason.map(reason).transpose()?.flatten() },
                false => Answer::Pass { context: None },
            });
        }
        let refused = match self.permission.as_deref() {
            Some("deny") => Some(self.permission_reason.or(self.reason)),
            // Nobody can be asked here, and what has no answer is not allowed.
            Some(wish @ ("ask" | "defer")) => Some(Some(unanswerable(wish, self.permission_reason.as_deref()))),
            None | Some("allow") if blocks => Some(self.reason),
            None | Some("allow") if stops => Some(self.stop_reason),
            None | Some("allow") => None,
            Some(_) => return Err(malformed("\"permissionDecision\" is not one of allow, deny, ask, defer")),
        };
        if let Some(why) = refused {
            return Ok(Answer::Deny { reason: why.map(reason).transpose()?.flatten() });
        }
        Ok(match self.updated_input {
            Some(input) => Answer::Modify { replacement: Replacement::Object(input), context: added },
            None => Answer::Pass { context: added },
        })
    }
}

fn unanswerable(wish: &str, why: Option<&str>) -> String {
    let wants = match wish {
        "ask" => "asks for a person's approval",
        _ => "leaves the decision to somebody else",
    };
    let why = why.and_then(cut_reason).map(|why| format!(" ({why})")).unwrap_or_default();
    let text = format!("The policy {wants}, and approvals are not available here, so this was refused{why}.");
    cut_reason(&text).unwrap_or_default()
}

fn boolean(node: &Node<'_>, name: &str) -> Result<bool, Failure> {
    match node.value {
        Value::Bool(value) => Ok(value),
        _ => Err(malformed(format!("\"{name}\" is not true or false"))),
    }
}

/// Accepts a field without effect, unless its name says that it decides something.
fn ignore(key: &str, offset: usize) -> Result<(), Failure> {
    const DECISIVE: [&str; 26] = [
        "action",
        "allow",
        "allowed",
        "approve",
        "approved",
        "behavior",
        "block",
        "blocked",
        "continue",
        "decision",
        "denied",
        "deny",
        "modifiedinput",
        "outcome",
        "permission",
        "permissiondecision",
        "refuse",
        "refused",
        "reject",
        "rejected",
        "replacement",
        "toolinput",
        "updatedinput",
        "updatedprompt",
        "verdict",
        "additionalcontext",
    ];
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    match DECISIVE.contains(&plain.as_str()) {
        true => Err(malformed(format!("something like a decision stands where none belongs, at byte {offset}"))),
        false => Ok(()),
    }
}

/// Looks for a refusal in an answer that failed: `deny` or `block` as a decision, at the top or in
/// `hookSpecificOutput`, or `continue: false`.
pub(super) fn salvage(body: &[u8]) -> Option<Salvaged> {
    let text = String::from_utf8_lossy(body);
    let mut found = Refusal::default();
    let start = text.find('{')?;
    // An error ends the walk; what was read before it counts.
    let _ = found.read(&mut Cursor::new_at(text.as_bytes(), start), true);
    found.denied.then_some(Salvaged { reason: found.reason })
}

#[derive(Default)]
struct Refusal {
    denied: bool,
    reason: Option<String>,
}

impl Refusal {
    fn read(&mut self, cursor: &mut Cursor<'_>, top: bool) -> Result<(), JsonError> {
        cursor.object(|cursor, key| {
            if key.is("decision") || key.is("permissionDecision") {
                self.denied |= cursor.string_or_skip()?.is_some_and(|word| word.is("deny") || word.is("block"));
            } else if key.is("continue") {
                self.denied |= cursor.skip()?.of(cursor.text()) == b"false";
            } else if key.is("reason") || key.is("permissionDecisionReason") || key.is("stopReason") {
                let given = cursor.string_or_skip()?.and_then(|string| cut_reason(&string.decode()));
                self.reason = given.or(self.reason.take());
            } else if top && key.is("hookSpecificOutput") && cursor.kind()? == Kind::Object {
                self.read(cursor, false)?;
            } else {
                cursor.skip()?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "claude_code_tests.rs"]
mod tests;
