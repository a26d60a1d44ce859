//! One event as it is told to handlers: the occasion, the detail, and the native v1 JSON of both.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::writer::ObjectWriter;
use super::{Event, Redaction, Replacement};
use crate::id::SessionKey;
use crate::time::Timestamp;
use crate::wire::json::quote_into;
use crate::wire::trace::TraceParent;

/// Where hookgate saw an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plane {
    /// Between an agent and its model.
    Model,
    /// Between an agent and its tools.
    Tool,
    /// On the control surface.
    Api,
}

impl Plane {
    /// The name in envelopes and audit records.
    pub fn name(self) -> &'static str {
        match self {
            Plane::Model => "model",
            Plane::Tool => "tool",
            Plane::Api => "api",
        }
    }
}

impl serde::Serialize for Plane {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Who and what an event is about, beside its detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occasion {
    /// The event.
    pub event: Event,
    /// The session.
    pub session: SessionKey,
    /// The turn.
    pub turn_id: Option<Arc<str>>,
    /// The tool call.
    pub tool_call_id: Option<Arc<str>>,
    /// The background task.
    pub task_id: Option<Arc<str>>,
    /// The sub-agent that the request came from.
    pub agent_id: Option<Arc<str>>,
    /// The agent that started it.
    pub parent_agent_id: Option<Arc<str>>,
    /// The model's name.
    pub model: Option<Arc<str>>,
    /// Where it was seen.
    pub plane: Plane,
    /// The route's name.
    pub route: Arc<str>,
    /// What matchers compare: the tool's name or the sub-agent's id.
    pub name: Option<Arc<str>>,
    /// The MCP server of the tool, when it is known.
    pub server: Option<Arc<str>>,
    /// Where the request stands in a trace. Handlers get it as a header: it is the one thing of the agent's request there.
    pub trace: Option<TraceParent>,
}

impl Occasion {
    /// An event of a session and of nothing more particular.
    ///
    /// ```
    /// use hookgate::{hooks::{Event, Occasion, Plane}, id::SessionKey};
    /// let session = SessionKey { tenant: "default".into(), session: "s".into() };
    /// let named = Occasion { name: Some("Bash".into()), ..Occasion::new(Event::PreToolUse, session, Plane::Model, "anthropic") };
    /// assert!(named.full_name().as_deref() == Some("Bash") && named.turn_id.is_none());
    /// ```
    pub fn new(event: Event, session: SessionKey, plane: Plane, route: impl Into<Arc<str>>) -> Self {
        Occasion {
            event,
            session,
            turn_id: None,
            tool_call_id: None,
            task_id: None,
            agent_id: None,
            parent_agent_id: None,
            model: None,
            plane,
            route: route.into(),
            name: None,
            server: None,
            trace: None,
        }
    }

    /// The name that matchers and redaction rules compare, qualified by the tool's server when that is known.
    pub fn full_name(&self) -> Option<Cow<'_, str>> {
        let name = self.name.as_deref()?;
        Some(match self.server.as_deref() {
            Some(server) => Cow::Owned(super::qualified(server, name)),
            None => Cow::Borrowed(name),
        })
    }
}

/// A part of a prompt that is not text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// What it is, as the protocol says it: `image`, `document`, …
    pub kind: String,
    /// Its media type, when the request tells.
    pub media_type: Option<String>,
}

