//! The protocols, and what each of them says in its own words. `match` arms here are the whole seam: a new protocol is a
//! folder beside `anthropic` and an arm in each method.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use super::answer::{Ending, Message};
use super::anthropic;
use super::codec::Codec;
use super::conversation::Conversation;
use super::json::{Edits, JsonError, Rope};

/// A wire protocol of a model API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Anthropic Messages.
    Anthropic,
}

/// What a request's path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// The conversation itself.
    Conversation(Protocol),
    /// A count of a conversation's tokens: its prompts are checked, it has no turn and no answer to inspect.
    Count(Protocol),
    /// A helper that carries neither prompts nor calls.
    Helper,
    /// Something that may carry either and cannot be inspected.
    Unknown,
}

impl Surface {
    /// Tells the surface by method and path; the path is the route's own, without its prefix.
    ///
    /// ```
    /// use hookgate::wire::protocol::{Protocol, Surface};
    /// use http::Method;
    /// assert_eq!(Surface::of(&Method::POST, "/v1/messages"), Surface::Conversation(Protocol::Anthropic));
    /// assert_eq!(Surface::of(&Method::GET, "/v1/models"), Surface::Helper);
    /// assert_eq!(Surface::of(&Method::POST, "/v1/messages/batches"), Surface::Unknown);
    /// ```
    pub fn of(method: &Method, path: &str) -> Self {
        anthropic::surface(method, path).unwrap_or(Surface::Unknown)
    }
}

impl Protocol {
    /// Reads a request body.
    ///
    /// # Errors
    /// When it is not a request of this protocol; see the protocol's `parse`.
    pub fn parse(self, text: &Bytes, headers: &HeaderMap) -> Result<Conversation, JsonError> {
        match self {
            Protocol::Anthropic => anthropic::parse(text, anthropic::is_claude_code(headers)),
        }
    }

    /// An error body for a status.
    pub fn error_body(self, status: StatusCode, message: &str) -> Bytes {
        match self {
            Protocol::Anthropic => anthropic::error_body(anthropic::error_type(status), message),
        }
    }

    /// A text part of a message.
    pub fn text_part(self, text: &str) -> Bytes {
        match self {
            Protocol::Anthropic => anthropic::text_block(text),
        }
    }

    /// The text part that a plain content (a JSON string) is short for.
    pub fn text_part_of(self, string: &[u8]) -> Bytes {
        match self {
            Protocol::Anthropic => [br#"{"type":"text","text":"#, string, b"}"].concat().into(),
        }
    }

    /// A call's result, as a part of a user message.
    pub fn result(self, call_id: &str, text: &str, failed: bool) -> Bytes {
        match self {
            Protocol::Anthropic => anthropic::result(call_id, text, failed),
        }
    }

    /// The declaration of a tool that the client runs. `schema` is the JSON Schema of its arguments.
    pub fn tool(self, name: &str, description: &str, schema: &str) -> Bytes {
        match self {
            Protocol::Anthropic => anthropic::tool(name, description, schema),
        }
    }

    /// Whether the model is made to call some tool, whichever it is.
    pub fn forces_some_tool(self, conversation: &Conversation) -> bool {
        match self {
            Protocol::Anthropic => anthropic::forces_some_tool(conversation),
        }
    }

    /// A user message of these parts.
    pub fn user_message(self, parts: &[Bytes]) -> Bytes {
        match self {
            Protocol::Anthropic => anthropic::message("user", parts),
        }
    }

    /// A model message of these parts.
    pub fn assistant_message(self, parts: &[Bytes]) -> Bytes {
        match self {
            Protocol::Anthropic => anthropic::message("assistant", parts),
        }
    }

    /// A whole answer of one text, streamed or not, with the media type that it has.
    pub fn text_answer(self, id: &str, model: &str, text: &str, stream: bool) -> (&'static str, Rope) {
        match (self, stream) {
            (Protocol::Anthropic, true) => {
                ("text/event-stream; charset=utf-8", anthropic::text_stream(id, model, text))
            }
            (Protocol::Anthropic, false) => ("application/json", anthropic::text_message(id, model, text).into()),
        }
    }

    /// Whether a stop reason ends the model's turn. The set is open: an unknown reason ends it.
    pub fn ends_turn(self, stop_reason: &str) -> bool {
        match self {
            Protocol::Anthropic => stop_reason != "pause_turn",
        }
    }

    /// Whether a stop reason says that the answer was cut off.
    pub fn is_cut(self, stop_reason: &str) -> bool {
        match self {
            Protocol::Anthropic => matches!(stop_reason, "max_tokens" | "model_context_window_exceeded"),
        }
    }

    /// The error type of an answer that broke off. Before anything of it was `shown`, it is one after which clients ask
    /// again as they did before: Claude Code does so for an overload, and without streaming for other errors.
    pub fn broken(self, shown: bool) -> &'static str {
        match (self, shown) {
            (Protocol::Anthropic, false) => "overloaded_error",
            (Protocol::Anthropic, true) => "api_error",
        }
    }

