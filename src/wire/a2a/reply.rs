//! Answers that hookgate gives in an agent's place.

use bytes::Bytes;
use http::StatusCode;

use super::{Binding, Revision, Send};
use crate::wire::json::quote_into;
use crate::wire::jsonrpc;

/// How a message of hookgate's own is called.
#[derive(Clone, Copy, Debug)]
pub struct Ids<'a> {
    /// The message.
    pub message: &'a str,
    /// The conversation that it belongs to: an agent's message always has one.
    pub context: &'a str,
}

impl Send {
    /// The answer to this message, as if the agent had said `text` and nothing more. `id` is the id of the JSON-RPC request.
    /// Where events are asked for, it is the data of the only one.
    pub fn reply(&self, id: Option<&[u8]>, ids: &Ids<'_>, text: &str) -> Bytes {
        let mut out = Vec::with_capacity(text.len() + 256);
        let (is_0_3, is_rpc) = (self.revision == Revision::V0_3, self.binding == Binding::Rpc);
        let (before, role, parts, kind, after) = match (is_0_3, is_rpc) {
            (true, true) => ("{\"kind\":\"message\",", "agent", "parts", "\"kind\":\"text\",", "}"),
            (true, false) => ("{\"message\":{", "ROLE_AGENT", "content", "", "}}"),
            (false, _) => ("{\"message\":{", "ROLE_AGENT", "parts", "", "}}"),
        };
        out.extend_from_slice(before.as_bytes());
        for (name, value) in [("messageId", ids.message), ("contextId", ids.context), ("role", role)] {
            quote_into(&mut out, name);
            out.push(b':');
            quote_into(&mut out, value);
            out.push(b',');
        }
        quote_into(&mut out, parts);
        out.extend_from_slice(b":[{");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\"text\":");
        quote_into(&mut out, text);
        out.extend_from_slice(b"}]");
        out.extend_from_slice(after.as_bytes());
        if is_rpc { jsonrpc::result(id.unwrap_or(b"null"), &out) } else { out.into() }
    }

    /// The media type of an answer that is no stream.
    pub fn media_type(&self) -> &'static str {
        match (self.binding, self.revision) {
            (Binding::Rest, Revision::V1) => "application/a2a+json",
            _ => "application/json",
        }
    }
}

/// An error of HTTP+JSON.
///
/// ```
/// let error = hookgate::wire::a2a::rest_error(http::StatusCode::BAD_REQUEST, "no");
/// assert_eq!(error, r#"{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"no"}}"#);
/// ```
pub fn rest_error(status: StatusCode, message: &str) -> Bytes {
    let name = match status {
        StatusCode::BAD_REQUEST => "INVALID_ARGUMENT",
        StatusCode::PAYLOAD_TOO_LARGE => "RESOURCE_EXHAUSTED",
        StatusCode::GATEWAY_TIMEOUT => "DEADLINE_EXCEEDED",
        StatusCode::BAD_GATEWAY => "UNAVAILABLE",
        _ => "UNKNOWN",
    };
    let mut out = format!("{{\"error\":{{\"code\":{},\"status\":\"{name}\",\"message\":", status.as_u16()).into_bytes();
    quote_into(&mut out, message);
    out.extend_from_slice(b"}}");
    out.into()
}

/// A text as the value of the header `grpc-message`.
///
/// ```
/// assert_eq!(hookgate::wire::a2a::grpc_message("a%\né"), "a%25%0A%C3%A9");
/// ```
pub fn grpc_message(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::a2a::{Seen, read_answer};
    use crate::wire::json::Span;
    use crate::wire::jsonrpc::{Kind, Payload, read};

    fn reply(body: &str, binding: Binding, revision: Option<Revision>) -> String {
        let send = Send::read(body.as_bytes(), Span { start: 0, end: body.len() }, binding, revision).unwrap();
        let ids = Ids { message: "m", context: "c" };
        String::from_utf8(send.reply(Some(b"\"q\""), &ids, "no \"tea\"").to_vec()).unwrap()
    }

    #[test]
    fn each_revision_and_binding_has_its_shape() {
        let message = r#"{"message":{"parts":[]}}"#;
        assert_eq!(
            reply(message, Binding::Rpc, Some(Revision::V0_3)),
            r#"{"jsonrpc":"2.0","id":"q","result":{"kind":"message","messageId":"m","contextId":"c","role":"agent","parts":[{"kind":"text","text":"no \"tea\""}]}}"#
        );
        assert_eq!(
            reply(message, Binding::Rpc, Some(Revision::V1)),
            r#"{"jsonrpc":"2.0","id":"q","result":{"message":{"messageId":"m","contextId":"c","role":"ROLE_AGENT","parts":[{"text":"no \"tea\""}]}}}"#
        );
        assert_eq!(
            reply(message, Binding::Rest, None),
            r#"{"message":{"messageId":"m","contextId":"c","role":"ROLE_AGENT","parts":[{"text":"no \"tea\""}]}}"#
        );
        assert_eq!(
            reply(r#"{"request":{"content":[]}}"#, Binding::Rest, None),
            r#"{"message":{"messageId":"m","contextId":"c","role":"ROLE_AGENT","content":[{"text":"no \"tea\""}]}}"#
        );
    }

    #[test]
    fn a_reply_is_read_as_the_message_that_it_is() {
        for revision in [Revision::V0_3, Revision::V1] {
            let reply = reply(r#"{"message":{"parts":[]}}"#, Binding::Rpc, Some(revision));
            let Ok(Payload::One(envelope)) = read(reply.as_bytes()) else { panic!("{reply}") };
            let Kind::Result(result) = envelope.kind else { panic!("{reply}") };
            let expected = [Seen::Message { context: Some("c".into()), text: "no \"tea\"".into() }];
            assert_eq!(read_answer(result.of(reply.as_bytes())), expected);
        }
    }
}
