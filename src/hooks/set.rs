//! The compiled set of handlers.

use std::sync::Arc;

use super::allowed_hosts::AllowedHosts;
use super::document::{Reader, Surroundings};
use super::{Event, Handler, HookErrors, Matcher, Occasion, Redaction};

/// Every configured handler, checked and in order: documents as they were added, handlers as they were declared; and the tools
/// that are denied without asking anybody.
///
/// ```
/// use hookgate::hooks::{Event, HookSet};
/// let document = br#"{"version": 1, "hooks": {"PreToolUse": [
///     {"id": "policy", "type": "http", "url": "https://hooks.example.com/p", "matcher": ["deploy"]}]}}"#;
/// let set = HookSet::builder()
///     .allowed_hosts(["hooks.example.com"])
///     .document("hooks.json", document)
///     .build()
///     .unwrap();
/// assert_eq!(set.matching(Event::PreToolUse, Some("deploy")).count(), 1);
/// assert_eq!(set.matching(Event::PreToolUse, Some("read")).count(), 0);
///
/// let errors = HookSet::builder().document("hooks.json", document).build().unwrap_err();
/// assert!(errors.to_string().starts_with("hooks.json:2:45: $.hooks.PreToolUse[0].url: "), "{errors}");
/// ```
#[derive(Clone, Debug, Default)]
pub struct HookSet {
    by_event: [Vec<Arc<Handler>>; Event::ALL.len()],
    redaction: Redaction,
    allowed_hosts: AllowedHosts,
    denied: Option<Matcher>,
}

impl HookSet {
    /// No handler.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Starts a set.
    pub fn builder() -> HookSetBuilder {
        HookSetBuilder::default()
    }

    /// Whether there is no handler, and no tool is denied.
    pub fn is_empty(&self) -> bool {
        self.by_event.iter().all(Vec::is_empty) && self.denied.is_none()
    }

    /// Whether a tool is denied whatever handlers say; see [`HookSetBuilder::deny_tools`].
    pub fn denies(&self, tool: &str) -> bool {
        self.denied.as_ref().is_some_and(|denied| denied.matches(tool))
    }

    /// The tools that are denied, as they were listed.
    pub fn denied_tools(&self) -> &[Arc<str>] {
        self.denied.as_ref().and_then(Matcher::names).unwrap_or_default()
    }

    /// Whether an event that is about to happen may be refused or changed.
    pub fn gates(&self, event: Event) -> bool {
        event.gates() && (self.has(event) || event == Event::PreToolUse && self.denied.is_some())
    }

    /// Whether calls of this tool may be refused or changed.
    pub fn gates_calls_of(&self, tool: &str) -> bool {
        self.denies(tool) || self.matching(Event::PreToolUse, Some(tool)).next().is_some()
    }

    /// Whether the event has a handler.
    pub fn has(&self, event: Event) -> bool {
        !self.handlers(event).is_empty()
    }

    /// The handlers of an event, in the order in which they are asked.
    pub fn handlers(&self, event: Event) -> &[Arc<Handler>] {
        &self.by_event[event as usize]
    }

    /// Those handlers of an event that a name concerns. `None` stands for a name that is not known: it may be any, so
    /// every handler is concerned.
    pub fn matching<'a>(&'a self, event: Event, name: Option<&'a str>) -> impl Iterator<Item = &'a Arc<Handler>> {
        self.handlers(event).iter().filter(move |handler| name.is_none_or(|name| handler.matcher.matches(name)))
    }

    /// Those handlers that an occasion concerns.
    pub fn concerned(&self, occasion: &Occasion) -> Vec<Arc<Handler>> {
        let name = occasion.full_name();
        self.matching(occasion.event, name.as_deref()).cloned().collect()
    }

    /// The same set with no handler but those of that id.
    #[must_use]
    pub fn only(&self, id: &str) -> HookSet {
        let mut only = self.clone();
        for handlers in &mut only.by_event {
            handlers.retain(|handler| *handler.id == *id);
        }
        only
    }

