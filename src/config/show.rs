//! `config show`: the effective configuration as TOML, each value with its origin.

use std::fmt::Write;

use super::describe::{Key, Kind, Setting, Shape};
use super::document::{Entry, Node, Origin, Value, join};
use super::keys::Root;
use super::model::Config;
use super::sources::INLINE_DOCUMENT;

impl Config {
    /// Every key that has a value, as a TOML file that means the same, each line with where its value came from:
    /// `default`, `file:line`, or an environment variable. Secrets are not part of it: the file only refers to them.
    pub fn show(&self) -> String {
        let mut text = String::new();
        if self.hook_sources.inline.is_some() {
            let _ = writeln!(text, "# {INLINE_DOCUMENT} holds one more hook document.");
        }
        let Kind::Table(keys) = Root::shape().kind else { return text };
        let present: Vec<(&Key, &Entry)> =
            keys.iter().filter_map(|key| Some((key, self.effective.entry(key.name)?))).collect();
        // Below a heading a plain line would belong to that heading, so empty lists come first.
        for (_, entry) in
            present.iter().filter(|(_, entry)| matches!(&entry.node.value, Value::List(list) if list.is_empty()))
        {
            line(&mut text, entry);
        }
        for (key, entry) in present {
            let name = key.name;
            match (&key.shape.kind, &entry.node.value) {
                (Kind::List(element), Value::List(elements)) => {
                    for node in elements {
                        section(&mut text, &format!("[[{name}]]"), node, element);
                    }
                }
                (Kind::Named(named), Value::Table(entries)) => {
                    for entry in entries {
                        section(&mut text, &format!("[{}]", join(name, &entry.key)), &entry.node, named);
                    }
                }
                _ => section(&mut text, &format!("[{name}]"), &entry.node, &key.shape),
            }
        }
        text
    }
}

fn section(text: &mut String, heading: &str, node: &Node, shape: &Shape) {
    let Kind::Table(keys) = &shape.kind else { return };
    let before = if text.is_empty() { "" } else { "\n" };
    let _ = writeln!(text, "{before}{heading}");
    // In the order of the description, whatever the order of the file.
    for entry in keys.iter().filter_map(|key| node.entry(key.name)) {
        line(text, entry);
    }
}

fn line(text: &mut String, entry: &Entry) {
    let mut origins = Vec::new();
    collect(&entry.node, &mut origins);
    let mut value = String::new();
    inline(&mut value, &entry.node);
    let _ = writeln!(text, "{} = {value}  # {}", entry.key, origins.join(", "));
}

/// Where a value and its parts came from, each place once.
fn collect(node: &Node, origins: &mut Vec<String>) {
    let parts: Box<dyn Iterator<Item = &Node>> = match &node.value {
        Value::List(elements) => Box::new(elements.iter()),
        Value::Table(entries) => Box::new(entries.iter().map(|entry| &entry.node)),
        _ => Box::new(std::iter::empty()),
    };
    let origin = match &node.origin {
        Origin::File { file, line, .. } => format!("{file}:{line}"),
        other => other.to_string(),
    };
    // A list that only starts with the default is not the default.
    let mut parts = parts.peekable();
    if !origins.contains(&origin) && (node.origin != Origin::Default || parts.peek().is_none()) {
        origins.push(origin);
    }
    parts.for_each(|part| collect(part, origins));
}

fn inline(text: &mut String, node: &Node) {
    match &node.value {
        Value::Text(value) => text.push_str(&quoted(value)),
        Value::Integer(number) => text.push_str(&number.to_string()),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::List(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                inline(text, element);
            }
            text.push(']');
        }
        Value::Table(entries) if entries.is_empty() => text.push_str("{}"),
        Value::Table(entries) => {
            text.push_str("{ ");
            for (index, entry) in entries.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                text.push_str(&join("", &entry.key));
                text.push_str(" = ");
                inline(text, &entry.node);
            }
            text.push_str(" }");
        }
        Value::Other(_) => {}
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn strings_survive_quoting() {
        for text in ["plain", "with \"quotes\"", "back\\slash", "tab\tand\u{1}", "ü"] {
            let document = format!("value = {}", quoted(text));
            let table: toml::Table = document.parse().unwrap();
            assert_eq!(table["value"].as_str(), Some(text));
        }
    }
}
