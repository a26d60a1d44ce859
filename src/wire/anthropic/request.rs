//! The request body of `POST …/v1/messages` and of `…/count_tokens`, read in one pass.

use bytes::Bytes;

use super::typed::{self, is_typed_ahead};
use crate::wire::conversation::{Conversation, Member, Message, Part, PartKind, Role, Tool, Typed};
use crate::wire::json::{Cursor, JsonError, Kind, Names, Span, Str};

/// Tools with a `type` of their own that the client runs nevertheless; all other typed tools run at the provider.
const CLIENT_TOOL_TYPES: [&str; 4] = ["bash_", "text_editor_", "computer_", "memory_"];

/// Reads a request. `reminders` says that the client is known to add `<system-reminder>` parts of its own, and to send
/// prompts as instructions and within results: only then are they told apart.
///
/// Members that are read here must not stand twice in their object, since the provider might read the other one.
///
/// # Errors
/// When the body is not JSON, or a member that matters is missing, doubled or of another type.
pub fn parse(text: &Bytes, reminders: bool) -> Result<Conversation, JsonError> {
    let mut conversation = Conversation { text: text.clone(), ..Conversation::default() };
    let mut format = false;
    let mut seen_messages = false;
    let mut names = Names::default();
    Cursor::document(text, |cursor| {
        cursor.object(|cursor, key| {
            let name = key.decode();
            let start = cursor.position();
            if !names.add(key) {
                return Err(JsonError { what: "a member of the request stands twice", offset: key.span().start });
            }
            match &*name {
                "model" => conversation.model = cursor.string_or_skip()?.map(|string| string.span()),
                "stream" => conversation.stream = cursor.skip()?.of(text) == b"true",
                "system" => conversation.system = Some(cursor.skip()?),
                "max_tokens" => conversation.max_tokens = Some(cursor.skip()?),
                "messages" => {
                    seen_messages = true;
                    cursor.array(|cursor| message(cursor, reminders, &mut conversation.messages))?;
                }
                "tools" => list(cursor, &mut conversation.tools, false)?,
                "mcp_servers" => list(cursor, &mut conversation.servers, true)?,
                "tool_choice" => conversation.forced_tool = member_string(cursor, &["name"])?,
                "metadata" => conversation.user = member_string(cursor, &["user_id"])?,
                "output_config" => format = member_string(cursor, &["format", "type"])?.is_some(),
                "thread" => {
                    conversation.server_history = cursor.kind()? == Kind::Object;
                    conversation.previous = member_string(cursor, &["previous_message_id"])?;
                }
                _ => drop(cursor.skip()?),
            }
            // The cursor stands right behind the value: white space is only taken before one.
            let value = Span { start, end: cursor.offset() };
            let span = Span { start: key.span().start, end: value.end };
            conversation.members.push(Member { name: name.into_owned(), span, value });
            Ok(())
        })
    })?;
    if !seen_messages {
        return Err(JsonError { what: "the request has no \"messages\" array", offset: 0 });
    }
    conversation.structured_only = format && conversation.tools.is_empty();
    Ok(conversation)
}

