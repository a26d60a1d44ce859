//! What a replacement of the arguments changes in the request.

use std::collections::HashMap;

use bytes::Bytes;

use super::path::encode;
use super::{Content, Parameter, query};
use crate::wire::json::{Member, Node, Str, Value, parse_tree};

/// The parts of a request that are to be written anew. What is `None`, or not listed, stays as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Parameters of the path: their index, their value, and how it is written.
    pub path: Vec<(usize, String, String)>,
    /// The query, without the question mark; empty: there is none any more.
    pub query: Option<String>,
    /// The body.
    pub body: Option<NewBody>,
}

/// A body in the place of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewBody {
    /// There is none any more.
    None,
    /// JSON text.
    Json(Bytes),
    /// Text.
    Text(String),
}

/// Compares a replacement of the arguments with the arguments themselves. A replacement says everything: `path` and `query` must
/// be there, and a call without `body` has none. A value that is only written in another way (white space, order of members,
/// escapes) is not changed; a number that is written in another way is.
///
/// # Errors
/// Why no request can be made of it, in words that hold none of its values.
pub fn changes(path: &[Parameter], body: &Content, input: &[u8], replacement: &[u8]) -> Result<Changes, String> {
    let not_json = |error| format!("it is not JSON: {error}");
    let (before, after) = (parse_tree(input).map_err(not_json)?, parse_tree(replacement).map_err(not_json)?);
    let (before, after) = (Parts::of(&before)?, Parts::of(&after)?);
    let mut changes = Changes::default();
    let values = members(after.path, "path")?;
    if values.len() != path.len() {
        return Err(format!("its path has {} parameters instead of {}", values.len(), path.len()));
    }
    for (index, parameter) in path.iter().enumerate() {
        let value = values.iter().find(|member| member.key.is(&parameter.name));
        let value = value.ok_or_else(|| format!("its path has no parameter {:?}", parameter.name))?;
        let text =
            string(&value.value).ok_or_else(|| format!("its path parameter {:?} is no string", parameter.name))?;
        if text != parameter.value {
            let written = encode(&text)
                .map_err(|why| format!("its path parameter {:?} cannot stand in a path: {why}", parameter.name))?;
            changes.path.push((index, text, written));
        }
    }
    if !same(before.query, input, after.query, replacement) {
        changes.query = Some(new_query(members(after.query, "query")?)?);
    }
    changes.body = match (before.body, after.body) {
        (None, None) => None,
        (Some(_), None) => Some(NewBody::None),
        (Some(old), Some(new)) if same(old, input, new, replacement) => None,
        (_, Some(new)) => Some(match (body, string(new)) {
            (Content::Text(_), Some(text)) => NewBody::Text(text),
            (Content::Text(_), None) => return Err("its body is no string, as that of the request is".into()),
            (Content::Empty | Content::Json(_), _) => NewBody::Json(Bytes::copy_from_slice(new.span.of(replacement))),
        }),
    };
    Ok(changes)
}

/// The members of the arguments.
struct Parts<'n, 'a> {
    path: &'n Node<'a>,
    query: &'n Node<'a>,
    body: Option<&'n Node<'a>>,
}

impl<'n, 'a> Parts<'n, 'a> {
    fn of(input: &'n Node<'a>) -> Result<Self, String> {
        let (mut path, mut query, mut body) = (None, None, None);
        for member in members(input, "arguments")? {
            let slot = match &*member.key.decode() {
                "path" => &mut path,
                "query" => &mut query,
                "body" => &mut body,
                _ => return Err("it has a member beside path, query and body".into()),
            };
            *slot = Some(&member.value);
        }
        let missing = |name| format!("it has no {name:?}, which says what stays as well as what changes");
        Ok(Parts { path: path.ok_or_else(|| missing("path"))?, query: query.ok_or_else(|| missing("query"))?, body })
    }
}

fn members<'n, 'a>(node: &'n Node<'a>, what: &str) -> Result<&'n [Member<'a>], String> {
    match &node.value {
        Value::Object(members) if members.iter().any(|member| member.duplicate) => {
            Err(format!("its {what} has a member twice"))
        }
        Value::Object(members) => Ok(members),
        _ => Err(format!("its {what} is no object")),
    }
}

fn string(node: &Node<'_>) -> Option<String> {
    match &node.value {
        Value::String(string) => Some(string.decode().into_owned()),
        _ => None,
    }
}

fn new_query(names: &[Member<'_>]) -> Result<String, String> {
    let mut pairs = Vec::new();
    for member in names {
        let name = member.key.decode().into_owned();
        let values = match &member.value.value {
            Value::Array(values) => values.iter().map(string).collect::<Option<Vec<_>>>(),
            _ => string(&member.value).map(|value| vec![value]),
        };
        let values = values.ok_or("a value of its query is neither a string nor an array of strings")?;
        pairs.extend(values.into_iter().map(|value| (name.clone(), value)));
    }
    Ok(query::print(pairs.iter().map(|(name, value)| (&**name, &**value))))
}

/// Whether two values say the same.
fn same(a: &Node<'_>, a_text: &[u8], b: &Node<'_>, b_text: &[u8]) -> bool {
    match (&a.value, &b.value) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Number, Value::Number) => a.span.of(a_text) == b.span.of(b_text),
        (Value::String(a), Value::String(b)) => exact(a) == exact(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, a_text, b, b_text))
        }
        (Value::Object(a), Value::Object(b)) => {
            let known: HashMap<_, _> = a.iter().map(|member| (exact(&member.key), &member.value)).collect();
            let finds = |member: &Member<'_>| {
                !member.duplicate
                    && known.get(&exact(&member.key)).is_some_and(|value| same(value, a_text, &member.value, b_text))
            };
            a.len() == b.len() && known.len() == a.len() && b.iter().all(finds)
        }
        _ => false,
    }
}

