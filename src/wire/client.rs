//! Who a client says it is, by the headers that agents send by themselves.

use http::HeaderMap;

/// The longest id that is taken from a request; a longer one is no id.
const MAX_ID_BYTES: usize = 256;

/// What the headers say about the session and the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The session.
    pub session: Option<String>,
    /// The sub-agent that sends the request.
    pub agent: Option<String>,
    /// The agent that started it.
    pub parent: Option<String>,
}

impl ClientIdentity {
    /// Reads the headers: hookgate's own first, then those of Claude Code, Codex and opencode.
    ///
    /// ```
    /// use hookgate::wire::client::ClientIdentity;
    /// let mut headers = http::HeaderMap::new();
    /// headers.insert("x-claude-code-session-id", "s".parse().unwrap());
    /// headers.insert("x-claude-code-agent-id", "a".parse().unwrap());
    /// let identity = ClientIdentity::of(&headers);
    /// assert_eq!((identity.session.as_deref(), identity.agent.as_deref()), (Some("s"), Some("a")));
    /// ```
    pub fn of(headers: &HeaderMap) -> Self {
        let get = |name: &str| id(headers, name);
        let explicit = get("x-hookgate-session");
        let mut identity = if let Some(session) = get("x-claude-code-session-id") {
            let (agent, parent) = (get("x-claude-code-agent-id"), get("x-claude-code-parent-agent-id"));
            ClientIdentity { session: Some(session), agent, parent }
        } else if let (Some(session), Some(thread)) = (get("session-id"), get("thread-id")) {
            let parent = get("x-codex-parent-thread-id");
            let agent = (thread != session || parent.is_some()).then_some(thread);
            ClientIdentity { session: Some(session), agent, parent }
        } else if let Some(own) = get("x-session-id") {
            match get("x-parent-session-id") {
                Some(parent) => ClientIdentity { session: Some(parent), agent: Some(own), parent: None },
                None => ClientIdentity { session: Some(own), ..ClientIdentity::default() },
            }
        } else {
            ClientIdentity::default()
        };
        if explicit.is_some() {
            identity.session = explicit;
        }
        identity
    }
}

fn id(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    (!value.is_empty() && value.len() <= MAX_ID_BYTES).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&'static str, &str)]) -> (Option<String>, Option<String>, Option<String>) {
        let headers = pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect();
        let ClientIdentity { session, agent, parent } = ClientIdentity::of(&headers);
        (session, agent, parent)
    }

    #[test]
    fn known_clients() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of(&[]), (None, None, None));
        assert_eq!(of(&[("x-hookgate-session", "mine"), ("x-session-id", "s")]), (some("mine"), None, None));
        assert_eq!(of(&[("session-id", "s"), ("thread-id", "s")]), (some("s"), None, None));
        assert_eq!(
            of(&[("session-id", "s"), ("thread-id", "t"), ("x-codex-parent-thread-id", "s")]),
            (some("s"), some("t"), some("s"))
        );
        assert_eq!(of(&[("x-session-id", "c"), ("x-parent-session-id", "p")]), (some("p"), some("c"), None));
        assert_eq!(of(&[("x-session-id", &"a".repeat(257))]), (None, None, None));
    }
}