fn message(cursor: &mut Cursor<'_>, reminders: bool, messages: &mut Vec<Message>) -> Result<(), JsonError> {
    let mut role = None;
    let mut content = None;
    let mut plain = false;
    let mut parts = Vec::new();
    let span = cursor.object(|cursor, key| {
        if key.is("role") {
            let known = match &*cursor.string()?.bytes() {
                b"assistant" => Role::Assistant,
                b"system" => Role::System,
                _ => Role::User,
            };
            once(&mut role, known, key)
        } else if key.is("content") {
            let start = cursor.position();
            match cursor.kind()? {
                Kind::String => {
                    let span = cursor.string()?.span();
                    plain = true;
                    parts = vec![Part { span, kind: text_kind(cursor.text(), span, reminders) }];
                }
                Kind::Array => {
                    cursor.array(|cursor| part(cursor, reminders, &mut parts))?;
                }
                _ => drop(cursor.skip()?),
            }
            once(&mut content, Span { start, end: cursor.offset() }, key)
        } else {
            cursor.skip().map(drop)
        }
    })?;
    let Some(mut role) = role else {
        return Err(JsonError { what: "a message has no role", offset: span.start });
    };
    // The whole text is taken for the prompt: the client joins its additions, and where the user's words end is not told.
    if role == Role::System && reminders && parts.iter().any(|part| is_typed_text(cursor.text(), part)) {
        role = Role::User;
    }
    // The client's own additions are user parts only: an answer that begins like one is an answer.
    if role != Role::User {
        for part in &mut parts {
            if let PartKind::ClientContext(text) = part.kind {
                part.kind = PartKind::Text(text);
            }
        }
    }
    messages.push(Message { span, role, content, plain, parts });
    Ok(())
}

fn is_typed_text(text: &[u8], part: &Part) -> bool {
    matches!(part.kind, PartKind::Text(span) if is_typed_ahead(span.of(text)))
}

fn text_kind(text: &[u8], string: Span, reminders: bool) -> PartKind {
    // Where the client cannot put a prompt into a result, it puts it beside it.
    let added = |text: &[u8]| text.trim_ascii_start().starts_with(typed::REMINDER) && !is_typed_ahead(text);
    // Without its quote: what is looked for stands behind it.
    if reminders && added(&string.of(text)[1..]) { PartKind::ClientContext(string) } else { PartKind::Text(string) }
}

/// What a part says that it is.
#[derive(Clone, Copy, Default)]
enum Type {
    Text,
    Call,
    Result,
    Thinking,
    Media,
    #[default]
    Other,
}

impl Type {
    fn of(name: Str<'_>) -> Self {
        match &*name.bytes() {
            b"text" => Type::Text,
            b"tool_use" => Type::Call,
            b"tool_result" => Type::Result,
            b"thinking" | b"redacted_thinking" => Type::Thinking,
            b"image" | b"document" | b"container_upload" | b"search_result" => Type::Media,
            _ => Type::Other,
        }
    }
}

/// The members of a content part that are read.
#[derive(Default)]
struct Fields {
    known: Type,
    kind: Option<Span>,
    text: Option<Span>,
    id: Option<Span>,
    name: Option<Span>,
    input: Option<Span>,
    tool_use_id: Option<Span>,
    is_error: Option<bool>,
    content: Option<Span>,
    typed: Vec<Typed>,
    media_type: Option<Span>,
}

fn part(cursor: &mut Cursor<'_>, reminders: bool, parts: &mut Vec<Part>) -> Result<(), JsonError> {
    let mut fields = Fields::default();
    let mut source = None;
    let span = cursor.object(|cursor, key| {
        let slot = match &*key.bytes() {
            b"type" => {
                let name = cursor.string()?;
                fields.known = Type::of(name);
                return once(&mut fields.kind, name.span(), key);
            }
            b"text" => &mut fields.text,
            b"id" => &mut fields.id,
            b"name" => &mut fields.name,
            b"tool_use_id" => &mut fields.tool_use_id,
            b"input" => {
                let value = cursor.skip()?;
                return once(&mut fields.input, value, key);
            }
            b"content" => {
                let value = if reminders { typed::content(cursor, &mut fields.typed)? } else { cursor.skip()? };
                return once(&mut fields.content, value, key);
            }
            b"is_error" => {
                let value = cursor.skip()?.of(cursor.text()) == b"true";
                return once(&mut fields.is_error, value, key);
            }
            b"source" => {
                fields.media_type = member_string(cursor, &["media_type"])?;
                return once(&mut source, (), key);
            }
            _ => return cursor.skip().map(drop),
        };
        match cursor.string_or_skip()? {
            Some(string) => once(slot, string.span(), key),
            None => Ok(()),
        }
    })?;
    if parts.is_empty() {
        // Most messages have one, and there may be thousands of them.
        *parts = Vec::with_capacity(1);
    }
    parts.push(Part { span, kind: fields.kind(cursor.text(), reminders) });
    Ok(())
}

