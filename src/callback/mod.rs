//! One-time callbacks: a URL that a worker calls once to wake a session.
//!
//! [`TmpHooks`] issues the URLs and holds the inboxes; [`CallbackService`] is the route that the worker POSTs to. What the
//! worker sent becomes a message of the session, stored before the worker is answered.

mod admit;
mod body;
#[cfg(feature = "mcp")]
mod calls;
mod deliver;
mod hooks;
mod inbox;
mod machine;
mod origin;
mod render;
mod route;
#[cfg(feature = "mcp")]
mod screen;
mod settings;
mod token;
pub(crate) mod tool;
#[cfg(feature = "mcp")]
mod wait;

#[cfg(feature = "mcp")]
pub(crate) use calls::{Asked, Caller};
pub use deliver::Controller;
pub use hooks::{IssueError, ListedHook, TmpHook, TmpHooks};
pub use inbox::{Arrival, InboxQuery};
pub use origin::{OriginError, Scheme};
pub use route::CallbackService;
#[cfg(feature = "mcp")]
pub(crate) use screen::Screen;
pub use settings::{Settings, SettingsError};
pub use token::TokenKey;
#[cfg(feature = "mcp")]
pub(crate) use wait::Sight;