    /// The same set without the handlers of these ids. What is denied without asking anybody stays denied.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use hookgate::hooks::{Event, HookSet};
    /// let document = br#"{"version": 1, "hooks": {"Stop": [
    ///     {"id": "a", "type": "http", "url": "https://hooks.example.com/a"},
    ///     {"id": "b", "type": "http", "url": "https://hooks.example.com/b"},
    ///     {"id": "c", "type": "http", "url": "https://hooks.example.com/c"}]}}"#;
    /// let set = HookSet::builder().allowed_hosts(["hooks.example.com"]).document("d", document).build().unwrap();
    /// let left = set.without(&[Arc::from("b")]);
    /// assert_eq!(left.handlers(Event::Stop).iter().map(|handler| &*handler.id).collect::<Vec<_>>(), ["a", "c"]);
    /// ```
    #[must_use]
    pub fn without(&self, ids: &[Arc<str>]) -> HookSet {
        let mut left = self.clone();
        for handlers in &mut left.by_event {
            handlers.retain(|handler| !ids.contains(&handler.id));
        }
        left
    }

    /// All handlers, event by event.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Handler>> {
        self.by_event.iter().flatten()
    }

    /// Whether an address is on a host that handlers may be on.
    pub fn allows_host(&self, url: &url::Url) -> bool {
        self.allowed_hosts.allows(url)
    }

    /// A set that was compiled wrongly, to test what is checked again before a request leaves.
    #[cfg(test)]
    pub(crate) fn without_allowed_hosts(mut self) -> Self {
        self.allowed_hosts = AllowedHosts::default();
        self
    }

    /// What handlers must not see.
    pub fn redaction(&self) -> &Redaction {
        &self.redaction
    }
}

/// Collects documents and their surroundings; see [`HookSet::builder`].
#[derive(Clone, Debug, Default)]
pub struct HookSetBuilder {
    documents: Vec<(Arc<str>, Vec<u8>)>,
    allowed_hosts: Vec<String>,
    allow_insecure_loopback: bool,
    connections: Vec<Arc<str>>,
    redaction: Redaction,
    denied: Vec<Arc<str>>,
}

impl HookSetBuilder {
    /// Adds a native v1 document; `source` names it in errors (a file's path, or the variable that it came from).
    #[must_use]
    pub fn document(mut self, source: &str, bytes: &[u8]) -> Self {
        self.documents.push((source.into(), bytes.to_vec()));
        self
    }

    /// Adds hosts that handlers may be on: `host` for every port, `host:port` for one.
    #[must_use]
    pub fn allowed_hosts<'a>(mut self, hosts: impl IntoIterator<Item = &'a str>) -> Self {
        self.allowed_hosts.extend(hosts.into_iter().map(str::to_owned));
        self
    }

    /// Whether `http` is accepted for handlers on loopback addresses.
    #[must_use]
    pub fn allow_insecure_loopback(mut self, allow: bool) -> Self {
        self.allow_insecure_loopback = allow;
        self
    }

    /// The names of the connections that documents may refer to.
    #[must_use]
    pub fn connections<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.connections.extend(names.into_iter().map(Arc::from));
        self
    }

    /// What handlers must not see.
    #[must_use]
    pub fn redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Tools that are denied without asking anybody, named as matchers name them: by their own name, or as
    /// `mcp__<server>__<tool>`. No handler can allow them.
    ///
    /// ```
    /// use hookgate::hooks::HookSet;
    /// let set = HookSet::builder().deny_tools(["wipe", "mcp__files__write"]).build().unwrap();
    /// assert!(set.denies("wipe") && set.denies("mcp__any__wipe") && set.denies("mcp__files__write"));
    /// assert!(!set.denies("write") && !set.is_empty());
    /// ```
    #[must_use]
    pub fn deny_tools<'a>(mut self, tools: impl IntoIterator<Item = &'a str>) -> Self {
        self.denied.extend(tools.into_iter().map(Arc::from));
        self
    }

    /// Checks everything.
    ///
    /// # Errors
    /// All mistakes of all documents.
    pub fn build(self) -> Result<HookSet, HookErrors> {
        let mut errors = Vec::new();
        let allowed_hosts = AllowedHosts::parse(self.allowed_hosts.iter().map(String::as_str), &mut errors);
        let mut reader = Reader::new(Surroundings {
            hosts: &allowed_hosts,
            allow_insecure_loopback: self.allow_insecure_loopback,
            connections: &self.connections,
        });
        for (source, text) in &self.documents {
            reader.read(source, text);
        }
        let Reader { handlers, errors: mistakes, .. } = reader;
        errors.extend(mistakes);
        if !errors.is_empty() {
            return Err(HookErrors::new(errors));
        }
        let denied = Some(self.denied).filter(|denied| !denied.is_empty()).map(Matcher::of);
        let mut set = HookSet { redaction: self.redaction, allowed_hosts, denied, ..HookSet::default() };
        for handler in handlers {
            set.by_event[handler.event as usize].push(Arc::new(handler));
        }
        Ok(set)
    }
}
