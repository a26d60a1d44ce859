//! Looking members up under each of their names.

use std::borrow::Cow;

use crate::wire::json::{Member, Node, Span, Value};

/// The members of an object; none for anything else.
pub(super) fn members<'n, 't>(node: &'n Node<'t>) -> &'n [Member<'t>] {
    match &node.value {
        Value::Object(members) => members,
        _ => &[],
    }
}

/// The elements of an array; none for anything else.
pub(super) fn elements<'n, 't>(node: &'n Node<'t>) -> &'n [Node<'t>] {
    match &node.value {
        Value::Array(elements) => elements,
        _ => &[],
    }
}

/// The member with one of these names, unless it is `null`. Of several the last counts, as with most readers.
pub(super) fn member<'n, 't>(node: &'n Node<'t>, names: &[&str]) -> Option<&'n Node<'t>> {
    let named = members(node).iter().rfind(|member| names.iter().any(|name| member.key.is(name)))?;
    (!matches!(named.value.value, Value::Null)).then_some(&named.value)
}

/// The same where it matters that all readers see the same one.
pub(super) fn only_member<'n, 't>(node: &'n Node<'t>, names: &[&str]) -> Result<Option<&'n Node<'t>>, String> {
    let named = members(node).iter().filter(|member| names.iter().any(|name| member.key.is(name)));
    match named.count() {
        0 | 1 => Ok(member(node, names)),
        _ => Err(format!("it has more than one of the members {}", names.join(", "))),
    }
}

/// A string's text.
pub(super) fn string<'t>(node: &Node<'t>) -> Option<Cow<'t, str>> {
    match &node.value {
        Value::String(text) => Some(text.decode()),
        _ => None,
    }
}

/// The text of a string member that is not empty: in Protobuf an empty string is one that is not there.
pub(super) fn text(node: &Node<'_>, names: &[&str]) -> Option<String> {
    member(node, names).and_then(string).filter(|text| !text.is_empty()).map(Cow::into_owned)
}

/// The texts of a message's or an artifact's parts, joined by a newline.
pub(super) fn texts(node: &Node<'_>) -> String {
    let parts = member(node, PARTS).map_or(&[][..], elements);
    let texts = parts.iter().filter_map(|part| member(part, &["text"]).and_then(string));
    texts.collect::<Vec<_>>().join("\n")
}

/// What the parts of a message are called: HTTP+JSON in 0.3 has a name of its own.
pub(super) const PARTS: &[&str] = &["parts", "content"];

/// A span of a text that stands within another one, from this offset on.
pub(super) fn within(offset: usize, span: Span) -> Span {
    Span { start: offset + span.start, end: offset + span.end }
}
