//! Anthropic Messages: `POST …/v1/messages`, streamed and not, and `…/count_tokens`.

mod request;

pub use request::parse;
