//! `auth.mode`: the modes of the design are known by name, so that asking for one says why it is refused.

use crate::config::describe::{Kind, Reader, Setting, Shape};
use crate::config::document::{Node, Value};

/// Modes that hookgate will have, but has not.
const PLANNED: [&str; 3] = ["token", "password", "token+password"];

/// How clients show who they are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AuthMode {
    /// They do not.
    None,
}

impl Setting for AuthMode {
    fn shape() -> Shape {
        Shape::new(Kind::Choice(&[("none", "Clients do not show who they are; only this machine can reach hookgate.")]))
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.value {
            Value::Text(mode) if mode == "none" => Some(AuthMode::None),
            Value::Text(mode) if PLANNED.contains(&mode.as_str()) => reader.reject(
                node,
                format!("found {mode:?}, but the auth gate is not part of this version yet; expected {shape}, with loopback listeners only"),
            ),
            _ => reader.wrong(node, shape),
        }
    }
}
