//! Anthropic Messages: `POST …/v1/messages`, streamed and not, and `…/count_tokens`.

mod block;
mod client;
mod codec;
mod edit;
mod event;
mod message;
mod render;
mod repeat;
mod request;
mod typed;

pub use block::{BlockBuilder, read_block};
pub use client::{is_claude_code, is_plain_path, is_side, session_in_user_id, surface};
pub use codec::AnthropicCodec;
pub use edit::{forces_some_tool, go_on, merge, redeclare};
pub use event::{Delta, StreamEvent, read as read_event};
pub use message::read_message;
pub use render::*;
pub use request::parse;
