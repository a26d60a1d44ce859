//! The configuration as it was written: a tree in which every value knows where it came from.

mod complete;
mod environment;
mod node;
mod parse;

pub(super) use complete::{complete, join};
pub(super) use environment::{Environment, overlay};
pub(super) use node::{Entry, Node, Origin, Value};
pub(super) use parse::parse;
