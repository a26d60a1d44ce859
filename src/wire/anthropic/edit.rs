//! Edits of requests and answers that only this protocol needs.

use bytes::Bytes;

use super::render::usage_object;
use crate::wire::answer::Message;
use crate::wire::conversation::{Conversation, Member};
use crate::wire::json::{Edits, Inserts, Rope, Span, quote, splice};
use crate::wire::protocol::{Continuation, Merged};

/// Members that a request which goes on from the provider's own history leaves out: the history has them.
const KEPT_BY_PROVIDER: [&str; 4] = ["tools", "tool_choice", "system", "mcp_servers"];

/// What must change so that a request goes on from these messages.
///
/// The limit of tokens holds for all rounds together, and a tool that was forced once is not forced again.
pub fn go_on(conversation: &Conversation, more: &Continuation<'_>, edits: &mut Edits) {
    if let Some(limit) = conversation.max_tokens
        && let Some(most) =
            std::str::from_utf8(limit.of(&conversation.text)).ok().and_then(|text| text.parse::<u64>().ok())
    {
        edits.replace(limit, most.saturating_sub(more.output_tokens).max(1).to_string());
    }
    let messages: Vec<&[u8]> = more.messages.iter().map(|message| &message[..]).collect();
    let messages = messages.join(&b","[..]);
    let Some(previous) = more.previous else {
        if let Some(forced) = member(conversation, "tool_choice").filter(|choice| is_forced(conversation, choice)) {
            edits.replace(forced.value, r#"{"type":"auto"}"#);
        }
        if let Some(last) = conversation.messages.last()
            && !messages.is_empty()
        {
            edits.insert(last.span.end, [b",", &messages[..]].concat());
        }
        return;
    };
    let drop: Vec<bool> =
        conversation.members.iter().map(|member| KEPT_BY_PROVIDER.contains(&member.name.as_str())).collect();
    let spans: Vec<Span> = conversation.members.iter().map(|member| member.span).collect();
    splice(edits, &spans, &drop, Inserts::default());
    for member in &conversation.members {
        match member.name.as_str() {
            "messages" => edits.replace(member.value, [b"[", &messages[..], b"]"].concat()),
            "thread" => {
                let thread = format!(r#"{{"type":"continue","previous_message_id":{}}}"#, quote(previous));
                edits.replace(member.value, thread);
            }
            _ => {}
        }
    }
}

fn member<'a>(conversation: &'a Conversation, name: &str) -> Option<&'a Member> {
    conversation.members.iter().find(|member| member.name == name)
}