impl Fields {
    fn kind(self, text: &[u8], reminders: bool) -> PartKind {
        match (self.known, self) {
            (Type::Text, Fields { text: Some(span), .. }) => text_kind(text, span, reminders),
            (Type::Call, Fields { id: Some(id), name: Some(name), input, .. }) => PartKind::Call { id, name, input },
            (Type::Result, Fields { tool_use_id: Some(id), is_error, content, typed, .. }) => {
                PartKind::Result { id, failed: is_error.unwrap_or(false), content, typed }
            }
            (Type::Thinking, _) => PartKind::Thinking,
            (Type::Media, Fields { kind: Some(kind), media_type, .. }) => PartKind::Media { kind, media_type },
            _ => PartKind::Other,
        }
    }
}

fn list(cursor: &mut Cursor<'_>, tools: &mut Vec<Tool>, servers: bool) -> Result<(), JsonError> {
    if cursor.kind()? != Kind::Array {
        return cursor.skip().map(drop);
    }
    cursor.array(|cursor| {
        tools.push(tool(cursor, servers)?);
        Ok(())
    })?;
    Ok(())
}

fn tool(cursor: &mut Cursor<'_>, server: bool) -> Result<Tool, JsonError> {
    let mut name = None;
    let mut kind = None;
    let mut schema = None;
    let mut toolset = None;
    let span = cursor.object(|cursor, key| {
        if key.is("name") {
            match cursor.string_or_skip()? {
                Some(string) => once(&mut name, string.decode().into_owned(), key),
                None => Ok(()),
            }
        } else if key.is("type") {
            match cursor.string_or_skip()? {
                Some(string) => once(&mut kind, string.decode().into_owned(), key),
                None => Ok(()),
            }
        } else if key.is("mcp_server_name") {
            toolset = cursor.string_or_skip()?.map(|string| string.decode().into_owned());
            Ok(())
        } else if key.is("input_schema") {
            let value = cursor.skip()?;
            once(&mut schema, value, key)
        } else {
            cursor.skip().map(drop)
        }
    })?;
    let kind = kind.unwrap_or_default();
    let provider_executed = server
        || !(kind.is_empty() || kind == "custom" || CLIENT_TOOL_TYPES.iter().any(|prefix| kind.starts_with(prefix)));
    let name = match (name, toolset) {
        (Some(name), _) if server => format!("mcp__{name}"),
        (Some(name), _) => name,
        // A toolset names the server whose tools it turns on.
        (None, Some(server)) => format!("mcp__{server}"),
        (None, None) => String::new(),
    };
    Ok(Tool { span, name, provider_executed, schema })
}

/// The string at a path of members below the next value, which is consumed whole.
fn member_string(cursor: &mut Cursor<'_>, path: &[&str]) -> Result<Option<Span>, JsonError> {
    let [first, rest @ ..] = path else {
        return Ok(cursor.string_or_skip()?.map(|string| string.span()));
    };
    if cursor.kind()? != Kind::Object {
        return cursor.skip().map(|_| None);
    }
    let mut found = None;
    cursor.object(|cursor, key| {
        if key.is(first) {
            let value = member_string(cursor, rest)?;
            once(&mut found, value, key)
        } else {
            cursor.skip().map(drop)
        }
    })?;
    Ok(found.flatten())
}

