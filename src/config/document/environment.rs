//! `HOOKGATE__SERVER__LISTEN='["127.0.0.1:9000"]'`: the environment over the file.

use std::collections::BTreeMap;

use super::complete::{join, unknown};
use super::node::{Entry, Node, Origin, Value};
use super::parse::parse_value;
use crate::config::describe::{Kind, Shape};
use crate::config::error::Problems;

/// The environment variables that hookgate was started with.
pub(crate) type Environment = BTreeMap<String, String>;

/// What the names of overriding variables start with; levels are parted by two underscores.
const PREFIX: &str = "HOOKGATE__";
/// Short names of single keys, and what they do to the key.
const ALIASES: [(&str, &str, Mode); 2] = [
    ("HOOKGATE_HOOKS_MODE", "HOOKGATE__HOOKS__MODE", Mode::Replace),
    ("HOOKGATE_HOOK_ALLOWED_HOSTS", "HOOKGATE__HOOKS__ALLOWED_HOSTS", Mode::AddCommaList),
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    /// The value takes the place of what was there.
    Replace,
    /// The value's comma-separated parts are added to the list that was there.
    AddCommaList,
}

/// One step of a variable's name. Sorting by steps puts a table before its keys and element 2 before element 10.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Step<'a> {
    Index(usize),
    Name(&'a str),
}

/// Puts every `HOOKGATE__…` variable into the tree; a name that is no key's is an error.
pub(crate) fn overlay(root: &mut Node, shape: &Shape, environment: &Environment, problems: &mut Problems) {
    let named = environment.iter().map(|(name, text)| (false, name.as_str(), name.as_str(), Mode::Replace, text));
    let aliased = ALIASES
        .iter()
        .filter_map(|&(alias, name, mode)| environment.get(alias).map(|text| (true, name, alias, mode, text)));
    // The aliases come last: the emergency switch wins over the long name.
    let mut variables: Vec<_> = named
        .chain(aliased)
        .filter_map(|(last, name, shown, mode, text)| {
            Some((last, steps(name.strip_prefix(PREFIX)?), shown, mode, text))
        })
        .collect();
    variables.sort();
    for (_, steps, name, mode, text) in variables {
        let origin = Origin::Environment(name.into());
        let variable = Variable { text, mode, origin: &origin };
        variable.put(root, shape, "", &steps, problems);
    }
}

fn steps(name: &str) -> Vec<Step<'_>> {
    name.split("__").map(|step| step.parse().map_or(Step::Name(step), Step::Index)).collect()
}

struct Variable<'a> {
    text: &'a str,
    mode: Mode,
    origin: &'a Origin,
}

impl Variable<'_> {
    fn put(&self, node: &mut Node, shape: &Shape, path: &str, steps: &[Step<'_>], problems: &mut Problems) {
        let Some((step, rest)) = steps.split_first() else {
            match (self.mode, &mut node.value) {
                (Mode::AddCommaList, Value::List(elements)) => elements.extend(self.comma_list()),
                _ => match self.value(shape) {
                    Ok(value) => *node = value,
                    Err(message) => problems.add(self.origin, path, message),
                },
            }
            return;
        };
        match (&shape.kind, step) {
            (Kind::Table(keys), Step::Name(step)) => {
                let Some(key) = keys.iter().find(|key| key.name.eq_ignore_ascii_case(step)) else {
                    let name = step.to_ascii_lowercase();
                    return problems.add(self.origin, join(path, &name), unknown(&name, keys));
                };
                // A default is spelled out before one of its parts is changed, so that the rest of it stays.
                let start = || key.default.clone().map_or_else(|| self.empty(&key.shape), Node::default_value);
                let Some(child) = self.child(node, key.name, start) else {
                    return problems.add(self.origin, path, "this is not a table in the file");
                };
                self.put(child, &key.shape, &join(path, key.name), rest, problems);
            }
            (Kind::Named(shape), Step::Name(step)) => {
                let name = match &node.value {
                    Value::Table(entries) => entries.iter().find(|entry| entry.key.eq_ignore_ascii_case(step)),
                    _ => None,
                };
                let name = name.map_or_else(|| step.to_ascii_lowercase(), |entry| entry.key.clone());
                let Some(child) = self.child(node, &name, || self.empty(shape)) else {
                    return problems.add(self.origin, path, "this is not a table in the file");
                };
                self.put(child, shape, &join(path, &name), rest, problems);
            }
            (Kind::List(shape) | Kind::OneOrMany(shape), Step::Index(index)) => {
                let Value::List(elements) = &mut node.value else {
                    return problems.add(self.origin, path, "this is not a list in the file");
                };
                if *index == elements.len() {
                    elements.push(self.empty(shape));
                }
                let count = elements.len();
                let Some(element) = elements.get_mut(*index) else {
                    let message = format!("there are {count} elements; the next new one has the number {count}");
                    return problems.add(self.origin, format!("{path}[{index}]"), message);
                };
                self.put(element, shape, &format!("{path}[{index}]"), rest, problems);
            }
            _ => {
                let message = format!("no key has this name; expected for {path:?}: {shape}");
                problems.add(self.origin, path, message);
            }
        }
    }

    /// The value of a key in a table, made when it is not there; `None` when `node` is no table.
    fn child<'n>(&self, node: &'n mut Node, key: &str, start: impl FnOnce() -> Node) -> Option<&'n mut Node> {
        let Value::Table(entries) = &mut node.value else { return None };
        let index = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            entries.push(Entry { key: key.to_owned(), origin: self.origin.clone(), node: start() });
            entries.len() - 1
        });
        entries.get_mut(index).map(|entry| &mut entry.node)
    }

    /// TOML where it is TOML, else the text itself; where text is wanted `8080` and `true` are text too.
    fn value(&self, shape: &Shape) -> Result<Node, String> {
        let text = || Node { value: self.text.into(), origin: self.origin.clone() };
        match parse_value(self.text, self.origin) {
            Ok(Node { value: Value::Integer(_) | Value::Bool(_) | Value::Other(_), .. }) if shape.is_text() => {
                Ok(text())
            }
            Ok(node) => Ok(node),
            Err(message) if self.text.trim_start().starts_with(['[', '{']) => {
                Err(format!("the value is not TOML: {message}"))
            }
            Err(_) => Ok(text()),
        }
    }

    /// What a part of a value is put into when there is nothing yet.
    fn empty(&self, shape: &Shape) -> Node {
        let value = match shape.kind {
            Kind::List(_) | Kind::OneOrMany(_) => Value::none(),
            _ => Value::table(),
        };
        Node { value, origin: self.origin.clone() }
    }

    fn comma_list(&self) -> impl Iterator<Item = Node> {
        let parts = self.text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(|part| Node { value: part.into(), origin: self.origin.clone() })
    }
}
