//! Unknown keys are errors; keys that are not there take their defaults.

use super::node::{Entry, Node, Origin, Value};
use crate::config::describe::{Key, Kind, Shape, closest};
use crate::config::error::Problems;

/// Fills in defaults below `node` and reports keys that do not exist and required ones that are missing.
///
/// Values of a wrong type are left as they are: whoever reads them says what is accepted.
pub(crate) fn complete(node: &mut Node, shape: &Shape, path: &str, problems: &mut Problems) {
    match (&shape.kind, &mut node.value) {
        (Kind::Table(keys), Value::Table(entries)) => {
            for entry in entries.iter() {
                if !keys.iter().any(|key| key.name == entry.key) {
                    problems.add(&entry.origin, join(path, &entry.key), unknown(&entry.key, keys));
                }
            }
            for key in keys {
                if let Some(entry) = entries.iter_mut().find(|entry| entry.key == key.name) {
                    complete(&mut entry.node, &key.shape, &join(path, key.name), problems);
                } else if let Some(value) = &key.default {
                    let mut node = Node::default_value(value.clone());
                    complete(&mut node, &key.shape, &join(path, key.name), problems);
                    entries.push(Entry { key: key.name.to_owned(), origin: Origin::Default, node });
                } else if key.required {
                    problems.add(&node.origin, join(path, key.name), format!("missing; expected {}", key.shape));
                }
            }
        }
        (Kind::Named(shape), Value::Table(entries)) => {
            for entry in entries {
                complete(&mut entry.node, shape, &join(path, &entry.key), problems);
            }
        }
        (Kind::List(shape) | Kind::OneOrMany(shape), Value::List(elements)) => {
            for (index, element) in elements.iter_mut().enumerate() {
                complete(element, shape, &format!("{path}[{index}]"), problems);
            }
        }
        _ => {}
    }
}

/// The path of a key within a table; quoted where TOML would want it quoted.
pub(crate) fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let key = if bare { key.to_owned() } else { format!("{key:?}") };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// The message about a key that does not exist.
pub(crate) fn unknown(name: &str, keys: &[Key]) -> String {
    let names = || keys.iter().map(|key| key.name);
    match closest(name, names()) {
        Some(near) => format!("unknown key; did you mean {near:?}?"),
        None => format!("unknown key; accepted here: {}", names().collect::<Vec<_>>().join(", ")),
    }
}
