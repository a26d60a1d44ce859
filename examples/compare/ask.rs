//! What is asked.

use bytes::Bytes;

use crate::upstream::ANSWER;

/// A request that is sent again and again.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// To a model, with a history of about so many bytes, for the answer that `upstream.rs` has under that name.
    Model { history: usize, answer: &'static str },
    /// To an MCP server: the call of a tool.
    Tool,
}

impl Ask {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Ask::Model { .. } => "/v1/messages",
            Ask::Tool => "/mcp",
        }
    }

    pub(crate) fn headers(self) -> Vec<(&'static str, &'static str)> {
        let mut headers = vec![("content-type", "application/json")];
        match self {
            Ask::Model { answer, .. } => headers.push((ANSWER, answer)),
            Ask::Tool => headers.extend([
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", "2025-11-25"),
                ("mcp-session-id", "session-1"),
            ]),
        }
        headers
    }

    pub(crate) fn body(self) -> Bytes {
        match self {
            Ask::Model { history, .. } => conversation(history).into(),
            Ask::Tool => Bytes::from_static(
                br#"{"jsonrpc":"2.0","id":@id@,"method":"tools/call","params":{"name":"read","arguments":{"path":"a"}}}"#,
            ),
        }
    }
}

/// A request with a history of about that many bytes: calls of a tool and their results.
fn conversation(size: usize) -> String {
    let result = "A line of a tool's result with \\\"quotes\\\" and \\n in it. ".repeat(20);
    let mut messages = String::from(r#"{"role":"user","content":"Begin."}"#);
    while messages.len() < size {
        messages.push_str(&format!(
            r#",{{"role":"assistant","content":[{{"type":"tool_use","id":"toolu_{0}","name":"read","input":{{"path":"a"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{0}","content":"{result}"}}]}}"#,
            messages.len()
        ));
    }
    format!(r#"{{"model":"m","max_tokens":1024,"messages":[{messages},{{"role":"user","content":"Go on."}}]}}"#)
}