    /// The stop reason of a turn that ends by itself.
    pub fn end_of_turn(self) -> &'static str {
        match self {
            Protocol::Anthropic => "end_turn",
        }
    }

    /// The usage figure that counts what the model said.
    pub fn output_figure(self) -> &'static str {
        match self {
            Protocol::Anthropic => anthropic::OUTPUT_FIGURE,
        }
    }

    /// The usage figure that counts what the model was given.
    pub fn input_figure(self) -> &'static str {
        match self {
            Protocol::Anthropic => "input_tokens",
        }
    }

    /// A reader and writer of streamed answers; see [`Codec`].
    pub fn codec(self, collect_all: bool, room: usize) -> Box<dyn Codec> {
        match self {
            Protocol::Anthropic => Box::new(anthropic::AnthropicCodec::new(collect_all, room)),
        }
    }

    /// Reads a whole answer.
    ///
    /// # Errors
    /// When it is not an answer of this protocol.
    pub fn read_message(self, text: &Bytes) -> Result<Message, JsonError> {
        match self {
            Protocol::Anthropic => anthropic::read_message(text),
        }
    }

    /// The edits that turn the last round's answer into the one that the client gets: these blocks in the place of its
    /// own, under this id and model, ended like this.
    pub fn merge(self, message: &Message, merged: &Merged<'_>) -> Rope {
        match self {
            Protocol::Anthropic => anthropic::merge(message, merged),
        }
    }

    /// What must change in a request's body so that it goes on from these messages.
    pub fn go_on(self, conversation: &Conversation, more: &Continuation<'_>, edits: &mut Edits) {
        match self {
            Protocol::Anthropic => anthropic::go_on(conversation, more, edits),
        }
    }

    /// Takes declared tools out of a request, by name, and adds one.
    pub fn redeclare(self, conversation: &Conversation, gone: &[String], added: Option<Bytes>, edits: &mut Edits) {
        match self {
            Protocol::Anthropic => anthropic::redeclare(conversation, gone, added, edits),
        }
    }

    /// Whether a request is beside the agent's own conversation.
    pub fn is_side(self, conversation: &Conversation, headers: &HeaderMap) -> bool {
        match self {
            Protocol::Anthropic => anthropic::is_side(conversation, headers),
        }
    }

    /// The session that the body names.
    pub fn session(self, conversation: &Conversation) -> Option<String> {
        match self {
            Protocol::Anthropic => anthropic::session_in_user_id(conversation),
        }
    }
}

/// What a client gets for an answer of several rounds.
#[derive(Debug)]
pub struct Merged<'a> {
    /// The id of the first round.
    pub id: &'a str,
    /// The model of the first round.
    pub model: &'a str,
    /// The blocks.
    pub blocks: Vec<Bytes>,
    /// The end.
    pub ending: Ending,
}

/// How a request goes on after rounds of its own answer.
#[derive(Debug)]
pub struct Continuation<'a> {
    /// The messages that follow: all of them, or with server-side history only those that the provider does not have.
    pub messages: Vec<Bytes>,
    /// The provider's id of the answer to go on from, with server-side history.
    pub previous: Option<&'a str>,
    /// Tokens that the rounds have used up of the request's limit.
    pub output_tokens: u64,
}
