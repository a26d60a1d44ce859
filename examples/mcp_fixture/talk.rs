//! Tools that talk to the client while they run: progress, logs, and questions of revisions with a handshake.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, ContentBlock, ErrorData, JsonObject, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::ask;

/// Between what a tool tells, so that a client sees that it comes one by one.
const PAUSE: Duration = Duration::from_millis(50);

/// A result that is one text.
pub(crate) fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// Tells of progress, to a client that wants to know.
pub(crate) async fn progress(context: &RequestContext<RoleServer>) -> CallToolResult {
    for (done, message) in [(0.0, "started"), (50.0, "half done"), (100.0, "done")] {
        if let Some(token) = context.meta.get_progress_token() {
            let told = ProgressNotificationParam::new(token, done).with_total(100.0).with_message(message);
            // A client that is gone is told nothing.
            drop(context.peer.notify_progress(told).await);
        }
        tokio::time::sleep(PAUSE).await;
    }
    text("Progress test completed")
}

/// Logs these messages, if `level` says that the client wants them.
pub(crate) async fn log(context: &RequestContext<RoleServer>, level: Option<LoggingLevel>, messages: &[&str]) {
    if level.is_none_or(|level| level as u8 > LoggingLevel::Info as u8) {
        return;
    }
    for message in messages {
        let told = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message)).with_logger("fixture");
        drop(context.peer.notify_logging_message(told).await);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits as long as it is told, or until the call is cancelled: then it gives nothing.
pub(crate) async fn wait(context: &RequestContext<RoleServer>, arguments: &JsonObject) -> Option<CallToolResult> {
    let time = arguments.get("milliseconds").and_then(Value::as_u64).unwrap_or_default();
    tokio::select! {
        () = context.ct.cancelled() => None,
        () = tokio::time::sleep(Duration::from_millis(time)) => Some(text(format!("waited {time} ms"))),
    }
}

/// Asks what the tool asks, and gives a result that says what the answer was. `None`: it is not a tool that asks.
pub(crate) async fn question(
    name: &str,
    arguments: &JsonObject,
    context: &RequestContext<RoleServer>,
) -> Option<Result<CallToolResult, ErrorData>> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let question = match name {
        "test_sampling" => Ok(ask::model(argument("prompt"), 100)),
        "test_elicitation" => {
            let text = |description: &str| json!({"type": "string", "description": description});
            let fields = json!({"username": text("User's response"), "email": text("User's email address")});
            ask::user(argument("message"), fields, true)
        }
        "test_elicitation_sep1034_defaults" => ask::user("Is this right?", defaults(), false),
        "test_elicitation_sep1330_enums" => ask::user("Which ones?", choices(), false),
        "test_list_roots" => Ok(ask::roots()),
        _ => return None,
    };
    let answer = match question {
        Ok(question) => ask::send(&context.peer, question).await,
        Err(error) => return Some(Err(error)),
    };
    // A client that cannot answer, or does not, is the tool's failure.
    let result = match answer {
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.message)]),
        Ok(answer) => text(match name {
            "test_sampling" => format!("LLM response: {}", ask::text_of(&answer)),
            "test_elicitation" => {
                format!("User response: action={}, content={}", word(&answer["action"]), answer["content"])
            }
            "test_list_roots" => format!("Roots: {}", answer["roots"]),
            _ => format!("Elicitation completed: action={}, content={}", word(&answer["action"]), answer["content"]),
        }),
    };
    Some(Ok(result))
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("none")
}

/// A field of each kind, with a default.
fn defaults() -> Value {
    json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    })
}

/// A choice of each kind.
fn choices() -> Value {
    let titled = |names: [(&str, &str); 3]| names.map(|(value, title)| json!({"const": value, "title": title}));
    let plain = ["option1", "option2", "option3"];
    json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {
            "type": "string",
            "oneOf": titled([("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")]),
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": titled([("value1", "First Choice"), ("value2", "Second Choice"), ("value3", "Third Choice")]),
            },
        },
    })
}
