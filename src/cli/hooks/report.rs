//! What `hooks test` shows.

use std::fmt::Write;

use serde::de::IgnoredAny;

use super::recorder::Exchange;
use crate::audit::AuditRecord;
use crate::dispatch::{AddedContext, Decision};
use crate::hooks::{Handler, Replacement, Target};
use crate::id::Hasher;

/// One handler: the request, the answer, what was made of it.
pub(super) fn run(record: &AuditRecord, handler: Option<&Handler>, exchanges: &[Exchange]) -> String {
    let id = record.handler_id.as_deref().unwrap_or("nobody");
    let mut text = format!("{} → {id}\n", record.event.name());
    // The key of a request is made of the event and the handler.
    let key = Hasher::new().with(record.event_id.as_bytes()).with(id.as_bytes()).finish().to_uuid();
    match exchanges.iter().find(|exchange| exchange.key == key) {
        Some(exchange) => {
            let Some(Target::Http { url }) = handler.map(|handler| &handler.target) else { return text };
            let _ = writeln!(text, "  request  POST {}", super::list::shown(url));
            text.push_str(&body(&exchange.request));
            match &exchange.answer {
                Some((status, answer)) => {
                    let _ = writeln!(text, "  answer   {status}, after {} ms", record.duration_ms);
                    text.push_str(&body(answer));
                }
                None => {
                    let _ = writeln!(text, "  answer   none, after {} ms", record.duration_ms);
                }
            }
        }
        None => text.push_str("  nothing was sent\n"),
    }
    let _ = write!(text, "  outcome  {}", record.outcome.name());
    if let Some(failure) = record.failure {
        let _ = write!(text, " ({})", failure.name());
    }
    if let Some(reason) = &record.reason {
        let _ = write!(text, ": {reason}");
    }
    text.push_str("\n\n");
    text
}

/// What the handlers came to together.
pub(super) fn verdict(decision: &Decision, context: &[AddedContext]) -> String {
    let mut text = match decision {
        Decision::Allow => "Decision: allow\n".to_owned(),
        Decision::Modify(Replacement::Text(text)) => format!("Decision: modify, to\n{}", indented(text)),
        Decision::Modify(Replacement::Object(object)) => format!("Decision: modify, to\n{}", body(object)),
        Decision::Deny { reason, handler } => format!("Decision: deny, by {handler}: {reason}\n"),
        Decision::Continue { reason, handler } => format!("Decision: continue, by {handler}: {reason}\n"),
    };
    for added in context {
        let _ = write!(text, "Context, by {}:\n{}", added.handler, indented(&added.text));
    }
    text
}

/// JSON in lines, anything else as it is.
fn body(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match serde_json::from_str::<IgnoredAny>(&text) {
        Ok(_) => indented(&lines(&text)),
        Err(_) => indented(&text),
    }
}

/// Valid JSON with a line for each member. Numbers and strings stay as they were written: a policy may see the difference.
fn lines(json: &str) -> String {
    let mut text = String::new();
    let mut depth = 0usize;
    let (mut quoted, mut escaped) = (false, false);
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        if quoted {
            text.push(letter);
            quoted = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
            continue;
        }
        match letter {
            '{' | '[' => {
                text.push(letter);
                while letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                match letters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(close) => text.push(close),
                    None => {
                        depth += 1;
                        new_line(&mut text, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
                text.push(letter);
            }
            ',' => {
                text.push(letter);
                new_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ if letter.is_ascii_whitespace() => {}
            _ => {
                quoted = letter == '"';
                text.push(letter);
            }
        }
    }
    text
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn json_gets_lines_and_keeps_its_text() {
        let json = r#"{"a":[1.50,{ },[ ]],"b":"{\"x\": [1, 2]}\\","c":null}"#;
        let expected =
            "{\n  \"a\": [\n    1.50,\n    {},\n    []\n  ],\n  \"b\": \"{\\\"x\\\": [1, 2]}\\\\\",\n  \"c\": null\n}";
        assert_eq!(lines(json), expected);
        assert_eq!(lines(&lines(json)), expected);
    }
}
