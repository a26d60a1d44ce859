//! What handlers must not see of a tool's input and result.
//!
//! Redaction changes what handlers are told, never the traffic. A rule by fields or by members needs an object to work
//! on; whatever else stands in its place is hidden whole, because nobody can say where in it the secret is.

use bytes::Bytes;

use super::Matcher;
use crate::wire::json::{Cursor, Edits, JsonError, Kind, Span, pointer, quote};

/// What stands in the place of what is hidden.
const REDACTED: &str = "\"[redacted]\"";

/// How much of a tool's input and result is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redact {
    /// All of it.
    Whole,
    /// The values that these JSON Pointers name.
    Fields(Vec<String>),
    /// Everything but these members.
    Allow(Vec<String>),
}

/// The rules of `[[redact]]`.
///
/// ```
/// use hookgate::hooks::{Redact, Redaction};
/// let rules = Redaction::default().rule("login", Redact::Fields(vec!["/password".into()]));
/// let input = bytes::Bytes::from_static(br#"{"user": "a", "password": "b"}"#);
/// assert_eq!(rules.apply("login", &input), r#"{"user": "a", "password": "[redacted]"}"#);
/// assert_eq!(rules.apply("mcp__vault__login", &input), r#"{"user": "a", "password": "[redacted]"}"#);
/// assert_eq!(rules.apply("other", &input), input);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redaction {
    rules: Vec<(Matcher, Redact)>,
}

impl Redaction {
    /// Adds a rule for a tool, named as matchers name tools. Several rules for one tool all hold.
    #[must_use]
    pub fn rule(mut self, tool: &str, what: Redact) -> Self {
        self.rules.push((Matcher::of([tool]), what));
        self
    }

    fn of<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a Redact> {
        self.rules.iter().filter(move |(tools, _)| tools.matches(tool)).map(|(_, what)| what)
    }

    /// The JSON text of an input or result as handlers may see it; unreadable text is hidden whole.
    pub fn apply(&self, tool: &str, json: &Bytes) -> Bytes {
        self.of(tool).fold(json.clone(), |text, what| {
            hide(what, &text).ok().flatten().unwrap_or_else(|| Bytes::from_static(REDACTED.as_bytes()))
        })
    }

    /// Puts what was hidden back into the replacement of a handler that could not see it: a value that still reads
    /// `[redacted]` gets its original, and members that were kept from the handler stay. An input that was hidden whole
    /// is replaced whole.
    pub fn restore(&self, tool: &str, original: &Bytes, replacement: Bytes) -> Bytes {
        // In the opposite order of hiding: what the first rule hid was hidden from the later ones too.
        self.of(tool)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .fold(replacement, |text, what| show(what, original, &text).unwrap_or(text))
    }
}

/// `None` when the text is not an object that a rule can work on.
fn hide(what: &Redact, text: &Bytes) -> Result<Option<Bytes>, JsonError> {
    if matches!(what, Redact::Whole) {
        return Ok(None);
    }
    match Cursor::new(text).kind()? {
        Kind::Object => hide_in_object(what, text).map(Some),
        // Many tools print an object into a string.
        Kind::String => {
            let inner = Cursor::document(text, |cursor| Ok(cursor.string()?.decode().into_owned()))?;
            if Cursor::new(inner.as_bytes()).kind()? != Kind::Object {
                return Ok(None);
            }
            let hidden = hide_in_object(what, &Bytes::from(inner))?;
            Ok(Some(quote(&String::from_utf8_lossy(&hidden)).into()))
        }
        _ => Ok(None),
    }
}

