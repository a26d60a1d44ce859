//! Who a client says it is, by the headers that agents send by themselves.

use http::{HeaderMap, header};

use crate::limits::MAX_ID_BYTES;

/// How the programs that are known begin their `user-agent`, and what they are called.
const PROGRAMS: [(&str, &str); 3] = [("claude-cli/", "claude-code"), ("codex_", "codex"), ("opencode/", "opencode")];

/// What the headers say about the session and the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The session.
    pub session: Option<String>,
    /// The sub-agent that sends the request.
    pub agent: Option<String>,
    /// The agent that started it.
    pub parent: Option<String>,
    /// The background task that the request is made for.
    pub task: Option<String>,
    /// The program: `claude-code`, `codex` or `opencode`.
    pub program: Option<&'static str>,
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
            ClientIdentity { session: Some(session), agent, parent, ..Self::default() }
        } else if let (Some(session), Some(thread)) = (get("session-id"), get("thread-id")) {
            let parent = get("x-codex-parent-thread-id");
            let agent = (thread != session || parent.is_some()).then_some(thread);
            ClientIdentity { session: Some(session), agent, parent, ..Self::default() }
        } else if let Some(own) = get("x-session-id") {
            match get("x-parent-session-id") {
                Some(parent) => ClientIdentity { session: Some(parent), agent: Some(own), ..Self::default() },
                None => ClientIdentity { session: Some(own), ..Self::default() },
            }
        } else {
            ClientIdentity::default()
        };
        if explicit.is_some() {
            identity.session = explicit;
        }
        identity.task = get("x-hookgate-task");
        identity.program = program(headers);
        identity
    }
}

fn program(headers: &HeaderMap) -> Option<&'static str> {
    let agent = headers.get(header::USER_AGENT)?.as_bytes();
    let known = |(begin, _): &&(&str, &str)| agent.starts_with(begin.as_bytes());
    PROGRAMS.iter().find(known).map(|(_, name)| *name)
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
        let ClientIdentity { session, agent, parent, .. } = ClientIdentity::of(&headers);
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

    #[test]
    fn programs_are_known_by_how_they_begin() {
        for (agent, expected) in [
            ("claude-cli/2.1.197 (external, cli)", Some("claude-code")),
            ("codex_exec/0.171.0 (Debian)", Some("codex")),
            ("opencode/1.18.33", Some("opencode")),
            ("Anthropic/Python 2.14.0", None),
            ("not claude-cli/1", None),
        ] {
            let headers = HeaderMap::from_iter([(header::USER_AGENT, agent.parse().unwrap())]);
            assert_eq!(ClientIdentity::of(&headers).program, expected, "{agent}");
        }
    }
}
