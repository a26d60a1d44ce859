//! Who sends a request, and what for.

use http::{HeaderMap, Method};

use crate::wire::conversation::{Conversation, Message, Role};
use crate::wire::json::{Str, pointer};
use crate::wire::protocol::{Protocol, Surface};

/// How Claude Code's request for a summary of the conversation begins. It has no other mark.
const SUMMARY: &[u8] = b"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.";

/// Tells a path of this protocol's API; `None` when it is not known to carry no prompts or calls.
pub fn surface(method: &Method, path: &str) -> Option<Surface> {
    match path {
        "/v1/messages" => return (method == Method::POST).then_some(Surface::Conversation(Protocol::Anthropic)),
        "/v1/messages/count_tokens" => return (method == Method::POST).then_some(Surface::Count(Protocol::Anthropic)),
        // Claude Code asks for the root once when it starts.
        "/" | "" => return (method == Method::HEAD || method == Method::GET).then_some(Surface::Helper),
        _ => {}
    }
    let helper = ["/v1/models", "/v1/files"].iter().any(|root| {
        path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && is_plain_path(path)
    });
    helper.then_some(Surface::Helper)
}

/// A path that no server reads as another one: no escapes, no dot segments, no empty segments.
pub fn is_plain_path(path: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.:@".contains(&byte);
    path.bytes().all(plain) && path.split('/').skip(1).all(|segment| !matches!(segment, "" | "." | ".."))
}

/// Whether Claude Code sends the request, told by its own headers.
pub fn is_claude_code(headers: &HeaderMap) -> bool {
    headers.contains_key("x-claude-code-session-id")
        && headers.get("user-agent").is_some_and(|agent| agent.as_bytes().starts_with(b"claude-cli/"))
}

/// The session id that Claude Code hides in `metadata.user_id`, a string that holds JSON.
pub fn session_in_user_id(conversation: &Conversation) -> Option<String> {
    let user = conversation.string(conversation.user?);
    let span = pointer(user.as_bytes(), "/session_id").ok()??;
    serde_json::from_slice(span.of(user.as_bytes())).ok().filter(|id: &String| !id.is_empty())
}

/// Whether this is a request beside the agent's conversation: a title for it, or a summary of it.
pub fn is_side(conversation: &Conversation, headers: &HeaderMap) -> bool {
    (conversation.structured_only || asks_for_summary(conversation)) && is_claude_code(headers)
}

/// Whether Claude Code wants to go on from a summary. What the model answers is no end of a turn: sent back to work, it
/// would spoil the summary.
fn asks_for_summary(conversation: &Conversation) -> bool {
    let users = conversation.since_last_answer().iter().filter(|message| message.role == Role::User);
    users.flat_map(Message::texts).any(|text| Str::at(&conversation.text, text).raw().starts_with(SUMMARY))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;

    use super::*;
    use crate::wire::anthropic::parse;

    #[test]
    fn a_summary_of_the_conversation_is_beside_it() {
        let mut claude = HeaderMap::new();
        claude.insert("x-claude-code-session-id", HeaderValue::from_static("s"));
        claude.insert("user-agent", HeaderValue::from_static("claude-cli/2.1.197 (external, cli)"));
        let side = |messages: &str, headers: &HeaderMap| {
            let body = format!(r#"{{"messages":[{messages}],"tools":[{{"name":"Bash"}}]}}"#);
            is_side(&parse(&Bytes::from(body), true).unwrap(), headers)
        };
        let results = r#"{"type":"tool_result","tool_use_id":"t","content":"out"}"#;
        let asked =
            r#"{"type":"text","text":"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task …"}"#;
        let asks = format!(r#"{{"role":"user","content":[{results},{asked}]}}"#);
        assert!(side(&asks, &claude));
        assert!(!side(&asks, &HeaderMap::new()));
        assert!(!side(
            &format!(r#"{asks},{{"role":"assistant","content":"So."}},{{"role":"user","content":"hi"}}"#),
            &claude
        ));
    }

    #[test]
    fn paths_are_compared_whole() {
        let of = |method: Method, path| surface(&method, path);
        assert_eq!(of(Method::POST, "/v1/messages"), Some(Surface::Conversation(Protocol::Anthropic)));
        assert_eq!(of(Method::POST, "/v1/messages/count_tokens"), Some(Surface::Count(Protocol::Anthropic)));
        for path in ["/", "/v1/models", "/v1/models/claude-x", "/v1/files/file_1/content"] {
            assert_eq!(of(Method::GET, path), Some(Surface::Helper), "{path}");
        }
        for path in [
            "/v1/messages/",
            "/v1//messages",
            "/V1/messages",
            "/v1/messages/batches",
            "/v1/models/../messages",
            "/v1/models/%2e%2e/messages",
            "/v1/files/..;/messages",
            "/v1/modelsx",
            "/v1/complete",
        ] {
            assert_eq!(of(Method::POST, path), None, "{path}");
        }
        assert_eq!(of(Method::GET, "/v1/messages"), None);
    }
}
