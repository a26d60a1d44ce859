//! The arguments of a call.

use bytes::Bytes;

use super::{Content, Parameter, query};
use crate::wire::json::quote_into;

/// The arguments' JSON text: `{"path": {…}, "query": {…}, "body": …}`. Path parameters are strings; so are values of the query,
/// or arrays of them where a name is repeated; a body of JSON stands as it was written, other text as a string, and without a
/// body there is no such member.
///
/// ```
/// use hookgate::wire::http_tool::{Content, PlainPath, Template, input};
/// let template = Template::parse("/v1/charges/{charge}").unwrap();
/// let path = template.matches(&PlainPath::read("/v1/charges/ch_1").unwrap()).unwrap();
/// let text = input(&path, Some("a=1&a=2"), &Content::Json(r#"{"n": 1.0}"#.into())).unwrap();
/// assert_eq!(text, r#"{"path":{"charge":"ch_1"},"query":{"a":["1","2"]},"body":{"n": 1.0}}"#);
/// ```
///
/// # Errors
/// Why the query cannot be read.
pub fn input(path: &[Parameter], query: Option<&str>, body: &Content) -> Result<Bytes, &'static str> {
    let mut out = b"{\"path\":{".to_vec();
    for (index, parameter) in path.iter().enumerate() {
        name(&mut out, index, &parameter.name);
        quote_into(&mut out, &parameter.value);
    }
    out.extend_from_slice(b"},\"query\":{");
    for (index, (key, values)) in query::read(query.unwrap_or_default())?.iter().enumerate() {
        name(&mut out, index, key);
        match values.as_slice() {
            [value] => quote_into(&mut out, value),
            values => {
                for (index, value) in values.iter().enumerate() {
                    out.push(if index == 0 { b'[' } else { b',' });
                    quote_into(&mut out, value);
                }
                out.push(b']');
            }
        }
    }
    out.push(b'}');
    match body {
        Content::Empty => {}
        Content::Json(text) => {
            out.extend_from_slice(b",\"body\":");
            out.extend_from_slice(text);
        }
        Content::Text(text) => {
            out.extend_from_slice(b",\"body\":");
            quote_into(&mut out, &String::from_utf8_lossy(text));
        }
    }
    out.push(b'}');
    Ok(out.into())
}

fn name(out: &mut Vec<u8>, index: usize, name: &str) {
    if index > 0 {
        out.push(b',');
    }
    quote_into(out, name);
    out.push(b':');
}