/// `any` and a named tool force a call; with `auto` and `none` the model may answer.
fn is_forced(conversation: &Conversation, choice: &Member) -> bool {
    matches!(choice_type(conversation, choice), Some(br#""any""# | br#""tool""#))
}

/// Whether the model must call a tool and may choose which.
pub fn forces_some_tool(conversation: &Conversation) -> bool {
    member(conversation, "tool_choice").is_some_and(|choice| choice_type(conversation, choice) == Some(br#""any""#))
}

fn choice_type<'a>(conversation: &'a Conversation, choice: &Member) -> Option<&'a [u8]> {
    let text = choice.value.of(&conversation.text);
    crate::wire::json::pointer(text, "/type").ok().flatten().map(|kind| kind.of(text))
}

/// Takes declared tools out, by name, and adds one behind the others: a choice that names one that is gone, or that has
/// nothing left to choose from, goes too.
pub fn redeclare(conversation: &Conversation, gone: &[String], added: Option<Bytes>, edits: &mut Edits) {
    let gone = |name: &String| gone.contains(name);
    let mut left = conversation.tools.iter().filter(|tool| !(tool.provider_executed && gone(&tool.name))).count();
    let mut inserts = Inserts::default();
    if let Some(tool) = added {
        left += 1;
        match (conversation.tools.len().checked_sub(1), member(conversation, "tools")) {
            (Some(last), _) => inserts.after(last, tool),
            (None, Some(list)) => edits.replace(list.value, [b"[", &tool[..], b"]"].concat()),
            (None, None) => {
                if let Some(last) = conversation.members.last() {
                    edits.insert(last.span.end, [b",\"tools\":[", &tool[..], b"]"].concat());
                }
            }
        }
    }
    for (list, inserts) in [(&conversation.tools, inserts), (&conversation.servers, Inserts::default())] {
        let drop: Vec<bool> = list.iter().map(|tool| tool.provider_executed && gone(&tool.name)).collect();
        let spans: Vec<Span> = list.iter().map(|tool| tool.span).collect();
        splice(edits, &spans, &drop, inserts);
    }
    let Some(choice) = member(conversation, "tool_choice") else { return };
    let names_gone = conversation.forced_tool.is_some_and(|forced| gone(&conversation.string(forced)));
    if left == 0 {
        let drop: Vec<bool> = conversation.members.iter().map(|member| member.name == "tool_choice").collect();
        let spans: Vec<Span> = conversation.members.iter().map(|member| member.span).collect();
        splice(edits, &spans, &drop, Inserts::default());
    } else if names_gone {
        edits.replace(choice.value, r#"{"type":"auto"}"#);
    }
}

/// The client's answer made of the last round's.
pub fn merge(message: &Message, merged: &Merged<'_>) -> Rope {
    let mut edits = Edits::default();
    let blocks: Vec<&[u8]> = merged.blocks.iter().map(|block| &block[..]).collect();
    let content = [b"[", &blocks.join(&b","[..])[..], b"]"].concat();
    for (name, value) in [
        ("id", Bytes::from(quote(merged.id))),
        ("model", quote(merged.model).into()),
        ("content", content.into()),
        ("stop_reason", quote(&merged.ending.stop_reason).into()),
        ("usage", usage_object(&merged.ending.usage).into()),
    ] {
        if let Some(span) = message.member(name)
            && span.of(&message.text) != &value[..]
        {
            edits.replace(span, value);
        }
    }
    edits.apply(&message.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::anthropic::parse;

    fn run(body: &'static str, edit: impl FnOnce(&Conversation, &mut Edits)) -> String {
        let conversation = parse(&Bytes::from_static(body.as_bytes()), false).unwrap();
        let mut edits = Edits::default();
        edit(&conversation, &mut edits);
        let out = String::from_utf8(edits.apply(&conversation.text).to_bytes().to_vec()).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&out).is_ok(), "{out}");
        out
    }

    #[test]
    fn a_continuation_spends_the_rest_of_the_tokens_and_forces_nothing() {
        let more = Continuation { messages: vec![Bytes::from_static(b"{\"m\":1}")], previous: None, output_tokens: 30 };
        let body = r#"{"max_tokens":100,"messages":[{"role":"user","content":"x"}], "tool_choice":{"type":"any"}}"#;
        assert_eq!(
            run(body, |conversation, edits| go_on(conversation, &more, edits)),
            r#"{"max_tokens":70,"messages":[{"role":"user","content":"x"},{"m":1}], "tool_choice":{"type":"auto"}}"#
        );
    }

    #[test]
    fn with_server_history_only_what_is_missing_is_sent() {
        let more = Continuation {
            messages: vec![Bytes::from_static(b"{\"m\":1}")],
            previous: Some("msg_2"),
            output_tokens: 0,
        };
        let body = r#"{"tools":[],"messages":[{"role":"user","content":"x"}],"thread":{"type":"create"},"system":"s"}"#;
        assert_eq!(
            run(body, |conversation, edits| go_on(conversation, &more, edits)),
            r#"{"messages":[{"m":1}],"thread":{"type":"continue","previous_message_id":"msg_2"}}"#
        );
    }

    #[test]
    fn a_tool_is_undeclared_with_the_choice_of_it() {
        let body = r#"{"messages":[],"tools":[{"name":"a"},{"type":"web_search_1","name":"w"}],"tool_choice":{"type":"tool","name":"w"}}"#;
        let w = ["w".to_owned()];
        assert_eq!(
            run(body, |conversation, edits| redeclare(conversation, &w, None, edits)),
            r#"{"messages":[],"tools":[{"name":"a"}],"tool_choice":{"type":"auto"}}"#
        );
        let body = r#"{"messages":[],"tools":[{"type":"web_search_1","name":"w"}],"tool_choice":{"type":"any"}}"#;
        assert_eq!(
            run(body, |conversation, edits| redeclare(conversation, &w, None, edits)),
            r#"{"messages":[],"tools":[]}"#
        );
    }

    #[test]
    fn a_tool_is_declared_behind_the_others() {
        let add = |body: &'static str, gone: &[String]| {
            let tool = Some(Bytes::from_static(b"{\"name\":\"t\"}"));
            run(body, |conversation, edits| redeclare(conversation, gone, tool, edits))
        };
        for (body, expected) in [
            (r#"{"messages":[]}"#, r#"{"messages":[],"tools":[{"name":"t"}]}"#),
            (r#"{"tools": [ ],"messages":[]}"#, r#"{"tools": [{"name":"t"}],"messages":[]}"#),
            (r#"{"tools": [{"name":"a"} ],"messages":[]}"#, r#"{"tools": [{"name":"a"},{"name":"t"} ],"messages":[]}"#),
        ] {
            assert_eq!(add(body, &[]), expected);
        }
        let body = r#"{"messages":[],"tools":[{"type":"web_search_1","name":"w"}],"tool_choice":{"type":"auto"}}"#;
        let expected = r#"{"messages":[],"tools":[{"name":"t"}],"tool_choice":{"type":"auto"}}"#;
        assert_eq!(add(body, &["w".to_owned()]), expected);
    }
}
