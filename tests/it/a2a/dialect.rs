//! The forms in which the same things are said: two revisions, two bindings.

use hookgate::testing::{Answer, Received};
use http::Method;
use serde_json::{Value, json};

/// A revision in a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Rpc03,
    Rpc1,
    Rest03,
    Rest1,
}

/// A request as a client writes it.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: String,
}

use Dialect::{Rest1, Rest03, Rpc1, Rpc03};

impl Dialect {
    pub(super) fn is_rpc(self) -> bool {
        matches!(self, Rpc03 | Rpc1)
    }

    /// The header of the revision.
    pub(super) fn headers(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Rpc03 | Rest03 => vec![],
            Rpc1 => vec![("a2a-version", "1.0")],
            Rest1 => vec![("a2a-version", "1.0"), ("content-type", "application/a2a+json")],
        }
    }

    /// What parts are called.
    pub(super) fn parts(self) -> &'static str {
        if self == Rest03 { "content" } else { "parts" }
    }

    /// A text part.
    pub(super) fn text(self, text: &str) -> Value {
        if self == Rpc03 { json!({"kind": "text", "text": text}) } else { json!({"text": text}) }
    }

    fn state(self, state: &str) -> String {
        match self {
            Rpc03 => state.to_owned(),
            _ => format!("TASK_STATE_{}", state.replace('-', "_").to_uppercase()),
        }
    }

    /// A message of somebody's.
    fn message(self, role: &str, parts: Value) -> Value {
        let role = if self == Rpc03 { role.to_owned() } else { format!("ROLE_{}", role.to_uppercase()) };
        let mut message = json!({"messageId": "m-1", "role": role});
        message[self.parts()] = parts;
        if self == Rpc03 {
            message["kind"] = "message".into();
        }
        message
    }

    /// A request to send these parts, with members of the message's own.
    pub(super) fn send(self, stream: bool, parts: Value, more: Value) -> Request {
        let mut message = self.message("user", parts);
        for (name, value) in more.as_object().into_iter().flatten() {
            message[name] = value.clone();
        }
        let held = if self == Rest03 { "request" } else { "message" };
        let params = json!({held: message, "configuration": {"acceptedOutputModes": ["text/plain"]}});
        let path = if stream { "message:stream" } else { "message:send" };
        match self {
            Rpc03 => self.call(if stream { "message/stream" } else { "message/send" }, params),
            Rpc1 => self.call(if stream { "SendStreamingMessage" } else { "SendMessage" }, params),
            Rest03 => Request { method: Method::POST, path: format!("/v1/{path}"), body: params.to_string() },
            Rest1 => Request { method: Method::POST, path: format!("/acme/{path}"), body: params.to_string() },
        }
    }

    /// A request about one task: `get`, `cancel` or `subscribe`.
    pub(super) fn about(self, verb: &str, task: &str) -> Request {
        let base = if self == Rest03 { "/v1/tasks" } else { "/acme/tasks" };
        let (method, path) = match verb {
            "get" => (Method::GET, format!("{base}/{task}")),
            _ => (Method::POST, format!("{base}/{task}:{verb}")),
        };
        let params = json!({"id": task});
        match (self, verb) {
            (Rpc03, "get") => self.call("tasks/get", params),
            (Rpc03, "cancel") => self.call("tasks/cancel", params),
            (Rpc03, _) => self.call("tasks/resubscribe", params),
            (Rpc1, "get") => self.call("GetTask", params),
            (Rpc1, "cancel") => self.call("CancelTask", params),
            (Rpc1, _) => self.call("SubscribeToTask", params),
            _ => Request { method, path, body: String::new() },
        }
    }

    /// A request for all tasks.
    pub(super) fn list(self) -> Request {
        match self {
            Rpc03 => self.call("tasks/list", json!({})),
            Rpc1 => self.call("ListTasks", json!({})),
            _ => Request { method: Method::GET, path: "/acme/tasks?pageSize=10".to_owned(), body: String::new() },
        }
    }

    /// A call of a method.
    pub(super) fn call(self, method: &str, params: Value) -> Request {
        let body = json!({"jsonrpc": "2.0", "id": "q-1", "method": method, "params": params}).to_string();
        Request { method: Method::POST, path: "/rpc".to_owned(), body }
    }

    /// A task in a state, of which the agent says something.
    pub(super) fn bare_task(self, id: &str, state: &str, says: &str) -> Value {
        let mut task = json!({"id": id, "contextId": "c-1", "status": self.status(state, says)});
        if self == Rpc03 {
            task["kind"] = "task".into();
        }
        task
    }

    fn status(self, state: &str, says: &str) -> Value {
        let mut status = json!({"state": self.state(state)});
        if !says.is_empty() {
            status["message"] = self.message("agent", json!([self.text(says)]));
        }
        status
    }

    fn held(self, name: &str, kind: &str, mut value: Value) -> Value {
        if self != Rpc03 {
            return json!({name: value});
        }
        value["kind"] = kind.into();
        value
    }

    /// A task as the answer to a message.
    pub(super) fn task(self, id: &str, state: &str, says: &str) -> Value {
        self.held("task", "task", self.bare_task(id, state, says))
    }

    /// The task has another state now.
    pub(super) fn update(self, id: &str, state: &str, says: &str) -> Value {
        let update = json!({"taskId": id, "contextId": "c-1", "status": self.status(state, says)});
        self.held("statusUpdate", "status-update", update)
    }

    /// A piece of what the task brings.
    pub(super) fn artifact(self, id: &str, append: bool, text: &str) -> Value {
        let mut artifact = json!({"artifactId": "a-1"});
        artifact[self.parts()] = json!([self.text(text)]);
        let update = json!({"taskId": id, "contextId": "c-1", "append": append, "artifact": artifact});
        self.held("artifactUpdate", "artifact-update", update)
    }

    /// A message in place of a task.
    pub(super) fn says(self, text: &str) -> Value {
        let mut message = self.message("agent", json!([self.text(text)]));
        message["contextId"] = "c-1".into();
        if self == Rpc03 { message } else { json!({"message": message}) }
    }

    /// The text of an answer that tells this.
    pub(super) fn wrapped(self, value: &Value) -> String {
        match self.is_rpc() {
            true => json!({"jsonrpc": "2.0", "id": "q-1", "result": value}).to_string(),
            false => value.to_string(),
        }
    }

    /// Answers with events.
    pub(super) fn events(self, values: &[Value]) -> Answer {
        Answer::events(values.iter().map(|value| format!("id: 1\r\ndata:{}\r\n\r\n", self.wrapped(value))))
    }

    /// Answers as one text.
    pub(super) fn whole(self, value: &Value) -> Answer {
        Answer::json(200, self.wrapped(value))
    }

    /// The message of a request that the agent got.
    pub(super) fn sent(self, request: &Received) -> Value {
        let json = request.json();
        match self {
            Rpc03 | Rpc1 => json["params"]["message"].clone(),
            Rest03 => json["request"].clone(),
            Rest1 => json["message"].clone(),
        }
    }

    /// The text of a message that answers, and its conversation; an error when the answer has another shape.
    pub(super) fn reply(self, answer: &Value) -> Result<(String, String), String> {
        let (message, role) = match self {
            Rpc03 => (&answer["result"], "agent"),
            Rpc1 => (&answer["result"]["message"], "ROLE_AGENT"),
            _ => (&answer["message"], "ROLE_AGENT"),
        };
        let id_fits = !self.is_rpc() || answer["id"] == "q-1";
        let parts = &message[self.parts()];
        let text = parts[0]["text"].as_str().filter(|_| parts.as_array().is_some_and(|parts| parts.len() == 1));
        let kind_fits = self != Rpc03 || message["kind"] == "message" && parts[0]["kind"] == "text";
        let context = message["contextId"].as_str().filter(|context| !context.is_empty());
        match (text, context) {
            (Some(text), Some(context))
                if id_fits && kind_fits && message["role"] == role && message["messageId"].is_string() =>
            {
                Ok((text.to_owned(), context.to_owned()))
            }
            _ => Err(format!("not a message of {self:?}: {answer}")),
        }
    }
}
