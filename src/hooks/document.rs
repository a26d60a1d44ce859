//! Reading native v1 documents, strictly: a policy that was mistyped must not silently be no policy.
//!
//! Everything that is wrong is reported at once, each with its place, what was found and what is accepted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::allowed_hosts::AllowedHosts;
use super::document_url;
use super::{Dialect, Event, FailureMode, Handler, HookError, Matcher, Names, Target};
use crate::limits::{DEFAULT_HANDLER_TIMEOUT, MAX_HANDLER_TIMEOUT};
use crate::wire::json::{Member, Node, Value, parse_tree, position, quote};

/// The longest handler id, in characters: it appears in reasons, logs and metrics.
const MAX_ID_CHARS: usize = 128;

/// What documents are checked against.
pub(super) struct Surroundings<'a> {
    pub(super) hosts: &'a AllowedHosts,
    pub(super) allow_insecure_loopback: bool,
    pub(super) connections: &'a [Arc<str>],
}

/// Reads the documents of one set.
pub(super) struct Reader<'a> {
    pub(super) around: Surroundings<'a>,
    pub(super) handlers: Vec<Handler>,
    pub(super) errors: Vec<HookError>,
    /// Where each id was declared first, over all documents.
    ids: HashMap<Arc<str>, String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(around: Surroundings<'a>) -> Self {
        Reader { around, handlers: Vec::new(), errors: Vec::new(), ids: HashMap::new() }
    }

    /// Reads one document: adds its handlers, or its mistakes in the order of the text.
    pub(super) fn read(&mut self, source: &Arc<str>, text: &[u8]) {
        let mut document = Document { reader: self, source, text, errors: Vec::new() };
        match parse_tree(text) {
            Ok(root) => {
                document.duplicates(&root, "$");
                document.root(&root);
            }
            Err(error) => document.error(error.offset, "$", error.what, "accepted is one JSON object"),
        }
        let mut errors = document.errors;
        errors.sort_by_key(|(offset, _)| *offset);
        self.errors.extend(errors.into_iter().map(|(_, error)| error));
    }
}

struct Document<'r, 'a, 't> {
    reader: &'r mut Reader<'a>,
    source: &'t Arc<str>,
    text: &'t [u8],
    errors: Vec<(usize, HookError)>,
}

/// The members of an object that have a place in the contract, with their paths.
type Fields<'n, 't> = HashMap<&'static str, (&'n Node<'t>, String)>;

impl<'t> Document<'_, '_, 't> {
    fn error(&mut self, offset: usize, path: &str, found: impl Into<String>, accepted: impl Into<String>) {
        let error = HookError {
            source: self.source.clone(),
            position: Some(position(self.text, offset)),
            path: path.to_owned(),
            found: found.into(),
            accepted: accepted.into(),
        };
        self.errors.push((offset, error));
    }

    /// A value of the wrong kind.
    fn wrong(&mut self, node: &Node<'_>, path: &str, accepted: impl Into<String>) {
        let found = format!("found {}", self.describe(node));
        self.error(node.span.start, path, found, accepted);
    }

    /// Shows a value as far as it helps: numbers and short strings, but not what is inside arrays and objects.
    fn describe(&self, node: &Node<'_>) -> String {
        match &node.value {
            Value::Object(_) => "an object".into(),
            Value::Array(_) => "an array".into(),
            Value::String(string) => quote(&shortened(&string.decode())),
            Value::Number | Value::Bool(_) | Value::Null => {
                shortened(&String::from_utf8_lossy(node.span.of(self.text)))
            }
        }
    }

