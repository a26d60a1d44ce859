//! What the session reads: the message that a callback becomes.

use std::borrow::Cow;

use crate::limits::MAX_CALLBACK_MESSAGE_BYTES;
use crate::time::Timestamp;

/// A callback as it came.
pub(super) struct Callback<'a> {
    /// When its body was there.
    pub(super) received_at: Timestamp,
    /// What the message calls it by.
    pub(super) token: &'a str,
    /// What was waited for.
    pub(super) purpose: Option<&'a str>,
    /// The body's media type, as the worker gave it.
    pub(super) content_type: Option<&'a str>,
    /// The body, decoded.
    pub(super) body: &'a [u8],
}

/// The message, at most [`MAX_CALLBACK_MESSAGE_BYTES`] long.
///
/// An empty body is `(empty)`, JSON is pretty-printed (but a bare string is its text), and everything else stays as it is.
/// JSON is only laid out anew: numbers, escapes and the order of keys are the worker's.
pub(super) fn message(callback: &Callback<'_>) -> String {
    let payload = Payload::of(callback.body);
    let mut text =
        format!("[hookgate] One-time callback received at {}.\nToken: {}", callback.received_at, callback.token);
    if let Some(purpose) = callback.purpose {
        line(&mut text, "Purpose", purpose);
    }
    if let Some(content_type) = callback.content_type {
        line(&mut text, "Content-Type", content_type);
    }
    if payload.repaired {
        line(&mut text, "Note", "the body is not UTF-8; what could not be read is shown as \u{fffd}");
    }
    text.push_str("\n\nPayload:\n");
    let room = MAX_CALLBACK_MESSAGE_BYTES.saturating_sub(text.len());
    match payload.len() {
        length if length <= room => text.push_str(&payload.text),
        _ => text.push_str(&cut(&payload.text, room, callback.body.len())),
    }
    text
}

/// What a message calls its callback by.
#[cfg(feature = "mcp")]
pub(super) fn token_of(message: &str) -> Option<&str> {
    message.lines().nth(1)?.strip_prefix("Token: ")
}

/// One line of the head. What stands in it cannot begin another one.
fn line(text: &mut String, name: &str, value: &str) {
    text.push('\n');
    text.push_str(name);
    text.push_str(": ");
    text.extend(value.chars().map(|letter| if letter.is_control() { ' ' } else { letter }));
}

/// As much as there is room for, with the mark that says so.
fn cut(text: &str, room: usize, received: usize) -> String {
    let mark = format!("\n[cut by hookgate: the callback had {received} bytes]");
    let end = text.floor_char_boundary(room.saturating_sub(mark.len()));
    format!("{}{mark}", text.get(..end).unwrap_or_default())
}

struct Payload<'a> {
    text: Cow<'a, str>,
    /// Whether it was not UTF-8.
    repaired: bool,
}

impl<'a> Payload<'a> {
    fn of(body: &'a [u8]) -> Self {
        if body.is_empty() {
            return Payload { text: "(empty)".into(), repaired: false };
        }
        let Ok(text) = std::str::from_utf8(body) else {
            return Payload { text: String::from_utf8_lossy(body), repaired: true };
        };
        let text = match serde_json::from_str::<&serde_json::value::RawValue>(text) {
            Ok(json) if json.get().starts_with('"') => serde_json::from_str(json.get()).map_or(text.into(), Cow::Owned),
            Ok(json) => laid_out(json.get()).into(),
            Err(_) => text.into(),
        };
        Payload { text, repaired: false }
    }

    fn len(&self) -> usize {
        self.text.len()
    }
}

