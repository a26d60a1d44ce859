use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::client::{Client, Incoming};
use super::reply::Reply;
use crate::BoxError;

/// The most requests of one prompt: an agent that goes on for longer is in a loop.
const MAX_REQUESTS: usize = 16;

/// What a tool does: its input to its result, or to the text of its failure.
type Tool = Box<dyn Fn(&Value) -> Result<String, String> + Send + Sync>;

/// A minimal agent: it sends its history, runs the tools that the model asks for and goes on until there are no more.
///
/// See the [module](super) for an example.
pub struct Agent {
    client: Client,
    headers: BTreeMap<String, String>,
    members: Map<String, Value>,
    tools: BTreeMap<String, Tool>,
    history: Vec<Value>,
    echo: Echo,
    stream: bool,
}

/// How an agent writes its history down again, as real clients do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Echo {
    /// As it was.
    #[default]
    Exact,
    /// With `cache_control` on the last part of the last message, wherever that is now.
    MovingCacheControl,
    /// With prompts of one text collapsed to a string, except the last.
    CollapsedText,
    /// Without the thinking of all answers but the last.
    DroppedThinking,
}

impl Agent {
    /// An agent that talks to the model API at a base URL and streams.
    pub fn new(base: &str) -> Self {
        let mut members = Map::new();
        members.insert("model".to_owned(), "claude-test".into());
        members.insert("max_tokens".to_owned(), 1024.into());
        Agent {
            client: Client::new(base),
            headers: BTreeMap::new(),
            members,
            tools: BTreeMap::new(),
            history: Vec::new(),
            echo: Echo::Exact,
            stream: true,
        }
    }

    /// Whether answers are streamed.
    #[must_use]
    pub fn streaming(mut self, stream: bool) -> Self {
        self.stream = stream;
        self
    }

    /// Gives the agent a tool with any object as its input.
    #[must_use]
    pub fn tool(self, name: &str, run: impl Fn(&Value) -> Result<String, String> + Send + Sync + 'static) -> Self {
        self.tool_with(name, json!({"type": "object"}), run)
    }

    /// Gives the agent a tool with a schema.
    #[must_use]
    pub fn tool_with(
        mut self,
        name: &str,
        schema: Value,
        run: impl Fn(&Value) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        self.tools.insert(name.to_owned(), Box::new(run));
        self.declare(json!({"name": name, "description": format!("The tool {name}."), "input_schema": schema}))
    }

    /// Declares a tool that the agent does not run itself.
    #[must_use]
    pub fn declare(mut self, declaration: Value) -> Self {
        if let Value::Array(tools) = self.members.entry("tools").or_insert_with(|| json!([])) {
            tools.push(declaration);
        }
        self
    }

    /// Sends a header with every request.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Names the session, in hookgate's own header.
    #[must_use]
    pub fn session(self, id: &str) -> Self {
        self.header("x-hookgate-session", id)
    }

    /// Sends what tells Claude Code apart.
    #[must_use]
    pub fn claude_code(self, session: &str) -> Self {
        self.header("x-claude-code-session-id", session).header("user-agent", "claude-cli/2.1.197 (external, cli)")
    }

    /// Sets a member of every request's body; `null` takes it away.
    #[must_use]
    pub fn member(mut self, name: &str, value: Value) -> Self {
        self.set_member(name, value);
        self
    }

    /// The same for requests from now on.
    pub fn set_member(&mut self, name: &str, value: Value) {
        if value.is_null() {
            self.members.remove(name);
        } else {
            self.members.insert(name.to_owned(), value);
        }
    }

    /// Sets how the history is written.
    #[must_use]
    pub fn echo(mut self, echo: Echo) -> Self {
        self.echo = echo;
        self
    }

    /// The messages so far, which may be edited as clients do that rewind, fork or compact.
    pub fn history(&mut self) -> &mut Vec<Value> {
        &mut self.history
    }