fn once<T>(slot: &mut Option<T>, value: T, key: Str<'_>) -> Result<(), JsonError> {
    if slot.is_some() {
        return Err(JsonError { what: "a member of the request stands twice", offset: key.span().start });
    }
    *slot = Some(value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str) -> Conversation {
        parse(&Bytes::from_static(text.as_bytes()), true).unwrap()
    }

    #[test]
    fn reads_what_matters_and_skips_the_rest() {
        let request = read(
            r#"{"model":"m","future":{"x":[1e999]},"stream": true,"system":[{"type":"text","text":"s"}],
            "messages":[
              {"role":"user","content":[{"type":"text","text":"<system-reminder>x"},{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},
              {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"tool_use","id":"t1","name":"Bash","input":{"a":1}}]},
              {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"out","is_error":true}]},
              {"role":"system","content":"later"}],
            "tools":[{"name":"Bash","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"}],
            "metadata":{"user_id":"u"},"thread":{"type":"continue","previous_message_id":"msg_1"}}"#,
        );
        assert!(request.stream && request.server_history);
        assert_eq!(request.string(request.user.unwrap()), "u");
        assert_eq!(request.string(request.previous.unwrap()), "msg_1");
        let kinds: Vec<bool> = request.tools.iter().map(|tool| tool.provider_executed).collect();
        assert_eq!(kinds, [false, true, false]);
        let first = &request.messages[0];
        assert!(matches!(first.parts[0].kind, PartKind::ClientContext(_)));
        assert_eq!(first.texts().map(|span| request.string(span)).collect::<Vec<_>>(), ["hi"]);
        assert!(first.is_prompt() && !request.messages[2].is_prompt());
        assert!(matches!(request.messages[2].parts[0].kind, PartKind::Result { failed: true, .. }));
        assert_eq!(request.messages[3].role, Role::System);
        assert_eq!(request.since_last_answer().len(), 2);
        let stream = request.members.iter().find(|member| member.name == "stream").unwrap();
        assert_eq!(stream.span.of(&request.text), br#""stream": true"#);
    }

    #[test]
    fn what_is_typed_while_the_agent_works_is_a_prompt() {
        let text = r#"{"messages":[
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"out"}]},
            {"role":"system","content":"Today is Monday.\nThe user sent a new message while you were working:\nhi\n\nIMPORTANT: …"},
            {"role":"system","content":[{"type":"text","text":"The user sent a new message while you were working:\nhi"}]},
            {"role":"system","content":"The user is away."}]}"#;
        let prompts = |known| {
            let request = parse(&Bytes::from_static(text.as_bytes()), known).unwrap();
            request.messages.iter().map(Message::is_prompt).collect::<Vec<_>>()
        };
        assert_eq!(prompts(true), [false, true, true, false]);
        // Of another client it would be an instruction, as every other one.
        assert_eq!(prompts(false), [false; 4]);
    }

    #[test]
    fn doubled_members_are_refused_where_they_matter() {
        for text in [
            r#"{"messages":[],"messages":[]}"#,
            r#"{"messages":[],"m\u0065ssages":[]}"#,
            r#"{"messages":[{"role":"user","role":"assistant","content":""}]}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"text","type":"image"}]}]}"#,
        ] {
            let error = parse(&Bytes::from_static(text.as_bytes()), false).unwrap_err();
            assert!(error.what.contains("twice"), "{text}: {error}");
        }
    }

    #[test]
    fn a_member_is_doubled_among_many_too() {
        let many: String = (0..40).map(|number| format!("\"m{number}\":0,")).collect();
        let text = format!("{{{many}\"messages\":[]}}");
        assert!(parse(&text.into(), false).is_ok());
        let text = format!("{{{many}\"m\\u0033\":1,\"messages\":[]}}");
        assert_eq!(parse(&text.into(), false).unwrap_err().offset, many.len() + 1);
    }

    #[test]
    fn a_body_without_messages_is_refused() {
        assert!(parse(&Bytes::from_static(b"{}"), false).is_err());
        assert!(parse(&Bytes::from_static(b"{\"messages\":1}"), false).is_err());
        assert!(parse(&Bytes::from_static(b"[]"), false).is_err());
    }
}
