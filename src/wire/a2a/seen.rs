//! What an agent says of its tasks.

use super::tree::{elements, member, members, string, text, texts};
use crate::wire::json::{Node, Value, parse_tree};

/// Something that an answer tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// How a task stands.
    Task(TaskView),
    /// A part of a task's outcome.
    Artifact {
        /// The task.
        task: String,
        /// The artifact's own id.
        artifact: String,
        /// It goes on where the same artifact ended.
        append: bool,
        /// Its texts.
        text: String,
    },
    /// A message in place of a task: all that there is to the answer.
    Message {
        /// The conversation that it belongs to.
        context: Option<String>,
        /// Its texts.
        text: String,
    },
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskView {
    /// The task.
    pub id: String,
    /// The conversation that it belongs to.
    pub context: Option<String>,
    /// Its state.
    pub state: State,
    /// What the agent says of its state.
    pub message: String,
    /// The texts of its artifacts, as far as they are there.
    pub artifacts: String,
}

/// A task's state, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It goes on, or waits for somebody.
    Open,
    /// It is done.
    Completed,
    /// It ended with an error.
    Failed,
    /// It was cancelled.
    Canceled,
    /// The agent will not do it.
    Rejected,
}

impl State {
    /// Reads the names of both revisions, and the numbers that Protobuf has for them.
    fn of(state: &Node<'_>, json: &[u8]) -> Self {
        let name = string(state).map(|name| name.trim_start_matches("TASK_STATE_").to_ascii_lowercase());
        match name.as_deref() {
            Some("completed") => State::Completed,
            Some("failed") => State::Failed,
            Some("canceled" | "cancelled") => State::Canceled,
            Some("rejected") => State::Rejected,
            Some(_) => State::Open,
            None => match state.span.of(json) {
                b"3" => State::Completed,
                b"4" => State::Failed,
                b"5" => State::Canceled,
                b"7" => State::Rejected,
                _ => State::Open,
            },
        }
    }
}

/// Reads a result of JSON-RPC, an answer of HTTP+JSON, or one event of either. What is neither tells nothing.
///
/// ```
/// use hookgate::wire::a2a::{Seen, State, read_answer};
/// let told = read_answer(br#"{"statusUpdate": {"taskId": "t", "status": {"state": "TASK_STATE_COMPLETED"}}}"#);
/// assert!(matches!(told.as_slice(), [Seen::Task(task)] if task.id == "t" && task.state == State::Completed));
/// ```
pub fn read_answer(json: &[u8]) -> Vec<Seen> {
    let Ok(tree) = parse_tree(json) else { return Vec::new() };
    if let Some(tasks) = member(&tree, &["tasks"]) {
        return elements(tasks).iter().filter_map(|task| one(task, json)).collect();
    }
    // 1.0 names what it is by the member that holds it, 0.3 within it.
    let held = member(
        &tree,
        &["task", "message", "msg", "statusUpdate", "status_update", "artifactUpdate", "artifact_update"],
    );
    let held = held.filter(|held| matches!(held.value, Value::Object(_)) && member(&tree, &["kind"]).is_none());
    one(held.unwrap_or(&tree), json).into_iter().collect()
}

fn one(node: &Node<'_>, json: &[u8]) -> Option<Seen> {
    let context = text(node, &["contextId", "context_id"]);
    let task = text(node, &["taskId", "task_id"]);
    if let Some(artifact) = member(node, &["artifact"]) {
        return Some(Seen::Artifact {
            task: task?,
            artifact: text(artifact, &["artifactId", "artifact_id"]).unwrap_or_default(),
            append: matches!(member(node, &["append"]).map(|append| &append.value), Some(Value::Bool(true))),
            text: texts(artifact),
        });
    }
    if let Some(status) = member(node, &["status"]) {
        let artifacts = member(node, &["artifacts"]).map_or(&[][..], elements);
        let artifacts: Vec<String> = artifacts.iter().map(texts).filter(|text| !text.is_empty()).collect();
        return Some(Seen::Task(TaskView {
            // A status update names the task, a task has the name itself.
            id: task.or_else(|| text(node, &["id"]))?,
            context,
            state: member(status, &["state"]).map_or(State::Open, |state| State::of(state, json)),
            message: member(status, &["message", "update"]).map(texts).unwrap_or_default(),
            artifacts: artifacts.join("\n"),
        }));
    }
    let is_message = member(node, &["messageId", "message_id", "role"]).is_some();
    is_message.then(|| Seen::Message { context, text: texts(node) })
}

