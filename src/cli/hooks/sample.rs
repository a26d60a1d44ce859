//! Sample events.

use bytes::Bytes;
use serde_json::Value;

use crate::hooks::{Detail, Event, Names, Occasion, Plane};
use crate::id::{DEFAULT_TENANT, SessionKey, random_id};

/// The tool of sample events.
const TOOL: &str = "Bash";
/// The sub-agent of sample events.
const SUBAGENT: &str = "reviewer";

/// What an event is about, for a handler that has to see something plausible. Its session is `hookgate-test`.
pub(super) fn occasion(event: Event, name: Option<&str>) -> Occasion {
    let name = match event.names() {
        Names::Tools => Some(name.unwrap_or(TOOL)),
        Names::Subagents => Some(name.unwrap_or(SUBAGENT)),
        Names::None => None,
    };
    let call = (event.names() != Names::None).then(|| "toolu_sample".into());
    Occasion {
        event,
        session: SessionKey { tenant: DEFAULT_TENANT.into(), session: "hookgate-test".into() },
        turn_id: Some(random_id().into()),
        tool_call_id: call,
        task_id: matches!(event, Event::TaskStart | Event::TaskStop).then(|| "sample".into()),
        agent_id: None,
        parent_agent_id: None,
        model: Some("sample-model".into()),
        plane: Plane::Model,
        route: "test".into(),
        name: name.map(Into::into),
        server: None,
        trace: None,
    }
}

/// The detail of a sample event. `input` is the tool's input as JSON, or the text of an event without a tool.
///
/// # Errors
/// When a tool's input is not a JSON object.
pub(super) fn detail(event: Event, name: &str, input: Option<&str>) -> Result<Detail, String> {
    let name = name.to_owned();
    let text = |sample: &str| match input {
        // A JSON string is the text that it stands for.
        Some(input) => serde_json::from_str(input).unwrap_or_else(|_| input.to_owned()),
        None => sample.to_owned(),
    };
    Ok(match event {
        Event::SessionStart => Detail::SessionStart { source: "new" },
        Event::TaskStart => Detail::TaskStart { title: Some(text("a sample task")) },
        Event::UserPromptSubmit => Detail::UserPromptSubmit {
            prompt: text("List the files of this folder."),
            attachments: Vec::new(),
            client_context: Vec::new(),
            replayed: false,
            side: false,
            source: None,
        },
        Event::SubagentStart => Detail::SubagentStart { subagent: name, prompt: text("Review the last change.") },
        Event::PreToolUse => {
            Detail::PreToolUse { tool_name: name, input: tool_input(input)?, server: None, declared: false }
        }
        Event::PostToolUse => Detail::PostToolUse {
            tool_name: name,
            input: Some(tool_input(input)?),
            result: Bytes::from_static(b"\"README.md\""),
            truncated: false,
            executed_upstream: false,
            failure_known: true,
        },
        Event::PostToolUseFailure => Detail::PostToolUseFailure {
            tool_name: name,
            input: Some(tool_input(input)?),
            error: Bytes::from_static(b"\"exit status 1\""),
            truncated: false,
            executed_upstream: false,
        },
        Event::SubagentStop => {
            Detail::SubagentStop { subagent: name, ok: true, text: text("The change is fine."), truncated: false }
        }
        Event::TaskStop => Detail::TaskStop { status: text("completed") },
        Event::Stop => Detail::Stop {
            response: text("The work is done."),
            stop_reason: "end_turn".to_owned(),
            attempt: 1,
            max_attempts: 4,
        },
        Event::StopFailure => Detail::StopFailure {
            kind: "upstream_status".to_owned(),
            status: Some(529),
            message: text("the provider is overloaded"),
        },
        Event::SessionEnd => Detail::SessionEnd { reason: text("deleted") },
    })
}

/// The input as it was typed: number text and key order are part of what a policy sees.
fn tool_input(input: Option<&str>) -> Result<Bytes, String> {
    let Some(input) = input else { return Ok(Bytes::from_static(br#"{"command": "ls"}"#)) };
    match serde_json::from_str(input) {
        Ok(Value::Object(_)) => Ok(Bytes::copy_from_slice(input.trim().as_bytes())),
        Ok(_) => Err("--input has to be a JSON object for events of tools".to_owned()),
        Err(error) => Err(format!("--input is not JSON: {error}")),
    }
}
