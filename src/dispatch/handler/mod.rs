//! The kinds of handlers, and how each is reached.

#[cfg(feature = "client")]
mod clients;
#[cfg(feature = "client")]
mod connection;
#[cfg(feature = "client")]
mod http;

#[cfg(feature = "client")]
pub use self::connection::{Connection, ConnectionError};
#[cfg(feature = "client")]
pub use self::http::HyperTransport;