fn hide_in_object(what: &Redact, text: &Bytes) -> Result<Bytes, JsonError> {
    match what {
        Redact::Whole => Ok(Bytes::from_static(REDACTED.as_bytes())),
        Redact::Fields(pointers) => {
            let mut spans = Vec::new();
            for pointer in pointers {
                spans.extend(named(text, pointer)?);
            }
            Ok(replace(text, spans.into_iter().map(|span| (span, Bytes::from_static(REDACTED.as_bytes())))))
        }
        Redact::Allow(names) => {
            let kept = members(text, |key| names.iter().any(|name| name == key))?;
            Ok(object(kept.iter().map(|(_, span)| span.of(text))))
        }
    }
}

fn show(what: &Redact, original: &Bytes, replacement: &Bytes) -> Option<Bytes> {
    match what {
        Redact::Whole => None,
        Redact::Fields(pointers) => {
            let mut back = Vec::new();
            for name in pointers {
                let Some(value) = pointer(original, name).ok()? else { continue };
                let value = original.slice(value.start..value.end);
                let hidden = named(replacement, name).ok()?.into_iter();
                let hidden = hidden.filter(|span| span.of(replacement) == REDACTED.as_bytes());
                back.extend(hidden.map(|span| (span, value.clone())));
            }
            Some(replace(replacement, back.into_iter()))
        }
        Redact::Allow(names) => {
            let written = members(replacement, |_| true).ok()?;
            let unseen = |key: &str| !names.iter().any(|name| name == key);
            let kept = members(original, |key| unseen(key) && !written.iter().any(|(name, _)| name == key)).ok()?;
            let written = written.iter().map(|(_, span)| span.of(replacement));
            Some(object(written.chain(kept.iter().map(|(_, span)| span.of(original)))))
        }
    }
}

/// Every value that a JSON Pointer names: duplicate keys give several.
fn named(text: &[u8], pointer: &str) -> Result<Vec<Span>, JsonError> {
    let tokens: Vec<_> = pointer.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
    let mut found = Vec::new();
    Cursor::document(text, |cursor| walk(cursor, &tokens, &mut found))?;
    Ok(found)
}

fn walk(cursor: &mut Cursor<'_>, tokens: &[String], found: &mut Vec<Span>) -> Result<(), JsonError> {
    let Some((token, rest)) = tokens.split_first() else {
        found.push(cursor.skip()?);
        return Ok(());
    };
    match cursor.kind()? {
        Kind::Object => cursor.object(|cursor, key| match key.is(token) {
            true => walk(cursor, rest, found),
            false => cursor.skip().map(drop),
        })?,
        Kind::Array => {
            let wanted = token.parse::<usize>().ok();
            let mut index = 0;
            cursor.array(|cursor| {
                index += 1;
                match wanted == Some(index - 1) {
                    true => walk(cursor, rest, found),
                    false => cursor.skip().map(drop),
                }
            })?
        }
        _ => cursor.skip()?,
    };
    Ok(())
}

/// The members of an object that are wanted: names, and spans from key to value.
fn members(text: &[u8], wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, Span)>, JsonError> {
    let mut found = Vec::new();
    Cursor::document(text, |cursor| {
        cursor.object(|cursor, key| {
            let end = cursor.skip()?.end;
            let name = key.decode();
            if wanted(&name) {
                found.push((name.into_owned(), Span { start: key.span().start, end }));
            }
            Ok(())
        })
    })?;
    Ok(found)
}

fn object<'a>(members: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let mut out = vec![b'{'];
    for (index, member) in members.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(member);
    }
    out.push(b'}');
    out.into()
}

