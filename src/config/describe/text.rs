//! Text with a meaning: addresses, paths, names.

use super::{Kind, Reader, Setting, Shape};
use crate::config::document::{Node, Value};

/// A type that is written as a string.
pub(crate) trait FromText: Sized {
    /// What is accepted, as the end of a sentence that starts with "expected".
    const WHAT: &'static str;

    /// The value; `None` when the text is something else.
    fn from_text(text: &str) -> Option<Self>;

    /// Whether a wrong text may hold a secret that was put here by mistake; it is not shown then.
    fn may_be_secret(_wrong: &str) -> bool {
        false
    }
}

impl<T: FromText> Setting for T {
    fn shape() -> Shape {
        Shape::new(Kind::Text(T::WHAT))
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.value {
            Value::Text(text) => match T::from_text(text) {
                Some(value) => Some(value),
                None if T::may_be_secret(text) => {
                    reader.reject(node, format!("found something else; expected {shape}"))
                }
                None => reader.wrong(node, shape),
            },
            _ => reader.wrong(node, shape),
        }
    }
}
