//! A small tree with spans, for documents that people write: every node knows where it stands.

use super::{Cursor, JsonError, Kind, Names, Span, Str};

/// A value and its place.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub value: Value<'a>,
}

/// What a [`Node`] holds.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// An object's members, in order, duplicates included.
    Object(Vec<Member<'a>>),
    /// An array's elements.
    Array(Vec<Node<'a>>),
    /// A string.
    String(Str<'a>),
    /// A number: see its text by the span.
    Number,
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
}

/// A member of an object.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// Its name.
    pub key: Str<'a>,
    /// Whether the same name stood before it in this object.
    pub duplicate: bool,
    /// Its value.
    pub value: Node<'a>,
}

/// Parses a whole document into a tree.
///
/// ```
/// use hookgate::wire::json::{Value, parse_tree};
/// let tree = parse_tree(br#"{"a": 1, "a": 2}"#).unwrap();
/// let Value::Object(members) = tree.value else { panic!() };
/// assert!(!members[0].duplicate && members[1].duplicate);
/// ```
///
/// # Errors
/// When the text is not JSON.
pub fn parse_tree(text: &[u8]) -> Result<Node<'_>, JsonError> {
    Cursor::document(text, node)
}

fn node<'a>(cursor: &mut Cursor<'a>) -> Result<Node<'a>, JsonError> {
    match cursor.kind()? {
        Kind::Object => {
            let mut members = Vec::new();
            let mut names = Names::default();
            let span = cursor.object(|cursor, key| {
                let duplicate = !names.add(key);
                members.push(Member { key, duplicate, value: node(cursor)? });
                Ok(())
            })?;
            Ok(Node { span, value: Value::Object(members) })
        }
        Kind::Array => {
            let mut elements = Vec::new();
            let span = cursor.array(|cursor| {
                elements.push(node(cursor)?);
                Ok(())
            })?;
            Ok(Node { span, value: Value::Array(elements) })
        }
        Kind::String => {
            let string = cursor.string()?;
            Ok(Node { span: string.span(), value: Value::String(string) })
        }
        Kind::Bool => {
            let span = cursor.skip()?;
            Ok(Node { span, value: Value::Bool(span.of(cursor.text()) == b"true") })
        }
        Kind::Number => Ok(Node { span: cursor.skip()?, value: Value::Number }),
        Kind::Null => Ok(Node { span: cursor.skip()?, value: Value::Null }),
    }
}