/// Replaces spans; one that lies inside another is gone with it.
fn replace(text: &Bytes, spans: impl Iterator<Item = (Span, Bytes)>) -> Bytes {
    let mut spans: Vec<_> = spans.collect();
    spans.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
    let mut edits = Edits::default();
    let mut end = 0;
    for (span, with) in spans {
        if span.start >= end {
            end = span.end;
            edits.replace(span, with);
        }
    }
    edits.apply(text).to_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(what: Redact) -> Redaction {
        Redaction::default().rule("t", what)
    }

    fn fields(pointers: &[&str]) -> Redaction {
        redaction(Redact::Fields(pointers.iter().map(|pointer| (*pointer).into()).collect()))
    }

    fn allow(names: &[&str]) -> Redaction {
        redaction(Redact::Allow(names.iter().map(|name| (*name).into()).collect()))
    }

    #[track_caller]
    fn hides(rules: &Redaction, json: &'static str, expected: &str) {
        assert_eq!(rules.apply("t", &Bytes::from_static(json.as_bytes())), expected);
    }

    #[test]
    fn a_whole_rule_leaves_nothing() {
        for json in [r#"{"a": 1}"#, r#""text""#, "[1]", "not json", ""] {
            hides(&redaction(Redact::Whole), json, r#""[redacted]""#);
        }
    }

    #[test]
    fn fields_are_found_at_any_depth_and_spelling() {
        let rules = fields(&["/a/b", "/a/l/1", "/x~1y"]);
        hides(
            &rules,
            r#"{"a": {"b": {"deep": 1}, "\u0062": 2, "l": [0, "s", 2]}, "x/y": null, "n": 1e400}"#,
            r#"{"a": {"b": "[redacted]", "\u0062": "[redacted]", "l": [0, "[redacted]", 2]}, "x/y": "[redacted]", "n": 1e400}"#,
        );
        hides(&rules, r#"{"a": 1, "a": {"b": "s"}}"#, r#"{"a": 1, "a": {"b": "[redacted]"}}"#);
        hides(&fields(&["/a/b", "/a"]), r#"{"a": {"b": 1}}"#, r#"{"a": "[redacted]"}"#);
        hides(&fields(&[""]), r#"{"a": 1}"#, r#""[redacted]""#);
    }

    #[test]
    fn an_object_printed_into_a_string_is_looked_into() {
        hides(&fields(&["/p"]), r#""{\"p\": \"s\\\"\", \"q\": 1}""#, r#""{\"p\": \"[redacted]\", \"q\": 1}""#);
        hides(&allow(&["q"]), r#""{\"p\": \"s\", \"q\": 1}""#, r#""{\"q\": 1}""#);
    }

    #[test]
    fn what_a_rule_cannot_work_on_is_hidden_whole() {
        for json in [r#""the secret is x""#, r#"[{"type": "text", "text": "x"}]"#, "1", r#"{"a": "#, r#""{\"a\"""#] {
            hides(&fields(&["/p"]), json, r#""[redacted]""#);
            hides(&allow(&["p"]), json, r#""[redacted]""#);
        }
    }

    #[test]
    fn allow_keeps_members_as_they_were_written() {
        hides(&allow(&["name", "n"]), r#"{ "name" : "x", "secret": {"n": 1}, "n":1.0 }"#, r#"{"name" : "x","n":1.0}"#);
    }

    #[test]
    fn what_was_hidden_comes_back_into_a_replacement() {
        let original = Bytes::from_static(br#"{"user": "a", "password": "s3", "big": 1e400}"#);
        let rules = fields(&["/password"]);
        let seen = rules.apply("t", &original);
        assert_eq!(rules.restore("t", &original, seen), original);
        let changed = Bytes::from_static(br#"{"password": "new"}"#);
        assert_eq!(rules.restore("t", &original, changed.clone()), changed);

        let replaced = Bytes::from_static(br#"{"user": "b", "password": "mine"}"#);
        assert_eq!(
            allow(&["user"]).restore("t", &original, replaced),
            r#"{"user": "b","password": "mine","big": 1e400}"#
        );
        let both = allow(&["user", "password"]).rule("t", Redact::Fields(vec!["/password".into()]));
        let seen = both.apply("t", &original);
        assert_eq!(seen, r#"{"user": "a","password": "[redacted]"}"#);
        assert_eq!(both.restore("t", &original, seen), r#"{"user": "a","password": "s3","big": 1e400}"#);
    }
}
