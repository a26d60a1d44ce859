//! What a model request says, whatever its protocol: places in the received text, in a common vocabulary.

use bytes::Bytes;

use super::json::{Span, Str};

/// A model request as spans of its body.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// The body that all spans point into.
    pub text: Bytes,
    /// The top-level members, name and value, in order.
    pub members: Vec<Member>,
    /// The model's name (a string).
    pub model: Option<Span>,
    /// Whether a streamed answer is asked for.
    pub stream: bool,
    /// The instructions beside the messages.
    pub system: Option<Span>,
    /// The messages in order.
    pub messages: Vec<Message>,
    /// The declared tools in order.
    pub tools: Vec<Tool>,
    /// Servers whose tools the provider runs by itself.
    pub servers: Vec<Tool>,
    /// The tool that the model is made to use, if one is named.
    pub forced_tool: Option<Span>,
    /// The client's own user or session mark (a string).
    pub user: Option<Span>,
    /// Whether the history is kept by the provider.
    pub server_history: bool,
    /// The id of the answer that this request goes on from (a string), with server-side history.
    pub previous: Option<Span>,
    /// The most tokens of the answer (a number).
    pub max_tokens: Option<Span>,
    /// The request asks for a structured answer and offers no tools: the mark of a title request.
    pub structured_only: bool,
}

/// A top-level member of the body.
#[derive(Clone, Debug)]
pub struct Member {
    /// The decoded name.
    pub name: String,
    /// From the name's first quote to the value's end.
    pub span: Span,
    /// The value.
    pub value: Span,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The user, or the client on the user's behalf (tool results).
    User,
    /// The model.
    Assistant,
    /// Instructions in mid-conversation: neither a prompt nor an answer.
    System,
}

/// One message.
#[derive(Clone, Debug)]
pub struct Message {
    /// The whole message.
    pub span: Span,
    /// Who speaks.
    pub role: Role,
    /// The content's value; `None` when the message has none.
    pub content: Option<Span>,
    /// The content is one string, not a list of parts.
    pub plain: bool,
    /// The parts; a plain content is one text part.
    pub parts: Vec<Part>,
}

/// One part of a message.
#[derive(Clone, Debug)]
pub struct Part {
    /// The whole part.
    pub span: Span,
    /// What it is.
    pub kind: PartKind,
}

/// What a part is.
#[derive(Clone, Debug)]
pub enum PartKind {
    /// Text by the speaker (the string's span).
    Text(Span),
    /// Text that a known client adds by itself.
    ClientContext(Span),
    /// A call of a tool.
    Call {
        /// The call's id (a string).
        id: Span,
        /// The tool's name (a string).
        name: Span,
        /// The arguments.
        input: Option<Span>,
    },
    /// The result of a call.
    Result {
        /// The id of the call (a string).
        id: Span,
        /// Whether the tool failed.
        failed: bool,
        /// What it gave.
        content: Option<Span>,
        /// What the user typed meanwhile, where a known client puts that into the result's texts.
        typed: Vec<Typed>,
    },
    /// Reasoning, which is never touched.
    Thinking,
    /// A file, an image and the like: its type, and its media type when it says one.
    Media {
        /// The part's type.
        kind: Span,
        /// The media type (a string).
        media_type: Option<Span>,
    },
    /// Anything else.
    Other,
}

/// Words of the user in a text of a tool's result. A tool can write something that looks like them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Typed {
    /// All that is there because of them, which leaves the text as the tool gave it: a stretch within a string.
    pub whole: Span,
    /// The words without the marks around them: a stretch within `whole`.
    pub words: Span,
    /// The string holds nothing else.
    pub alone: bool,
}

/// A declared tool.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The whole declaration.
    pub span: Span,
    /// The tool's name, decoded; empty when it has none.
    pub name: String,
    /// The provider runs it, so that its calls cannot be stopped in the answer.
    pub provider_executed: bool,
    /// The JSON Schema of its arguments.
    pub schema: Option<Span>,
}

impl Conversation {
    /// The string at a span, decoded.
    pub fn string(&self, span: Span) -> String {
        Str::at(&self.text, span).decode().into_owned()
    }

    /// A stretch within a string, decoded.
    pub fn stretch(&self, stretch: Span) -> String {
        Str::within(&self.text, stretch).decode().into_owned()
    }

    /// What the user says in these parts: texts, and words within results, joined by a newline.
    pub fn said(&self, parts: &[Part]) -> String {
        let mut texts = Vec::new();
        for part in parts {
            match &part.kind {
                PartKind::Text(text) => texts.push(Str::at(&self.text, *text).decode()),
                PartKind::Result { typed, .. } => {
                    texts.extend(typed.iter().map(|typed| Str::within(&self.text, typed.words).decode()));
                }
                _ => {}
            }
        }
        texts.join("\n")
    }

    /// The bytes at a span, shared.
    pub fn slice(&self, span: Span) -> Bytes {
        self.text.slice(span.start..span.end)
    }

    /// A tool by its name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The messages whose parts may hold results that the model has not seen: those after the last answer.
    pub fn since_last_answer(&self) -> &[Message] {
        let start = self.messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |at| at + 1);
        &self.messages[start..]
    }
}

impl Message {
    /// The spans of the speaker's own text parts.
    pub fn texts(&self) -> impl Iterator<Item = Span> + '_ {
        self.parts.iter().filter_map(|part| match part.kind {
            PartKind::Text(text) => Some(text),
            _ => None,
        })
    }

    /// Whether there are words of a user here: a prompt, not only tool results or what the client adds by itself.
    pub fn is_prompt(&self) -> bool {
        self.role == Role::User && self.parts.iter().any(|part| part.is_prompt() || part.is_typed())
    }

    /// Whether a user speaks here, so that what follows is done for these words. What stands within results does not
    /// count: a tool may have written it.
    pub fn begins_turn(&self) -> bool {
        self.role == Role::User && self.parts.iter().any(Part::is_prompt)
    }
}

impl Part {
    /// Whether the part is of a prompt and of nothing else.
    pub fn is_prompt(&self) -> bool {
        matches!(self.kind, PartKind::Text(_) | PartKind::Media { .. })
    }

    /// Whether the part is a result.
    pub fn is_result(&self) -> bool {
        matches!(self.kind, PartKind::Result { .. })
    }

    /// Whether the part is a result with words of the user in it.
    pub fn is_typed(&self) -> bool {
        matches!(&self.kind, PartKind::Result { typed, .. } if !typed.is_empty())
    }
}
