//! Who may use what: the gate in front of the control surface, and keys in front of routes.
//!
//! [`AuthGate`] is the question, asked with a request's head before anything else is done with it. `Gate` is the built-in
//! answer: a bearer token, users with passwords and a login page, or both. A service that has a gate of its own
//! implements the trait; [`CallbackBypass`] around either lets callbacks through and nothing else. [`GateLayer`] asks a gate in
//! front of any Tower service.
//!
//! `RouteKeys` is for the routes: each key has a name, and the name is the [`Tenant`](crate::Tenant) that its sessions
//! belong to.

mod bypass;
mod gate;
mod layer;

#[cfg(feature = "auth")]
mod answer;
#[cfg(feature = "auth")]
mod book;
#[cfg(feature = "auth")]
mod built_in;
#[cfg(feature = "auth")]
mod cookie;
#[cfg(feature = "auth")]
mod file;
#[cfg(feature = "auth")]
mod keys;
#[cfg(feature = "auth")]
mod limiter;
#[cfg(feature = "auth")]
mod login;
#[cfg(feature = "auth")]
mod options;
#[cfg(any(feature = "auth", feature = "mcp"))]
pub(crate) mod origin;
#[cfg(feature = "auth")]
mod page;
#[cfg(feature = "auth")]
mod password;
#[cfg(feature = "auth")]
mod sessions;
#[cfg(feature = "auth")]
mod token;
#[cfg(feature = "auth")]
mod users;

pub use bypass::CallbackBypass;
pub use gate::{Access, AuthGate, Caller, ClientAddress, OpenGate};
pub use layer::{GateFuture, GateLayer, GateService};

#[cfg(feature = "auth")]
pub use built_in::Gate;
#[cfg(feature = "auth")]
pub use file::AuthFileError;
#[cfg(feature = "auth")]
pub use keys::{Key, KeysFile, RouteKeys};
#[cfg(feature = "auth")]
pub use options::{GateOptions, TokenSource};
#[cfg(feature = "auth")]
pub use password::{Password, PasswordError};
#[cfg(feature = "auth")]
pub use token::{Token, TokenError};
#[cfg(feature = "auth")]
pub use users::{User, UsersFile};