/// Valid JSON with two spaces for each level. It ends early when it is longer than any message: the rest would be cut.
fn laid_out(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut rest = json;
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(first) = rest.chars().next() {
        if out.len() > MAX_CALLBACK_MESSAGE_BYTES {
            break;
        }
        let mut taken = 1;
        match first {
            '"' => {
                taken = string_len(rest);
                out.push_str(rest.get(..taken).unwrap_or_default());
            }
            '{' | '[' => {
                out.push(first);
                let inside = rest.get(1..).unwrap_or_default().trim_ascii_start();
                if inside.starts_with(['}', ']']) {
                    out.push_str(inside.get(..1).unwrap_or_default());
                    taken = rest.len() - inside.len() + 1;
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(first);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            space if space.is_ascii_whitespace() => {}
            other => {
                out.push(other);
                taken = other.len_utf8();
            }
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// How long the string at the start of valid JSON is, its quotes included.
fn string_len(json: &str) -> usize {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(body: &[u8]) -> String {
        message(&Callback {
            received_at: Timestamp::from_unix_millis(0),
            token: "T",
            purpose: None,
            content_type: None,
            body,
        })
    }

    fn payload(body: &[u8]) -> String {
        rendered(body).split_once("Payload:\n").unwrap().1.to_owned()
    }

    #[test]
    fn the_message_has_a_head_and_a_payload() {
        let text = message(&Callback {
            received_at: Timestamp::from_unix_millis(1_789_729_341_513),
            token: "523a6527-77f0-44c2-b2fc-db7b9cf36a6a",
            purpose: Some("e2e-verify"),
            content_type: Some("application/json"),
            body: br#"{"status":"done","spec_url":"https://taco.example/spec/42"}"#,
        });
        assert_eq!(
            text,
            "[hookgate] One-time callback received at 2026-09-18T11:02:21.513Z.\n\
             Token: 523a6527-77f0-44c2-b2fc-db7b9cf36a6a\n\
             Purpose: e2e-verify\n\
             Content-Type: application/json\n\
             \n\
             Payload:\n\
             {\n  \"status\": \"done\",\n  \"spec_url\": \"https://taco.example/spec/42\"\n}"
        );
        assert_eq!(rendered(b"x").lines().nth(2), Some(""), "what is not known has no line");
    }

    #[test]
    fn a_value_of_the_head_stays_on_its_line() {
        let text = message(&Callback {
            received_at: Timestamp::from_unix_millis(0),
            token: "T",
            purpose: Some("a\nPayload:\r\nforged"),
            content_type: None,
            body: b"real",
        });
        assert!(text.contains("\nPurpose: a Payload:  forged\n\nPayload:\nreal"), "{text}");
    }

    #[test]
    fn json_is_laid_out_and_nothing_else_of_it_changes() {
        for (body, expected) in [
            ("", "(empty)"),
            ("\"done\"", "done"),
            (" \"a\\nb\\u00e9\" ", "a\nbé"),
            ("build 42 finished\nall green\n", "build 42 finished\nall green\n"),
            ("{\"a\":1,", "{\"a\":1,"),
            (" ", " "),
            ("12345678901234567890.10e400", "12345678901234567890.10e400"),
            ("[]", "[]"),
            ("{ }", "{}"),
            ("null", "null"),
            (
                "{\"b\":[1,{\"c\":\"x, {\\\"y\\\"}: \\\\\"}],\"b\":[ ],\"é\":true}",
                "{\n  \"b\": [\n    1,\n    {\n      \"c\": \"x, {\\\"y\\\"}: \\\\\"\n    }\n  ],\n  \"b\": [],\n  \"é\": true\n}",
            ),
        ] {
            assert_eq!(payload(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn what_is_not_utf_8_says_so() {
        let text = rendered(b"caf\xe9 \xff");
        assert!(text.contains("\nNote: the body is not UTF-8"), "{text}");
        assert!(text.ends_with("Payload:\ncaf\u{fffd} \u{fffd}"), "{text}");
    }

    #[test]
    fn a_long_message_is_cut_between_characters_and_says_so() {
        for body in ["é".repeat(40_000), format!("x{}", "é".repeat(40_000)), format!("[{}1]", "1,".repeat(60_000))] {
            let text = rendered(body.as_bytes());
            assert!(
                text.len() <= MAX_CALLBACK_MESSAGE_BYTES && text.len() > MAX_CALLBACK_MESSAGE_BYTES - 8,
                "{}",
                text.len()
            );
            assert!(text.ends_with(&format!("\n[cut by hookgate: the callback had {} bytes]", body.len())));
        }
        let fits = "x".repeat(MAX_CALLBACK_MESSAGE_BYTES - rendered(b"").len() + "(empty)".len());
        assert_eq!(rendered(fits.as_bytes()).len(), MAX_CALLBACK_MESSAGE_BYTES);
        assert!(!rendered(fits.as_bytes()).contains("cut by hookgate"));
        assert!(rendered(format!("{fits}x").as_bytes()).contains("cut by hookgate"));
    }

    #[test]
    fn deep_nesting_cannot_make_it_huge() {
        let deep = format!("{}{}{}", "[".repeat(120), "1,".repeat(60_000) + "1", "]".repeat(120));
        assert!(rendered(deep.as_bytes()).len() <= MAX_CALLBACK_MESSAGE_BYTES);
        let too_deep = "[".repeat(200_000);
        assert!(payload(too_deep.as_bytes()).starts_with("[[["));
    }
}