/// What happened, event by event. JSON texts are UTF-8 and checked by whoever makes a detail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// See [`Event::SessionStart`].
    SessionStart {
        /// `new` or `resume`.
        source: &'static str,
    },
    /// See [`Event::UserPromptSubmit`].
    UserPromptSubmit {
        /// The text parts, joined by a newline.
        prompt: String,
        /// The other parts.
        attachments: Vec<Attachment>,
        /// What a known client added by itself.
        client_context: Vec<String>,
        /// Whether it is an old prompt of a history that was not seen before.
        replayed: bool,
        /// Whether the request is not the agent's main conversation.
        side: bool,
        /// Where it comes from, when it is no message of the client's own: `callback`, or `result` for what the client put
        /// into a tool's result, where the tool may have forged it.
        source: Option<&'static str>,
    },
    /// See [`Event::SubagentStart`].
    SubagentStart {
        /// The sub-agent's id.
        subagent: String,
        /// What it is told to do.
        prompt: String,
    },
    /// See [`Event::PreToolUse`].
    PreToolUse {
        /// The tool.
        tool_name: String,
        /// The arguments' JSON text as the model wrote it.
        input: Bytes,
        /// The MCP server, when it is known.
        server: Option<String>,
        /// Whether this is about a declared tool that the provider would run, not about one call.
        declared: bool,
    },
    /// See [`Event::PostToolUse`].
    PostToolUse {
        /// The tool.
        tool_name: String,
        /// The arguments' JSON text, when the call was seen.
        input: Option<Bytes>,
        /// The result's JSON text.
        result: Bytes,
        /// Whether something was cut off already.
        truncated: bool,
        /// Whether the provider ran the tool.
        executed_upstream: bool,
        /// Whether the protocol tells failed results from others.
        failure_known: bool,
    },
    /// See [`Event::PostToolUseFailure`].
    PostToolUseFailure {
        /// The tool.
        tool_name: String,
        /// The arguments' JSON text, when the call was seen.
        input: Option<Bytes>,
        /// The error's JSON text.
        error: Bytes,
        /// Whether something was cut off already.
        truncated: bool,
        /// Whether the provider ran the tool.
        executed_upstream: bool,
    },
    /// See [`Event::SubagentStop`].
    SubagentStop {
        /// The sub-agent's id.
        subagent: String,
        /// Whether it succeeded.
        ok: bool,
        /// Its response, or the error.
        text: String,
        /// Whether something was cut off already.
        truncated: bool,
    },
    /// See [`Event::TaskStart`].
    TaskStart {
        /// The task's title.
        title: Option<String>,
    },
    /// See [`Event::TaskStop`].
    TaskStop {
        /// `completed`, `failed`, `cancelled` or `interrupted`.
        status: String,
    },
    /// See [`Event::Stop`].
    Stop {
        /// The answer's text.
        response: String,
        /// Why the model stopped, in the protocol's words.
        stop_reason: String,
        /// From 1, counted over the turn.
        attempt: u32,
        /// The attempt after which there is no other.
        max_attempts: u32,
    },
    /// See [`Event::StopFailure`].
    StopFailure {
        /// The class of failure.
        kind: String,
        /// The upstream's status.
        status: Option<u16>,
        /// What is known about it.
        message: String,
    },
    /// See [`Event::SessionEnd`].
    SessionEnd {
        /// Why it ends.
        reason: String,
    },
}

/// One dispatch of an event.
pub(crate) struct Envelope<'a> {
    /// The same for all handlers of the dispatch.
    pub(crate) event_id: &'a str,
    pub(crate) timestamp: Timestamp,
    pub(crate) occasion: &'a Occasion,
    pub(crate) detail: &'a Detail,
}

impl Envelope<'_> {
    /// The native v1 request.
    pub(super) fn native(&self) -> Bytes {
        let mut out = Vec::with_capacity(512);
        let occasion = self.occasion;
        ObjectWriter::object(&mut out, |envelope| {
            envelope.number("schemaVersion", 1);
            envelope.string("eventId", self.event_id);
            envelope.string("event", occasion.event.name());
            envelope.string("timestamp", &self.timestamp.to_string());
            envelope.string("sessionId", &occasion.session.session);
            envelope.nullable("turnId", occasion.turn_id.as_deref());
            envelope.nullable("toolCallId", occasion.tool_call_id.as_deref());
            envelope.nullable("taskId", occasion.task_id.as_deref());
            envelope.nullable("agentId", occasion.agent_id.as_deref());
            envelope.nullable("parentAgentId", occasion.parent_agent_id.as_deref());
            envelope.nullable("model", occasion.model.as_deref());
            envelope.string("plane", occasion.plane.name());
            envelope.string("route", &occasion.route);
            envelope.member("detail", |detail| self.detail.native(detail));
        });
        out.into()
    }
}

impl Detail {
    /// What a gate judges: what it is called, and its size in bytes.
    pub(crate) fn judged(&self) -> Option<(&'static str, usize)> {
        match self {
            Detail::UserPromptSubmit { prompt, .. } => Some(("the prompt", prompt.len())),
            Detail::SubagentStart { prompt, .. } => Some(("the delegated prompt", prompt.len())),
            Detail::PreToolUse { input, .. } => Some(("the tool's input", input.len())),
            Detail::Stop { response, .. } => Some(("the answer", response.len())),
            _ => None,
        }
    }

