//! One event as it is told to handlers: the occasion, the detail, and the native v1 JSON of both.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::Event;
use crate::id::SessionKey;

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
}

impl Occasion {
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
