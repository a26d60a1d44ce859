//! Tools behind plain HTTP: what of a request is the call of a tool, as JSON, and a request made of such JSON again.
//!
//! A tool is known by a method and a [`Template`] of paths. What a call says stands in three places of a request, and so the
//! arguments have three members: `{"path": {…}, "query": {…}, "body": …}`. Whatever two servers could read in two ways (a path
//! with dot segments, escaped slashes, a body of an unknown kind) is refused rather than guessed.

mod body;
mod change;
mod input;
mod path;
mod query;
mod template;

pub use body::{Content, read_body};
pub use change::{Changes, NewBody, changes};
pub use input::input;
pub use path::{AmbiguousPath, PlainPath, Segment};
pub use template::{Parameter, Template, TemplateError};