    /// Puts a replacement in the place of what is judged. One of the wrong kind changes nothing: answers are checked
    /// against their event before.
    pub(crate) fn replace(&mut self, replacement: &Replacement) {
        match (self, replacement) {
            (
                Detail::UserPromptSubmit { prompt, .. } | Detail::SubagentStart { prompt, .. },
                Replacement::Text(text),
            ) => {
                prompt.clone_from(text);
            }
            (Detail::PreToolUse { input, .. }, Replacement::Object(object)) => input.clone_from(object),
            _ => {}
        }
    }

    /// Which attempt at ending the turn this is, from 1; 1 where there are no attempts.
    pub(crate) fn attempt(&self) -> u32 {
        match self {
            Detail::Stop { attempt, .. } => *attempt,
            _ => 1,
        }
    }

    /// The detail as handlers may see it: `tool` is the tool's full name.
    pub(crate) fn redacted(&self, redaction: &Redaction, tool: &str) -> Detail {
        let mut shown = self.clone();
        match &mut shown {
            Detail::PreToolUse { input, .. } => *input = redaction.apply(tool, input),
            Detail::PostToolUse { input, result: outcome, .. }
            | Detail::PostToolUseFailure { input, error: outcome, .. } => {
                *input = input.take().map(|input| redaction.apply(tool, &input));
                *outcome = redaction.apply(tool, outcome);
            }
            _ => {}
        }
        shown
    }

    /// Prints the members of `detail`. What a gate judges is printed whole, what is only observed is cut.
    fn native(&self, out: &mut ObjectWriter<'_>) {
        match self {
            Detail::SessionStart { source } => out.string("source", source),
            Detail::UserPromptSubmit { prompt, attachments, client_context, replayed, side, source } => {
                out.string("prompt", prompt);
                out.array("attachments", attachments, |out, attachment| {
                    ObjectWriter::object(out, |out| {
                        out.string("kind", &attachment.kind);
                        out.optional("mediaType", attachment.media_type.as_deref());
                    });
                });
                if !client_context.is_empty() {
                    out.array("clientContext", client_context, |out, text| quote_into(out, text));
                }
                out.flag("replayed", *replayed);
                out.flag("side", *side);
                out.optional("source", *source);
            }
            Detail::SubagentStart { subagent, prompt } => {
                out.string("subagent", subagent);
                out.string("prompt", prompt);
            }
            Detail::PreToolUse { tool_name, input, server, declared } => {
                out.string("toolName", tool_name);
                out.raw("input", input);
                out.optional("server", server.as_deref());
                out.flag("declared", *declared);
            }
            Detail::PostToolUse { tool_name, input, result, truncated, executed_upstream, failure_known } => {
                out.string("toolName", tool_name);
                out.bounded_raw("input", input.as_deref().unwrap_or(b"null"));
                out.bounded_raw("result", result);
                out.bool("truncated", *truncated || out.truncated);
                out.flag("executedUpstream", *executed_upstream);
                if !failure_known {
                    out.bool("failureKnown", false);
                }
            }
            Detail::PostToolUseFailure { tool_name, input, error, truncated, executed_upstream } => {
                out.string("toolName", tool_name);
                out.bounded_raw("input", input.as_deref().unwrap_or(b"null"));
                out.bounded_raw("error", error);
                out.flag("truncated", *truncated || out.truncated);
                out.flag("executedUpstream", *executed_upstream);
            }
            Detail::SubagentStop { subagent, ok, text, truncated } => {
                out.string("subagent", subagent);
                out.bool("ok", *ok);
                out.bounded(if *ok { "response" } else { "error" }, text);
                out.flag("truncated", *truncated || out.truncated);
            }
            Detail::TaskStart { title } => {
                if let Some(title) = title {
                    out.bounded("title", title);
                }
                out.flag("truncated", out.truncated);
            }
            Detail::TaskStop { status } => out.string("status", status),
            Detail::Stop { response, stop_reason, attempt, max_attempts } => {
                out.string("response", response);
                out.string("stopReason", stop_reason);
                out.number("attempt", *attempt);
                out.number("maxAttempts", *max_attempts);
            }
            Detail::StopFailure { kind, status, message } => {
                out.string("kind", kind);
                if let Some(status) = status {
                    out.number("status", u32::from(*status));
                }
                out.bounded("message", message);
                out.flag("truncated", out.truncated);
            }
            Detail::SessionEnd { reason } => {
                out.bounded("reason", reason);
                out.flag("truncated", out.truncated);
            }
        }
    }
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;
