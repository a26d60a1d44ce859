//! Asking and telling handlers.

mod plan;
mod run;
mod schema;
mod token;
mod transport;
mod verdict;

pub use run::Dispatcher;
pub use schema::ToolSchema;
pub use token::DispatchKey;
pub use transport::{AnswerBody, ConnectionName, HandlerAnswer, HandlerTransport, TransportError};
pub use verdict::{AddedContext, Decision, Verdict};
