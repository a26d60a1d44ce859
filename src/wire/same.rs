//! When two calls are the same, whoever wrote them down.

use serde_json::Value;

use crate::id::{Digest, Hasher};

/// Names a tool with its arguments, however a client writes them: the order of keys and the form of numbers do not count.
pub(crate) fn same_call(tool: &str, arguments: &Value) -> Digest {
    let mut hasher = Hasher::new().with(tool.as_bytes());
    put(&mut hasher, arguments);
    hasher.finish()
}

fn put(hasher: &mut Hasher, value: &Value) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            hasher.part(format!("object {}", members.len()).as_bytes());
            for (name, value) in members {
                hasher.part(name.as_bytes());
                put(hasher, value);
            }
        }
        Value::Array(items) => {
            hasher.part(format!("array {}", items.len()).as_bytes());
            items.iter().for_each(|item| put(hasher, item));
        }
        Value::String(text) => {
            hasher.part(b"string");
            hasher.part(text.as_bytes());
        }
        Value::Number(number) => {
            // A client in JavaScript writes 600 for 600.0.
            let plain = number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string());
            hasher.part(b"number");
            hasher.part(plain.as_bytes());
        }
        Value::Bool(_) | Value::Null => hasher.part(value.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_call_means_counts() {
        let call = same_call("read", &json!({"n": 600, "path": "a", "deep": {"x": [1, null]}}));
        let same: Value =
            serde_json::from_str(r#"{"deep": {"x": [1.0, null]}, "p\u0061th": "\u0061", "n": 6e2}"#).unwrap();
        assert_eq!(same_call("read", &same), call);
        for (tool, other) in [
            ("write", json!({"n": 600, "path": "a", "deep": {"x": [1, null]}})),
            ("read", json!({"n": 601, "path": "a", "deep": {"x": [1, null]}})),
            ("read", json!({"n": "600", "path": "a", "deep": {"x": [1, null]}})),
            ("read", json!({"n": 600, "path": "a", "deep": {"x": [null, 1]}})),
            ("read", json!({"n": 600, "path": "a"})),
        ] {
            assert_ne!(same_call(tool, &other), call, "{tool} {other}");
        }
    }
}