/// What an error of HTTP+JSON says, in an answer or in an event; `None` for what is no error.
///
/// ```
/// let error = br#"{"error": {"code": 404, "status": "NOT_FOUND", "message": "no such task"}}"#;
/// assert_eq!(hookgate::wire::a2a::failure(error).as_deref(), Some("no such task"));
/// assert_eq!(hookgate::wire::a2a::failure(br#"{"task": {}}"#), None);
/// ```
pub fn failure(json: &[u8]) -> Option<String> {
    let tree = parse_tree(json).ok()?;
    let error = member(&tree, &["error"])?;
    let says = if members(error).is_empty() { string(error).map(String::from) } else { text(error, &["message"]) };
    Some(says.unwrap_or_else(|| "it gives no reason".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(text: &str) -> TaskView {
        match read_answer(text.as_bytes()).as_slice() {
            [Seen::Task(task)] => task.clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn tasks_are_read_in_every_form() {
        for text in [
            r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed","message":{"parts":[{"kind":"text","text":"ok"}]}}}"#,
            r#"{"kind":"status-update","taskId":"t","contextId":"c","final":true,"status":{"state":"completed","message":{"parts":[{"kind":"text","text":"ok"}]}}}"#,
            r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","message":{"parts":[{"text":"ok"}]}}}}"#,
            r#"{"id":"t","contextId":"c","status":{"state":3,"message":{"parts":[{"text":"ok"}]}}}"#,
            r#"{"status_update":{"task_id":"t","context_id":"c","status":{"state":"TASK_STATE_COMPLETED","update":{"content":[{"text":"ok"}]}}}}"#,
        ] {
            let expected = TaskView {
                id: "t".into(),
                context: Some("c".into()),
                state: State::Completed,
                message: "ok".into(),
                artifacts: String::new(),
            };
            assert_eq!(task(text), expected, "{text}");
        }
    }

    #[test]
    fn states_of_both_revisions() {
        for (state, expected) in [
            (r#""submitted""#, State::Open),
            (r#""working""#, State::Open),
            (r#""input-required""#, State::Open),
            (r#""auth-required""#, State::Open),
            (r#""TASK_STATE_INPUT_REQUIRED""#, State::Open),
            (r#""something-new""#, State::Open),
            ("6", State::Open),
            ("null", State::Open),
            (r#""failed""#, State::Failed),
            (r#""TASK_STATE_FAILED""#, State::Failed),
            (r#""canceled""#, State::Canceled),
            (r#""TASK_STATE_CANCELLED""#, State::Canceled),
            ("5", State::Canceled),
            (r#""rejected""#, State::Rejected),
            ("7", State::Rejected),
        ] {
            let text = format!(r#"{{"task":{{"id":"t","status":{{"state":{state}}}}}}}"#);
            assert_eq!(task(&text).state, expected, "{state}");
        }
    }

    #[test]
    fn messages_artifacts_and_lists() {
        for text in [
            r#"{"kind":"message","role":"agent","messageId":"m","contextId":"c","parts":[{"kind":"text","text":"a"},{"text":"b"}]}"#,
            r#"{"message":{"role":"ROLE_AGENT","contextId":"c","parts":[{"text":"a"},{"raw":"AA=="},{"text":"b"}]}}"#,
            r#"{"msg":{"message_id":"m","context_id":"c","content":[{"text":"a"},{"text":"b"}]}}"#,
        ] {
            let expected = [Seen::Message { context: Some("c".into()), text: "a\nb".into() }];
            assert_eq!(read_answer(text.as_bytes()), expected, "{text}");
        }
        let text =
            br#"{"artifactUpdate":{"taskId":"t","append":true,"artifact":{"artifactId":"a","parts":[{"text":"x"}]}}}"#;
        let expected = Seen::Artifact { task: "t".into(), artifact: "a".into(), append: true, text: "x".into() };
        assert_eq!(read_answer(text), [expected]);
        let list = br#"{"tasks":[{"id":"a","status":{"state":"TASK_STATE_FAILED"}},{"id":"b","status":{}}, 7]}"#;
        assert_eq!(read_answer(list).len(), 2);
        for nothing in
            ["", "{}", "[]", "7", r#"{"task":7}"#, r#"{"status":{"state":"completed"}}"#, r#"{"name":"agent"}"#]
        {
            assert_eq!(read_answer(nothing.as_bytes()), [], "{nothing}");
        }
    }
}