/// A string's bytes, in which lone surrogates differ.
fn exact(string: &Str<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(string.raw().len());
    string.chunks(|chunk| bytes.extend_from_slice(chunk));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::http_tool::{PlainPath, Template, input};

    fn change(query: &str, body: Content, replacement: &str) -> Result<Changes, String> {
        let template = Template::parse("/v1/{a}/x/{b}").unwrap();
        let path = template.matches(&PlainPath::read("/v1/1/x/2").unwrap()).unwrap();
        let input = input(&path, Some(query), &body).unwrap();
        changes(&path, &body, &input, replacement.as_bytes())
    }

    fn json() -> Content {
        Content::Json(r#"{"n": 1.0, "s": "\u00e9"}"#.into())
    }

    #[test]
    fn what_is_written_in_another_way_is_no_change() {
        let same = r#"{"body": {"s":"é","n":1.0}, "query": {"q":"\u0061"}, "path": {"b":"2","a":"1"}}"#;
        assert_eq!(change("q=a", json(), same), Ok(Changes::default()));
    }

    #[test]
    fn only_what_changed_is_written_anew() {
        let path = r#"{"path":{"a":"1","b":"2 3"},"query":{},"body":{"n":1.0,"s":"é"}}"#;
        let expected = Changes { path: vec![(1, "2 3".into(), "2%203".into())], ..Changes::default() };
        assert_eq!(change("", json(), path), Ok(expected));

        let query = r#"{"path":{"a":"1","b":"2"},"query":{"q":["x","y&z"],"r":""}}"#;
        let expected = Changes { query: Some("q=x&q=y%26z&r=".into()), ..Changes::default() };
        assert_eq!(change("q=x", Content::Empty, query), Ok(expected));
        let none = r#"{"path":{"a":"1","b":"2"},"query":{}}"#;
        let expected = Changes { query: Some(String::new()), ..Changes::default() };
        assert_eq!(change("q=x", Content::Empty, none), Ok(expected));
    }

    #[test]
    fn bodies_keep_their_form() {
        let with = |body: &str| format!(r#"{{"path":{{"a":"1","b":"2"}},"query":{{}}{body}}}"#);
        let body = |content, replacement: &str| change("", content, &with(replacement)).map(|changes| changes.body);
        let text = || Content::Text("hi".into());
        assert_eq!(
            body(json(), r#","body":{"n":1, "s": "é"}"#),
            Ok(Some(NewBody::Json(r#"{"n":1, "s": "é"}"#.into())))
        );
        assert_eq!(body(json(), r#","body":"x""#), Ok(Some(NewBody::Json("\"x\"".into()))));
        assert_eq!(body(json(), ""), Ok(Some(NewBody::None)));
        assert_eq!(body(Content::Empty, r#","body":[]"#), Ok(Some(NewBody::Json("[]".into()))));
        assert_eq!(body(text(), r#","body":"ho""#), Ok(Some(NewBody::Text("ho".into()))));
        assert_eq!(body(text(), r#","body":"h\u0069""#), Ok(None));
        assert!(body(text(), r#","body":{}"#).unwrap_err().contains("no string"));
    }

    #[test]
    fn what_makes_no_request_says_why() {
        for (replacement, says) in [
            (r#"{"path":{"a":"..","b":"2"},"query":{}}"#, "\"a\" cannot stand in a path"),
            (r#"{"path":{"a":"1/2","b":"2"},"query":{}}"#, "slash"),
            (r#"{"path":{"a":"","b":"2"},"query":{}}"#, "empty"),
            (r#"{"path":{"a":1,"b":"2"},"query":{}}"#, "no string"),
            (r#"{"path":{"a":"1"},"query":{}}"#, "1 parameters instead of 2"),
            (r#"{"path":{"a":"1","c":"2"},"query":{}}"#, "no parameter \"b\""),
            (r#"{"path":{"a":"1","b":"2","b":"3"},"query":{}}"#, "twice"),
            (r#"{"path":{"a":"1","b":"2"}}"#, "no \"query\""),
            (r#"{"query":{}}"#, "no \"path\""),
            (r#"{"path":{"a":"1","b":"2"},"query":{"q":1}}"#, "neither a string"),
            (r#"{"path":{"a":"1","b":"2"},"query":[]}"#, "no object"),
            (r#"{"path":{"a":"1","b":"2"},"query":{},"headers":{}}"#, "beside"),
            ("[]", "no object"),
        ] {
            let error = change("q=1", Content::Empty, replacement).unwrap_err();
            assert!(error.contains(says), "{replacement}: {error}");
        }
    }
}
