//! From the tree to typed values.

use std::ops::Deref;

use super::Shape;
use crate::config::document::{Node, Origin, Value, join};
use crate::config::error::Problems;

/// A type that a key's value is read into.
pub(crate) trait Setting: Sized {
    /// Whether the key may be absent without a default.
    const OPTIONAL: bool = false;

    /// What is accepted.
    fn shape() -> Shape;

    /// The value, or `None` after the fault was reported.
    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self>;

    /// The value of a key that is not there. Required keys have been reported before reading starts.
    fn absent() -> Option<Self> {
        None
    }
}

/// Where reading stands, and where faults go.
pub(crate) struct Reader<'a> {
    path: String,
    problems: &'a mut Problems,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(problems: &'a mut Problems) -> Self {
        Reader { path: String::new(), problems }
    }

    /// Reports that `node` is not what `shape` wants.
    pub(crate) fn wrong<T>(&mut self, node: &Node, shape: &Shape) -> Option<T> {
        self.reject(node, format!("found {}; expected {shape}", node.found()))
    }

    /// Reports a fault of `node` in other words.
    pub(crate) fn reject<T>(&mut self, node: &Node, message: impl Into<String>) -> Option<T> {
        self.problems.add(&node.origin, self.path.clone(), message);
        None
    }

    /// The value of a key of the table `node`.
    pub(crate) fn key<T: Setting>(&mut self, node: &Node, shape: &Shape, name: &str) -> Option<T> {
        let shape = shape.key(name)?;
        match node.entry(name) {
            Some(entry) => self.below(|path| join(path, name), |reader| T::read(&entry.node, shape, reader)),
            None => T::absent(),
        }
    }

    /// Every element of a list, or `None` when one of them is at fault.
    pub(crate) fn elements<T: Setting>(&mut self, nodes: &[Node], shape: &Shape) -> Option<Vec<T>> {
        let read = |(index, node): (usize, &Node)| {
            self.below(|path| format!("{path}[{index}]"), |reader| T::read(node, shape, reader))
        };
        // All of them are read before one fault ends it, so that all faults are reported.
        let elements: Vec<Option<T>> = nodes.iter().enumerate().map(read).collect();
        elements.into_iter().collect()
    }

    pub(crate) fn below<T>(&mut self, path: impl FnOnce(&str) -> String, read: impl FnOnce(&mut Self) -> T) -> T {
        let below = path(&self.path);
        let above = std::mem::replace(&mut self.path, below);
        let value = read(self);
        self.path = above;
        value
    }
}

/// A value that remembers its place, for faults that show only beside other values or files.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    value: T,
    path: String,
    origin: Origin,
}

impl<T> At<T> {
    /// Reports a fault of this value.
    pub(crate) fn reject(&self, problems: &mut Problems, message: impl Into<String>) {
        problems.add(&self.origin, self.path.clone(), message);
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl<T> Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Setting> Setting for At<T> {
    fn shape() -> Shape {
        T::shape()
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        let value = T::read(node, shape, reader)?;
        Some(At { value, path: reader.path.clone(), origin: node.origin.clone() })
    }
}

impl<T: Setting> Setting for Option<T> {
    const OPTIONAL: bool = true;

    fn shape() -> Shape {
        T::shape()
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        T::read(node, shape, reader).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn shape() -> Shape {
        Shape::new(super::Kind::List(Box::new(T::shape())))
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        match (&node.value, &shape.kind) {
            (Value::List(nodes), super::Kind::List(element)) => reader.elements(nodes, element),
            _ => reader.wrong(node, shape),
        }
    }
}