    fn duplicates(&mut self, node: &Node<'_>, path: &str) {
        match &node.value {
            Value::Object(members) => {
                for member in members {
                    let path = child(path, &member.key.decode());
                    if member.duplicate {
                        let offset = member.key.span().start;
                        self.error(offset, &path, "the key stands twice in its object", "each key is accepted once");
                    }
                    self.duplicates(&member.value, &path);
                }
            }
            Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    self.duplicates(element, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }

    fn root(&mut self, root: &Node<'t>) {
        let Some(fields) = self.fields(root, "$", &["version", "hooks"]) else { return };
        for name in ["version", "hooks"] {
            if !fields.contains_key(name) {
                self.missing(root, "$", name);
            }
        }
        if let Some((version, path)) = fields.get("version")
            && version.span.of(self.text) != b"1"
        {
            self.wrong(version, path, "accepted is 1");
        }
        let Some((hooks, path)) = fields.get("hooks") else { return };
        let Some(events) = self.object(hooks, path) else { return };
        for member in events.iter().filter(|member| !member.duplicate) {
            let path = child(path, &member.key.decode());
            match Event::parse(&member.key.decode()) {
                Some(event) => self.event(event, &member.value, &path),
                None => {
                    let names = Event::ALL.map(Event::name).join(", ");
                    self.error(
                        member.key.span().start,
                        &path,
                        "found an unknown event",
                        format!("accepted are {names}"),
                    );
                }
            }
        }
    }

    fn event(&mut self, event: Event, node: &Node<'t>, path: &str) {
        let Value::Array(elements) = &node.value else {
            return self.wrong(node, path, "accepted is an array of handlers");
        };
        for (index, element) in elements.iter().enumerate() {
            let before = self.errors.len();
            let handler = self.handler(event, element, &format!("{path}[{index}]"));
            if let Some(handler) = handler
                && self.errors.len() == before
            {
                self.reader.handlers.push(handler);
            }
        }
    }

    /// `None` when something is wrong; something may be wrong even if there is a handler.
    fn handler(&mut self, event: Event, node: &Node<'t>, path: &str) -> Option<Handler> {
        const KEYS: [&str; 8] = ["id", "type", "url", "matcher", "timeoutMs", "failureMode", "dialect", "connection"];
        let fields = self.fields(node, path, &KEYS)?;
        for name in ["id", "type", "url"] {
            if !fields.contains_key(name) {
                self.missing(node, path, name);
            }
        }
        let at = |name: &str| fields.get(name).map(|(node, path)| (*node, path.as_str()));
        let id = at("id").and_then(|(node, path)| self.id(node, path));
        if let Some((node, path)) = at("type") {
            self.choice(node, path, &[("http", ())]);
        }
        let url = at("url").and_then(|(node, path)| self.url(node, path));
        let matcher = match at("matcher") {
            Some((node, path)) => self.matcher(event, node, path),
            None => Some(Matcher::any()),
        };
        let timeout = match at("timeoutMs") {
            Some((node, path)) => self.timeout(node, path),
            None => Some(DEFAULT_HANDLER_TIMEOUT),
        };
        let failure_mode = match at("failureMode") {
            Some((node, path)) => self.failure_mode(event, node, path),
            None => Some(event.default_failure_mode()),
        };
        let dialect = match at("dialect") {
            Some((node, path)) => {
                self.choice(node, path, &[("native", Dialect::Native), ("claude-code", Dialect::ClaudeCode)])
            }
            None => Some(Dialect::Native),
        };
        let connection = match at("connection") {
            Some((node, path)) => Some(self.connection(node, path)?),
            None => None,
        };
        Some(Handler {
            id: id?,
            event,
            target: Target::Http { url: url? },
            matcher: matcher?,
            timeout: timeout?,
            failure_mode: failure_mode?,
            dialect: dialect?,
            connection,
            source: self.source.clone(),
        })
    }

    fn id(&mut self, node: &Node<'_>, path: &str) -> Option<Arc<str>> {
        let id: Arc<str> = match self.string(node, path)? {
            id if id.is_empty() || id.chars().count() > MAX_ID_CHARS || id.chars().any(char::is_control) => {
                let accepted = format!("accepted are 1 to {MAX_ID_CHARS} characters without control characters");
                self.wrong(node, path, accepted);
                return None;
            }
            id => id.into(),
        };
        let (line, column) = position(self.text, node.span.start);
        let here = format!("{}:{line}:{column}", self.source);
        match self.reader.ids.get(&id).cloned() {
            Some(first) => {
                let found = format!("found the id {} again, declared at {first}", quote(&id));
                self.error(node.span.start, path, found, "each handler needs an id of its own over all documents");
                None
            }
            None => {
                self.reader.ids.insert(id.clone(), here);
                Some(id)
            }
        }
    }

    fn url(&mut self, node: &Node<'_>, path: &str) -> Option<url::Url> {
        let text = self.string(node, path)?;
        let (url, mistakes) = document_url::check(&text, &self.reader.around);
        for (found, accepted) in mistakes {
            self.error(node.span.start, path, found, accepted);
        }
        url
    }

    fn matcher(&mut self, event: Event, node: &Node<'_>, path: &str) -> Option<Matcher> {
        const ACCEPTED: &str = "accepted is an array of at least one exact name; without a matcher every name matches";
        if event.names() == Names::None {
            let found = format!("found a matcher, but {} has no name to compare", event.name());
            self.error(node.span.start, path, found, "accepted on this event is no matcher");
            return None;
        }
        let elements = match &node.value {
            Value::Array(elements) if !elements.is_empty() => elements,
            Value::Array(_) => {
                self.error(node.span.start, path, "found an empty array", ACCEPTED);
                return None;
            }
            _ => {
                self.wrong(node, path, ACCEPTED);
                return None;
            }
        };
        let mut names = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(name) = self.string(element, &path) else { continue };
            // No tool is named with these: it is a pattern of another product, which would match nothing here.
            if name.is_empty() || name.contains(['*', '|', '^', '$', '\\']) {
                self.wrong(element, &path, "accepted is an exact name, not a pattern");
                continue;
            }
            names.push(Arc::from(name));
        }
        (names.len() == elements.len()).then(|| Matcher::of(names))
    }

    fn timeout(&mut self, node: &Node<'_>, path: &str) -> Option<Duration> {
        let max = MAX_HANDLER_TIMEOUT.as_millis() as u64;
        let millis = match node.value {
            Value::Number => std::str::from_utf8(node.span.of(self.text)).ok().and_then(|text| text.parse().ok()),
            _ => None,
        };
        match millis {
            Some(millis) if (1..=max).contains(&millis) => Some(Duration::from_millis(millis)),
            _ => {
                self.wrong(node, path, format!("accepted is a whole number of milliseconds from 1 to {max}"));
                None
            }
        }
    }

    fn failure_mode(&mut self, event: Event, node: &Node<'_>, path: &str) -> Option<FailureMode> {
        let mode = self.choice(node, path, &[("open", FailureMode::Open), ("closed", FailureMode::Closed)])?;
        if mode == FailureMode::Closed && event.failure_mode_is_fixed() {
            let found = format!("found \"closed\", but {} only observes and cannot refuse anything", event.name());
            self.error(node.span.start, path, found, "accepted on this event is \"open\"");
            return None;
        }
        Some(mode)
    }

    fn connection(&mut self, node: &Node<'_>, path: &str) -> Option<Arc<str>> {
        let name = self.string(node, path)?;
        let declared = self.reader.around.connections;
        let known = declared.iter().find(|connection| ***connection == *name).cloned();
        if known.is_none() {
            let names = match declared {
                [] => "accepted is the NAME of a [connections.NAME] entry, and there is none".to_owned(),
                names => format!("accepted is the name of a [connections] entry: {}", names.join(", ")),
            };
            self.wrong(node, path, names);
        }
        known
    }

    fn choice<T: Copy>(&mut self, node: &Node<'_>, path: &str, choices: &[(&str, T)]) -> Option<T> {
        if let Value::String(string) = &node.value
            && let Some((_, chosen)) = choices.iter().find(|(name, _)| string.is(name))
        {
            return Some(*chosen);
        }
        let names: Vec<_> = choices.iter().map(|(name, _)| quote(name)).collect();
        self.wrong(node, path, format!("accepted is {}", names.join(" or ")));
        None
    }

    fn string(&mut self, node: &Node<'_>, path: &str) -> Option<String> {
        match &node.value {
            Value::String(string) => Some(string.decode().into_owned()),
            _ => {
                self.wrong(node, path, "accepted is a string");
                None
            }
        }
    }

    fn object<'n>(&mut self, node: &'n Node<'t>, path: &str) -> Option<&'n [Member<'t>]> {
        match &node.value {
            Value::Object(members) => Some(members),
            _ => {
                self.wrong(node, path, "accepted is an object");
                None
            }
        }
    }

    /// The known members of an object; the unknown ones are mistakes.
    fn fields<'n>(&mut self, node: &'n Node<'t>, path: &str, known: &[&'static str]) -> Option<Fields<'n, 't>> {
        let mut fields = Fields::new();
        for member in self.object(node, path)?.iter().filter(|member| !member.duplicate) {
            let path = child(path, &member.key.decode());
            if let Some(name) = known.iter().find(|name| member.key.is(name)) {
                fields.insert(name, (&member.value, path));
            } else if document_url::names_a_secret(&member.key.decode()) {
                self.error(
                    member.key.span().start,
                    &path,
                    "found a credential in the document",
                    "accepted is a reference: put it into a [connections.NAME] entry and write \"connection\": \"NAME\"",
                );
            } else {
                let accepted = format!("accepted are {}", known.join(", "));
                self.error(member.key.span().start, &path, "found an unknown key", accepted);
            }
        }
        Some(fields)
    }

    fn missing(&mut self, node: &Node<'_>, path: &str, name: &str) {
        self.error(node.span.start, path, format!("found no {}", quote(name)), "it is required");
    }
}

/// The path of a member.
fn child(path: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { format!("{path}.{}", shortened(key)) } else { format!("{path}[{}]", quote(&shortened(key))) }
}

/// At most 60 characters, for a message.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
