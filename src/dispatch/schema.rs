//! A tool's own JSON Schema, against which replacements are checked.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::PatternOptions;
use serde_json::Value;

use crate::id::Digest;

/// Steps that one regular expression of a schema may take. Schemas come with the traffic, so that a hostile pattern must
/// end; this is far beyond what honest ones need.
const MAX_BACKTRACKS: usize = 100_000;
/// The largest compiled regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A compiled schema. No reference to another document is ever fetched.
///
/// ```
/// use hookgate::dispatch::ToolSchema;
/// let schema = ToolSchema::compile(br#"{"properties": {"n": {"type": "integer"}}}"#).unwrap();
/// assert!(schema.validate(br#"{"n": 1}"#).is_ok());
/// assert_eq!(schema.validate(br#"{"n": "secret"}"#).unwrap_err(), "at /n: type");
/// ```
#[derive(Debug)]
pub struct ToolSchema {
    validator: jsonschema::Validator,
}

impl ToolSchema {
    /// Compiles the JSON text of a schema; its draft is told by `$schema`, else it is 2020-12.
    ///
    /// # Errors
    /// Why it is not a usable schema: not JSON, against its draft, or with a reference to another document.
    pub fn compile(raw: &[u8]) -> Result<ToolSchema, String> {
        let schema: Value = serde_json::from_slice(raw).map_err(|error| format!("it is not JSON: {error}"))?;
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS).size_limit(MAX_PATTERN_BYTES);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(&schema)
            // What is at fault is the schema, as an instance of its draft.
            .map_err(|error| format!("at {}: {}", place(error.instance_path().as_str()), error.masked()))?;
        Ok(ToolSchema { validator })
    }

    /// Checks the JSON text of an input.
    ///
    /// # Errors
    /// Where it does not fit and by which keyword, without any of its values: they may be secret.
    pub fn validate(&self, raw_object: &[u8]) -> Result<(), String> {
        let input: Value = serde_json::from_slice(raw_object).map_err(|error| format!("it is not JSON: {error}"))?;
        self.validator
            .validate(&input)
            .map_err(|error| format!("at {}: {}", place(error.instance_path().as_str()), error.kind().keyword()))
    }
}

fn place(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Compiled schemas by their text, so that an agent's tools are compiled once and not at every call. The oldest go first.
#[derive(Debug)]
pub struct ToolSchemas {
    capacity: usize,
    state: Mutex<Compiled>,
}

#[derive(Debug, Default)]
struct Compiled {
    schemas: HashMap<Digest, Result<Arc<ToolSchema>, String>>,
    order: VecDeque<Digest>,
}

impl ToolSchemas {
    /// A cache of at most so many schemas (at least 1).
    pub fn new(capacity: usize) -> Self {
        ToolSchemas { capacity: capacity.max(1), state: Mutex::default() }
    }

    /// The compiled schema of a text.
    ///
    /// # Errors
    /// As [`ToolSchema::compile`].
    pub fn get(&self, raw: &[u8]) -> Result<Arc<ToolSchema>, String> {
        let digest = Digest::of(raw);
        if let Some(known) = self.state().schemas.get(&digest) {
            return known.clone();
        }
        // Compiled outside the lock: a large schema must not hold up the others.
        let compiled = ToolSchema::compile(raw).map(Arc::new);
        let mut state = self.state();
        if state.schemas.insert(digest, compiled.clone()).is_none() {
            state.order.push_back(digest);
        }
        if state.order.len() > self.capacity
            && let Some(oldest) = state.order.pop_front()
        {
            state.schemas.remove(&oldest);
        }
        compiled
    }

    fn state(&self) -> std::sync::MutexGuard<'_, Compiled> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_fetched() {
        for reference in ["https://json.example/s.json", "http://127.0.0.1:1/s", "file:///etc/passwd", "other.json"] {
            let schema = format!(r#"{{"$ref": "{reference}"}}"#);
            assert!(ToolSchema::compile(schema.as_bytes()).is_err(), "{reference}");
        }
        let local = br##"{"$defs": {"n": {"type": "number"}}, "properties": {"n": {"$ref": "#/$defs/n"}}}"##;
        let schema = ToolSchema::compile(local).unwrap();
        assert!(schema.validate(br#"{"n": 1}"#).is_ok() && schema.validate(br#"{"n": "1"}"#).is_err());
    }

    #[test]
    fn errors_show_no_value() {
        let schema = ToolSchema::compile(br#"{"properties": {"a": {"enum": ["x"]}}, "additionalProperties": false}"#);
        let schema = schema.unwrap();
        for input in [r#"{"a": "s3cret"}"#, r#"{"s3cret": 1}"#, r#"{"a": "s3cret"#] {
            let error = schema.validate(input.as_bytes()).unwrap_err();
            assert!(!error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let schema = ToolSchema::compile(br#"{"properties": {"a": {"pattern": "^(?:(a|a)*)\\1$"}}}"#).unwrap();
        let input = format!(r#"{{"a": "{}b"}}"#, "a".repeat(40));
        assert!(schema.validate(input.as_bytes()).is_err());
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_errors() {
        let cache = ToolSchemas::new(2);
        let first = cache.get(b"{}").unwrap();
        assert!(Arc::ptr_eq(&first, &cache.get(b"{}").unwrap()));
        assert_eq!(cache.get(b"{").unwrap_err(), cache.get(b"{").unwrap_err());
        cache.get(b"true").unwrap();
        assert_eq!(cache.state().schemas.len(), 2);
        assert!(!Arc::ptr_eq(&first, &cache.get(b"{}").unwrap()));
    }
}
