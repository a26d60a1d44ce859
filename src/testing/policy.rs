use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::gate::Gate;
use super::server::{Received, Server};
use crate::Body;

/// A policy service on loopback that speaks the native v1 contract. It ends when it is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), hookgate::BoxError> {
/// use hookgate::testing::{Policy, Ruling, document};
/// let policy = Policy::start(|asked| match asked.tool() {
///     "rm" => Ruling::deny("nothing is removed here"),
///     _ => Ruling::pass(),
/// })
/// .await?;
/// let document = document([policy.hook("PreToolUse").matcher(["rm", "mv"])]);
/// assert!(String::from_utf8(document)?.contains("\"PreToolUse\""));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Policy {
    server: Server,
}

/// What a handler was told.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// The body as it came.
    pub raw: Bytes,
    /// The header as it came.
    pub headers: HeaderMap,
    json: Value,
}

impl Envelope {
    fn of(request: &Received) -> Self {
        Envelope { raw: request.body.clone(), headers: request.headers.clone(), json: request.json() }
    }

    /// The envelope as JSON.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// A string member; empty when it is not there.
    pub fn text(&self, pointer: &str) -> &str {
        self.json.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The event's name.
    pub fn event(&self) -> &str {
        self.text("/event")
    }

    /// The tool that the event is about; empty when it is about none.
    pub fn tool(&self) -> &str {
        self.text("/detail/toolName")
    }

    /// The detail.
    pub fn detail(&self) -> &Value {
        &self.json["detail"]
    }
}

/// What a policy answers.
#[derive(Clone, Debug)]
pub struct Ruling {
    status: u16,
    body: Content,
    after: Option<Gate>,
}

#[derive(Clone, Debug)]
enum Content {
    Fields(Vec<(&'static str, String)>),
    Raw(Bytes),
}

impl Ruling {
    fn outcome(outcome: &str) -> Self {
        let fields = vec![("schemaVersion", "1".to_owned()), ("outcome", json!(outcome).to_string())];
        Ruling { status: 200, body: Content::Fields(fields), after: None }
    }

    fn field(mut self, name: &'static str, json: String) -> Self {
        if let Content::Fields(fields) = &mut self.body {
            fields.push((name, json));
        }
        self
    }

    /// No objection.
    pub fn pass() -> Self {
        Ruling::outcome("pass")
    }

    /// Refuse.
    pub fn deny(reason: &str) -> Self {
        Ruling::outcome("deny").field("reason", json!(reason).to_string())
    }

    /// Go on with another prompt (a string) or another input (an object).
    pub fn modify(replacement: impl Into<Value>) -> Self {
        Ruling::modify_raw(&replacement.into().to_string())
    }

    /// Go on with another prompt or input, given as JSON text.
    pub fn modify_raw(replacement: &str) -> Self {
        Ruling::outcome("modify").field("replacement", replacement.to_owned())
    }

    /// The turn must go on.
    pub fn go_on(reason: &str) -> Self {
        Ruling::outcome("continue").field("reason", json!(reason).to_string())
    }

    /// Any status and body at all.
    pub fn raw(status: u16, body: impl Into<Bytes>) -> Self {
        Ruling { status, body: Content::Raw(body.into()), after: None }
    }

    /// Adds text for the model.
    #[must_use]
    pub fn context(self, text: &str) -> Self {
        self.field("additionalContext", json!(text).to_string())
    }

    /// Answers only when the gate is open.
    #[must_use]
    pub fn after(mut self, gate: &Gate) -> Self {
        self.after = Some(gate.clone());
        self
    }

    fn into_response(self) -> Response<Body> {
        let body = match self.body {
            Content::Raw(body) => body,
            Content::Fields(fields) => {
                let fields: Vec<String> = fields.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
                format!("{{{}}}", fields.join(",")).into()
            }
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

impl Policy {
    /// Decides as the closure says.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static) -> io::Result<Policy> {
        let server = Server::start(|log| {
            Arc::new(move |_, request| {
                let (ruling, mut unfinished) = (decide(&Envelope::of(&request)), log.unfinished());
                Box::pin(async move {
                    if let Some(gate) = &ruling.after {
                        gate.passed().await;
                    }
                    unfinished.finish();
                    Ok(ruling.into_response())
                })
            })
        });
        Ok(Policy { server: server.await? })
    }

    /// The handler's URL.
    pub fn url(&self) -> String {
        format!("{}/hooks", self.server.url())
    }

    /// A handler entry for that event, which asks this policy. Its id is `policy-<event>`.
    pub fn hook(&self, event: &str) -> Hook {
        Hook::new(event, &self.url())
    }

    /// What was asked and told so far.
    pub fn asked(&self) -> Vec<Envelope> {
        self.server.log().received().iter().map(|request| Envelope::of(request)).collect()
    }

    /// What was asked and told of one event.
    pub fn asked_of(&self, event: &str) -> Vec<Envelope> {
        self.asked().into_iter().filter(|envelope| envelope.event() == event).collect()
    }

    /// Waits until that many dispatches have come and gives all that came.
    pub async fn at_least(&self, count: usize) -> Vec<Envelope> {
        self.server.log().at_least(count).await.iter().map(|request| Envelope::of(request)).collect()
    }

    /// Waits until that many dispatches of one event have come and gives those that came.
    pub async fn at_least_of(&self, event: &str, count: usize) -> Vec<Envelope> {
        let mut all = 0;
        loop {
            let asked: Vec<Envelope> = self.at_least(all).await;
            all = asked.len() + 1;
            let of_event: Vec<Envelope> = asked.into_iter().filter(|envelope| envelope.event() == event).collect();
            if of_event.len() >= count {
                return of_event;
            }
        }
    }

    /// Waits until hookgate gave up that many dispatches before they were answered.
    pub async fn abandoned(&self, count: usize) {
        self.server.log().abandoned(count).await;
    }
}

/// One handler entry of a hook document.
#[derive(Clone, Debug)]
pub struct Hook {
    event: String,
    entry: serde_json::Map<String, Value>,
}

impl Hook {
    /// A handler of that event at that URL, with the id `policy-<event>`.
    pub fn new(event: &str, url: &str) -> Self {
        let mut entry = serde_json::Map::new();
        entry.insert("id".to_owned(), format!("policy-{event}").into());
        entry.insert("type".to_owned(), "http".into());
        entry.insert("url".to_owned(), url.into());
        Hook { event: event.to_owned(), entry }
    }

    fn set(mut self, name: &str, value: Value) -> Self {
        self.entry.insert(name.to_owned(), value);
        self
    }

    /// Sets the id.
    #[must_use]
    pub fn id(self, id: &str) -> Self {
        self.set("id", id.into())
    }

    /// Only for these names.
    #[must_use]
    pub fn matcher<'a>(self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: Vec<Value> = names.into_iter().map(Value::from).collect();
        self.set("matcher", names.into())
    }

    /// A failure of the handler lets pass.
    #[must_use]
    pub fn open(self) -> Self {
        self.set("failureMode", "open".into())
    }

    /// Sets the time for an answer.
    #[must_use]
    pub fn timeout_ms(self, millis: u32) -> Self {
        self.set("timeoutMs", millis.into())
    }

    /// Speaks to the handler as Claude Code does.
    #[must_use]
    pub fn claude_code(self) -> Self {
        self.set("dialect", "claude-code".into())
    }
}

/// A native v1 document with these handlers.
pub fn document(hooks: impl IntoIterator<Item = Hook>) -> Vec<u8> {
    let mut events = serde_json::Map::new();
    for hook in hooks {
        let entries = events.entry(hook.event).or_insert_with(|| json!([]));
        if let Value::Array(entries) = entries {
            entries.push(hook.entry.into());
        }
    }
    json!({"version": 1, "hooks": events}).to_string().into_bytes()
}