    /// Says something to the model and runs its tools until it asks for no more. All answers, in order.
    ///
    /// # Errors
    /// When a request has no answer, an answer does not add up, or the loop does not end.
    pub async fn prompt(&mut self, text: &str) -> Result<Vec<Reply>, BoxError> {
        self.say(text);
        self.go_on().await
    }

    /// Adds a prompt to the history.
    pub fn say(&mut self, text: &str) {
        self.history.push(json!({"role": "user", "content": [{"type": "text", "text": text}]}));
    }

    /// Sends the history and runs tools until the model asks for no more.
    ///
    /// # Errors
    /// As [`Agent::prompt`].
    pub async fn go_on(&mut self) -> Result<Vec<Reply>, BoxError> {
        let mut replies = Vec::new();
        while replies.len() < MAX_REQUESTS {
            let reply = self.request().await?;
            let more = self.take(&reply);
            replies.push(reply);
            if !more {
                return Ok(replies);
            }
        }
        Err("the agent is in a loop".into())
    }

    /// Sends the history once and reads the answer, which is not added to the history.
    ///
    /// # Errors
    /// When there is no answer or it does not add up.
    pub async fn request(&self) -> Result<Reply, BoxError> {
        Reply::read(self.send().await?).await
    }

    /// Says something to the model once: the answer is read and not added to the history.
    ///
    /// # Errors
    /// As [`Agent::request`].
    pub async fn request_for(&mut self, text: &str) -> Result<Reply, BoxError> {
        self.say(text);
        self.request().await
    }

    /// Sends the history once and gives the answer while it comes.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send(&self) -> Result<Incoming, BoxError> {
        self.send_body(self.body()).await
    }

    /// Sends any body with the agent's headers.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn send_body(&self, body: impl Into<Bytes>) -> Result<Incoming, BoxError> {
        let headers: Vec<(&str, &str)> = self.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        self.client.post("/v1/messages", &headers, body).await
    }

    /// The body of the next request.
    pub fn body(&self) -> Bytes {
        let mut body = self.members.clone();
        body.insert("messages".to_owned(), self.echo.write(&self.history).into());
        if self.stream {
            body.insert("stream".to_owned(), true.into());
        }
        Value::Object(body).to_string().into()
    }

    /// Adds an answer and the results of its calls to the history; whether there were calls.
    pub fn take(&mut self, reply: &Reply) -> bool {
        if !reply.blocks().is_empty() {
            self.history.push(json!({"role": "assistant", "content": reply.blocks()}));
        }
        let results: Vec<Value> = reply.calls().iter().map(|call| self.run(call)).collect();
        if results.is_empty() {
            return false;
        }
        self.history.push(json!({"role": "user", "content": results}));
        true
    }

    fn run(&self, call: &super::reply::Call) -> Value {
        let result = match self.tools.get(&call.name) {
            Some(tool) => tool(&call.input),
            None => Err(format!("there is no tool {}", call.name)),
        };
        match result {
            Ok(text) => json!({"type": "tool_result", "tool_use_id": call.id, "content": text}),
            Err(text) => json!({"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": true}),
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("history", &self.history).finish_non_exhaustive()
    }
}

impl Echo {
    fn write(self, history: &[Value]) -> Vec<Value> {
        let mut messages = history.to_vec();
        let last = messages.len().saturating_sub(1);
        for (at, message) in messages.iter_mut().enumerate() {
            let Some(parts) = message["content"].as_array_mut() else { continue };
            match self {
                Echo::Exact => {}
                Echo::MovingCacheControl => {
                    if at == last
                        && let Some(part) = parts.last_mut()
                    {
                        part["cache_control"] = json!({"type": "ephemeral"});
                    }
                }
                Echo::CollapsedText => {
                    if let [part] = parts.as_slice()
                        && at != last
                        && part["type"] == "text"
                    {
                        message["content"] = part["text"].clone();
                    }
                }
                Echo::DroppedThinking => {
                    if at + 2 < last {
                        parts.retain(|part| part["type"] != "thinking");
                    }
                }
            }
        }
        messages
    }
}
