//! Values and their origins.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { file: Arc<str>, line: usize, column: usize },
    Environment(Arc<str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Origin::Environment(name) => f.write_str(name),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Bool(bool),
    List(Vec<Node>),
    Table(Vec<Entry>),
    /// A value of a kind that no key takes, with the name of that kind.
    Other(&'static str),
}

/// A key of a table and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Where the key itself stands.
    pub(crate) origin: Origin,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn default_value(value: Value) -> Self {
        Node { value, origin: Origin::Default }
    }

    /// The value that an error shows: its text where that is short, else its kind.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::Text(text) if text.chars().count() <= 80 => format!("{text:?}"),
            Value::Text(_) => "a long string".to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
            Value::Other(kind) => (*kind).to_owned(),
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }
}

impl Value {
    /// A table without keys, whose keys then take their defaults.
    pub(crate) fn table() -> Self {
        Value::Table(Vec::new())
    }

    /// A list without elements.
    pub(crate) fn none() -> Self {
        Value::List(Vec::new())
    }

    /// A duration as a number of milliseconds.
    pub(crate) fn millis(duration: Duration) -> Self {
        Value::Integer(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }

    /// A duration as a number of seconds.
    pub(crate) fn seconds(duration: Duration) -> Self {
        Value::Integer(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
    }

    /// A list of tables whose values are all text, for defaults.
    pub(crate) fn tables<const N: usize>(rows: &[[(&str, &str); N]]) -> Self {
        let table = |row: &[(&str, &str); N]| {
            let entry = |&(key, text): &(&str, &str)| Entry {
                key: key.to_owned(),
                origin: Origin::Default,
                node: Node::default_value(text.into()),
            };
            Node::default_value(Value::Table(row.iter().map(entry).collect()))
        };
        Value::List(rows.iter().map(table).collect())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Integer(number.into())
    }
}

/// Written with the largest unit that divides it, as a person would.
impl From<Duration> for Value {
    fn from(duration: Duration) -> Self {
        Value::Text(crate::config::describe::duration_text(duration))
    }
}

impl<const N: usize> From<[&str; N]> for Value {
    fn from(texts: [&str; N]) -> Self {
        Value::List(texts.iter().map(|text| Node::default_value((*text).into())).collect())
    }
}
