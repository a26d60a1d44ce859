//! The tools by which a model gets callbacks, wherever it finds them: among those that hookgate offers it, or at the MCP
//! server.

use serde::Deserialize;

use super::{IssueError, TmpHook, TmpHooks};
use crate::id::SessionKey;

/// The tool that issues a callback.
pub(crate) const REQUEST: &str = "request_tmp_hook";
/// The tool that waits for one. It is the MCP server's alone: elsewhere messages come by themselves.
pub(crate) const AWAIT: &str = "await_tmp_hook";

/// What the model is told of [`REQUEST`].
pub(crate) const REQUEST_DESCRIPTION: &str = "Get a one-time callback URL for this session. Use it before you hand work to something that \
finishes after this turn and cannot be waited for here: a remote or sandboxed worker, a container, a CI job, a long \
script, another agent, a person. Whoever does the work sends its result to the URL with one HTTP POST; the result then \
arrives here as a user message, and you go on. Do not use it for work that ends within this turn, for a result that you \
will ask for anyway, or when the worker has a way to report already. Give the worker the url, and nothing else of this \
result. The URL works once and expires.";
/// The arguments of [`REQUEST`].
pub(crate) const REQUEST_SCHEMA: &str = r#"{"type":"object","properties":{"purpose":{"type":"string","description":"What is waited for, in a few words that tell this callback from others: it is repeated in the message."},"ttl_seconds":{"type":"integer","description":"How long the URL is to work, in seconds. Left out, the operator's default holds."}},"additionalProperties":false}"#;

/// The arguments of [`REQUEST`], read.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default)]
    purpose: Option<String>,
    #[serde(default)]
    ttl_seconds: Option<i64>,
}

impl TmpHooks {
    /// Answers a call of [`REQUEST`]; `arguments` is JSON. The error is a sentence for the model.
    pub(crate) async fn request(&self, session: &SessionKey, arguments: &[u8]) -> Result<TmpHook, String> {
        let Wanted { purpose, ttl_seconds } = serde_json::from_slice(arguments).map_err(|error| {
            format!(
                "the arguments of {REQUEST} are wrong: {error}; it takes purpose (a string) and ttl_seconds (a whole number), both optional"
            )
        })?;
        let issued = self.issue(session, purpose.as_deref(), ttl_seconds).await;
        issued.map_err(|error: IssueError| error.to_string())
    }
}

/// Which of the tools a client calls by that name. Clients put the server's name in front, each in its own way.
///
/// `mcp__hookgate__request_tmp_hook` and `hookgate_request_tmp_hook` are [`REQUEST`]; `myrequest_tmp_hook` is nothing.
pub(crate) fn named(name: &str) -> Option<&'static str> {
    [REQUEST, AWAIT].into_iter().find(|tool| {
        let before = name.strip_suffix(tool);
        before.is_some_and(|before| !before.ends_with(|letter: char| letter.is_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_behind_the_name_of_its_server() {
        for name in
            ["request_tmp_hook", "mcp__hookgate__request_tmp_hook", "hookgate_request_tmp_hook", "a.request_tmp_hook"]
        {
            assert_eq!(named(name), Some(REQUEST), "{name}");
        }
        assert_eq!(named("mcp__gate__await_tmp_hook"), Some(AWAIT));
        for name in ["", "request_tmp_hook2", "myrequest_tmp_hook", "request", "tmp_hook", "Request_tmp_hook"] {
            assert_eq!(named(name), None, "{name}");
        }
    }
}
