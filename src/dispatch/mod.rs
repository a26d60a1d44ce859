//! Asking and telling handlers.

mod ask;
mod handler;
mod observe;
mod plan;
mod run;
mod schema;
mod token;
mod transport;
mod verdict;

#[cfg(feature = "client")]
pub use handler::{Connection, ConnectionError, HyperTransport};
pub use run::Dispatcher;
pub use schema::{ToolSchema, ToolSchemas};
pub(crate) use token::DISPATCH_HEADER;
pub use token::DispatchKey;
pub use transport::{AnswerBody, ConnectionName, HandlerAnswer, HandlerTransport, TransportError};
pub use verdict::{AddedContext, Decision, Verdict};
