//! `config schema`: the description of all keys as JSON Schema, for editors.

use serde_json::{Map, Value as Json, json};

use super::describe::{Key, Kind, Setting, Shape};
use super::document::{Node, Value};
use super::keys::Root;

/// A JSON Schema (2020-12) of the configuration file.
///
/// An editor checks and completes a file with it, for example after a first line `#:schema hookgate.schema.json`. It knows
/// the keys, their types, ranges and defaults; rules between keys are checked by `hookgate validate` alone.
///
/// ```
/// let schema = hookgate::config::schema();
/// assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
/// assert!(schema["properties"]["server"]["properties"]["listen"]["description"].is_string());
/// ```
pub fn schema() -> Json {
    let mut schema = of(&Root::shape());
    schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".to_owned(), "hookgate configuration".into());
    Json::Object(schema)
}

fn of(shape: &Shape) -> Map<String, Json> {
    let (low, high) = shape.range;
    let schema = match &shape.kind {
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Duration => json!({ "type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$" }),
        Kind::Text(_) => json!({ "type": "string" }),
        Kind::Choice(words) => {
            let words: Vec<Json> =
                words.iter().map(|(word, about)| json!({ "const": word, "description": about })).collect();
            json!({ "oneOf": words })
        }
        Kind::List(element) => json!({ "type": "array", "items": of(element) }),
        Kind::OneOrMany(element) => {
            json!({ "anyOf": [of(element), { "type": "array", "items": of(element) }] })
        }
        Kind::Named(value) => json!({ "type": "object", "additionalProperties": of(value) }),
        Kind::Table(keys) => {
            let properties: Map<_, _> = keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
            let required: Vec<&str> = keys.iter().filter(|key| key.required).map(|key| key.name).collect();
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
        }
    };
    match schema {
        Json::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn property(key: &Key) -> Json {
    let mut schema = of(&key.shape);
    let about = match &key.shape.kind {
        Kind::Text(_) | Kind::Duration => format!("{} Expected: {}.", key.about, key.shape),
        _ => key.about.to_owned(),
    };
    schema.insert("description".to_owned(), about.into());
    // A default table only says that the table may be left out.
    if let Some(default) = key.default.as_ref().filter(|default| !matches!(default, Value::Table(_))) {
        schema.insert("default".to_owned(), json_of(default));
    }
    Json::Object(schema)
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Bool(value) => (*value).into(),
        Value::List(elements) => elements.iter().map(|Node { value, .. }| json_of(value)).collect(),
        Value::Table(entries) => {
            Json::Object(entries.iter().map(|entry| (entry.key.clone(), json_of(&entry.node.value))).collect())
        }
        Value::Other(_) => Json::Null,
    }
}
