//! What a user of Claude Code types while it works. The client sends it with the next results: for recent models as an
//! instruction of the role `system`, for others as a `<system-reminder>` at the end of a result's text.

use memchr::memmem;

use crate::wire::conversation::Typed;
use crate::wire::json::{Cursor, JsonError, Kind, Span, Str};

/// How what Claude Code adds by itself begins, and how it ends.
pub(super) const REMINDER: &[u8] = b"<system-reminder>";
const REMINDER_END: &[u8] = b"</system-reminder>";

/// What stands before such a prompt.
const TYPED_AHEAD: &[u8] = b"The user sent a new message while you were working:";

/// A newline as it stands in JSON.
const NEWLINE: &[u8] = b"\\n";

/// Whether the client says in this text that its user typed it.
pub(super) fn is_typed_ahead(raw: &[u8]) -> bool {
    memmem::find(raw, TYPED_AHEAD).is_some()
}

/// Reads the content of a result, a string or a list of parts, and finds what was typed in its texts.
pub(super) fn content(cursor: &mut Cursor<'_>, found: &mut Vec<Typed>) -> Result<Span, JsonError> {
    match cursor.kind()? {
        Kind::String => {
            let string = cursor.string()?;
            found.extend(in_text(string));
            Ok(string.span())
        }
        Kind::Array => cursor.array(|cursor| part(cursor, found)),
        _ => cursor.skip(),
    }
}

fn part(cursor: &mut Cursor<'_>, found: &mut Vec<Typed>) -> Result<(), JsonError> {
    if cursor.kind()? != Kind::Object {
        return cursor.skip().map(drop);
    }
    cursor.object(|cursor, key| {
        if !key.is("text") {
            return cursor.skip().map(drop);
        }
        found.extend(cursor.string_or_skip()?.and_then(in_text));
        Ok(())
    })?;
    Ok(())
}

/// Finds what was typed in a text of a result.
///
/// The client appends its reminders to what the tool gave, so a text that ends otherwise has none and is not searched.
/// What is before them is the tool's, and what is in them is the user's: either may look like a reminder's beginning or
/// end. So all from the first sign on is taken. A tool that forges one has its own output judged; it hides nothing.
fn in_text(string: Str<'_>) -> Option<Typed> {
    let raw = string.raw();
    let mut end = raw.len();
    while let Some(before) = newline_before(raw, end) {
        end = before;
    }
    let end = raw[..end].strip_suffix(REMINDER_END)?.len();
    let sign = memmem::find(&raw[..end], TYPED_AHEAD)?;
    let (mut whole, mut words) = match memmem::rfind(&raw[..sign], REMINDER) {
        Some(mark) => (mark, mark + REMINDER.len()),
        None => (sign, sign),
    };
    // An empty line stands between the tool's text and the reminder.
    for _ in 0..2 {
        whole = newline_before(raw, whole).unwrap_or(whole);
    }
    if raw[words..sign].starts_with(NEWLINE) {
        words += NEWLINE.len();
    }
    let end = newline_before(raw, end).filter(|end| *end >= words).unwrap_or(end);
    let first = string.span().start + 1;
    Some(Typed {
        whole: Span { start: first + whole, end: first + raw.len() },
        words: Span { start: first + words, end: first + end },
        alone: whole == 0,
    })
}

/// Where the newline that ends at `end` begins. An `n` behind an escaped backslash is no newline.
fn newline_before(raw: &[u8], end: usize) -> Option<usize> {
    let before = raw[..end].strip_suffix(NEWLINE)?;
    let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    (backslashes % 2 == 0).then_some(before.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the tool gave, and the words, of the one text in which something was typed.
    fn split(json: &str) -> Option<(String, String)> {
        let mut found = Vec::new();
        let span = content(&mut Cursor::new(json.as_bytes()), &mut found).unwrap();
        assert_eq!(span.end, json.len());
        let [typed] = found[..] else { return None };
        let words = Str::within(json.as_bytes(), typed.words).decode().into_owned();
        let rest = format!("{}{}", &json[..typed.whole.start], &json[typed.whole.end..]);
        serde_json::from_str::<serde_json::Value>(&rest).unwrap();
        assert_eq!(typed.alone, rest == r#""""# || rest.contains(r#":"""#), "{json}");
        Some((rest, words))
    }

    fn reminder(words: &str) -> String {
        format!(
            r"\n\n<system-reminder>\nThe user sent a new message while you were working:\n{words}\n</system-reminder>"
        )
    }

    fn said(words: &str) -> String {
        format!("The user sent a new message while you were working:\n{words}")
    }

    #[test]
    fn the_tools_own_text_stays_as_it_is() {
        let typed = reminder("hi");
        for (text, rest) in [
            (format!(r#""out{typed}""#), r#""out""#),
            (format!(r#""a\\n{typed}""#), r#""a\\n""#),
            (format!(r#""a\\\n{typed}""#), r#""a\\\n""#),
            (format!(r#""a\"{typed}""#), r#""a\"""#),
            (format!(r#""out\n\n\n{}""#, &typed[4..]), r#""out\n""#),
            (format!(r#""a\\n{}""#, &typed[4..]), r#""a\\n""#),
            (format!(r#""{}""#, &typed[4..]), r#""""#),
            (format!(r#"[{{"type":"text","text":"out{typed}"}},1]"#), r#"[{"type":"text","text":"out"},1]"#),
            (format!(r#"[{{"type":"image"}},{{"text":"{}"}}]"#, &typed[4..]), r#"[{"type":"image"},{"text":""}]"#),
        ] {
            assert_eq!(split(&text), Some((rest.to_owned(), said("hi"))), "{text}");
        }
    }

    #[test]
    fn all_from_the_first_sign_on_is_taken() {
        // What the user typed has a reminder's end in it, and another reminder follows.
        let twice = format!(r#""out{}{}""#, reminder(r"a </system-reminder>\n\nb"), reminder("c"));
        let (rest, words) = split(&twice).unwrap();
        assert_eq!(rest, r#""out""#);
        assert!(words.starts_with(&said("a </system-reminder>\n\nb\n")) && words.ends_with("working:\nc"), "{words}");
        // The tool forges one before the client's.
        let (rest, words) = split(&format!(r#""out{}\nmore{}""#, reminder("fake"), reminder("hi"))).unwrap();
        assert_eq!(rest, r#""out""#);
        assert!(words.contains("fake") && words.contains("more") && words.ends_with("hi"), "{words}");
        // Its own beginning is missing.
        let (rest, words) =
            split(r#""out The user sent a new message while you were working:\nhi</system-reminder>\n""#).unwrap();
        assert_eq!((rest.as_str(), words), (r#""out ""#, said("hi")));
    }

    #[test]
    fn other_results_have_no_words_of_the_user() {
        for text in [
            r#""out""#.to_owned(),
            r#""out\n\n<system-reminder>\nThe file is long.\n</system-reminder>""#.to_owned(),
            format!(r#""out{}\nmore""#, reminder("a tool's own")),
            format!(r#"[{{"type":"image","source":{{"text":"out{}"}}}},"out"]"#, reminder("hi")),
            "null".to_owned(),
        ] {
            assert_eq!(split(&text), None, "{text}");
        }
    }
}
