//! From TOML text to the tree.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{Entry, Node, Origin, Value};
use crate::config::error::Problems;
use crate::wire::json::position;

/// Parses a file; every syntax error is reported, and then there is no tree.
pub(crate) fn parse(text: &str, file: &Arc<str>, problems: &mut Problems) -> Option<Node> {
    let place = |offset: usize| {
        let (line, column) = position(text.as_bytes(), offset);
        Origin::File { file: file.clone(), line, column }
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let offset = error.span().map_or(0, |span| span.start);
        problems.add(&place(offset), "", format!("this is not TOML: {}", error.message()));
    }
    errors.is_empty().then(|| Node { value: entries(table.get_ref(), &place), origin: place(0) })
}

/// Parses one value, as an environment variable holds it.
pub(crate) fn parse_value(text: &str, origin: &Origin) -> Result<Node, String> {
    let value = DeValue::parse(text).map_err(|error| error.message().to_owned())?;
    Ok(node(&value, &|_| origin.clone()))
}

fn entries(table: &DeTable<'_>, place: &dyn Fn(usize) -> Origin) -> Value {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let key: (&std::borrow::Cow<'_, str>, usize) = (key.get_ref(), key.span().start);
        (key.1, Entry { key: key.0.to_string(), origin: place(key.1), node: node(value, place) })
    };
    let mut entries: Vec<_> = table.iter().map(entry).collect();
    // The parser sorts keys by name; people want errors and listings in the order of their file.
    entries.sort_by_key(|(offset, _)| *offset);
    Value::Table(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn node(value: &Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> Origin) -> Node {
    let parsed = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or(Value::Other("an integer beyond 64 bits"), Value::Integer),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Array(elements) => Value::List(elements.iter().map(|element| node(element, place)).collect()),
        DeValue::Table(table) => entries(table, place),
        DeValue::Float(_) => Value::Other("a number with a fraction"),
        DeValue::Datetime(_) => Value::Other("a date or time"),
    };
    Node { value: parsed, origin: place(value.span().start) }
}
