use super::super::Received;
use super::*;
use crate::hooks::{Dialect, FailureKind};
use crate::limits::{MAX_CONTEXT_BYTES, MAX_HANDLER_ANSWER_BYTES};

fn received(body: &[u8]) -> Received<'_> {
    Received { status: 200, content_type: Some(b"application/json"), encoded: false, body, complete: true }
}

fn read(event: Event, body: &str) -> Result<Answer, Failure> {
    Dialect::Native.answer(event, received(body.as_bytes()))
}

fn kind(event: Event, body: &str) -> FailureKind {
    read(event, body).expect_err(body).kind
}

fn answer_of(rest: &str) -> String {
    format!(r#"{{"schemaVersion":1,{rest}}}"#)
}

#[test]
fn each_event_takes_its_outcomes_and_no_other() {
    for event in Event::ALL {
        for outcome in OutcomeKind::ALL {
            let extra = match (outcome, event) {
                (OutcomeKind::Modify, Event::PreToolUse) => r#","replacement":{"a":1}"#,
                (OutcomeKind::Modify, _) => r#","replacement":"p""#,
                _ => "",
            };
            let body = answer_of(&format!(r#""outcome":"{}"{extra}"#, outcome.name()));
            match event.allows(outcome) {
                true => {
                    let answer = read(event, &body).unwrap();
                    let expected = match outcome {
                        OutcomeKind::Pass => Answer::Pass { context: None },
                        OutcomeKind::Deny => Answer::Deny { reason: None },
                        OutcomeKind::Continue => Answer::Continue { reason: None },
                        OutcomeKind::Modify if event == Event::PreToolUse => Answer::Modify {
                            replacement: Replacement::Object(Bytes::from_static(br#"{"a":1}"#)),
                            context: None,
                        },
                        OutcomeKind::Modify => {
                            Answer::Modify { replacement: Replacement::Text("p".into()), context: None }
                        }
                    };
                    assert_eq!(answer, expected, "{event:?}");
                }
                false => assert_eq!(kind(event, &body), FailureKind::Outcome, "{event:?} {body}"),
            }
        }
    }
}

#[test]
fn context_is_for_the_events_that_accept_it() {
    let body = answer_of(r#""outcome":"pass","additionalContext":"now""#);
    for event in Event::ALL {
        match event.accepts_context() {
            true => assert_eq!(read(event, &body), Ok(Answer::Pass { context: Some("now".into()) })),
            false => assert_eq!(kind(event, &body), FailureKind::Malformed, "{event:?}"),
        }
    }
}

#[test]
fn a_field_that_does_not_fit_is_a_failure() {
    for rest in [
        r#""outcome":"pass","reason":"r""#,
        r#""outcome":"pass","replacement":{}"#,
        r#""outcome":"modify""#,
        r#""outcome":"modify","replacement":{},"reason":"r""#,
        r#""outcome":"modify","replacement":"text""#,
        r#""outcome":"modify","replacement":[]"#,
        r#""outcome":"modify","replacement":null"#,
        r#""outcome":"modify","replacement":{"a":{"b":1,"b":2}}"#,
        r#""outcome":"pass","additionalContext":null"#,
        r#""outcome":"pass","additionalContext":["c"]"#,
        r#""outcome":"pass","extra":1"#,
        r#""outcome":"pass","outcome":"pass""#,
        r#""outcome":null"#,
        r#""outcome":["pass"]"#,
        r#""note":"no outcome""#,
    ] {
        assert_eq!(kind(Event::PreToolUse, &answer_of(rest)), FailureKind::Malformed, "{rest}");
    }
    let object = answer_of(r#""outcome":"modify","replacement":{}"#);
    assert_eq!(kind(Event::UserPromptSubmit, &object), FailureKind::Malformed);
    assert_eq!(kind(Event::SubagentStart, &object), FailureKind::Malformed);
    assert_eq!(kind(Event::Stop, &answer_of(r#""outcome":"continue","reason":7"#)), FailureKind::Malformed);
}

#[test]
fn what_is_not_the_contracts_json_is_a_failure() {
    for body in [
        "",
        " ",
        "[]",
        "null",
        "ready\n{\"schemaVersion\":1,\"outcome\":\"pass\"}",
        "{\"schemaVersion\":1,\"outcome\":\"pass\"} trailing",
        "{\"schemaVersion\":1,\"outcome\":\"pass\"",
        "\u{feff}{\"schemaVersion\":1,\"outcome\":\"pass\"}",
        r#"{"outcome":"pass"}"#,
        r#"{"schemaVersion":2,"outcome":"pass"}"#,
        r#"{"schemaVersion":1.0,"outcome":"pass"}"#,
        r#"{"schemaVersion":"1","outcome":"pass"}"#,
        r#"{"schemaVersion":1,"schemaVersion":1,"outcome":"pass"}"#,
    ] {
        assert_eq!(kind(Event::PreToolUse, body), FailureKind::Malformed, "{body:?}");
    }
    let invalid = b"{\"schemaVersion\":1,\"outcome\":\"pass\",\"additionalContext\":\"\xff\"}";
    let failure = Dialect::Native.answer(Event::PreToolUse, received(invalid)).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Malformed);
    assert_eq!(kind(Event::PreToolUse, &answer_of(r#""outcome":"blok""#)), FailureKind::Outcome);
}

#[test]
fn the_head_is_checked() {
    let pass = answer_of(r#""outcome":"pass""#);
    let with = |change: fn(&mut Received<'_>)| {
        let mut received = received(pass.as_bytes());
        change(&mut received);
        Dialect::Native.answer(Event::PreToolUse, received).map_err(|failure| failure.kind)
    };
    for status in [201, 204, 301, 307, 400, 403, 500, 503] {
        let mut received = received(pass.as_bytes());
        received.status = status;
        let failure = Dialect::Native.answer(Event::PreToolUse, received).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Status);
        assert!(failure.cause.contains(&status.to_string()), "{}", failure.cause);
        assert_eq!(failure.cause.contains("redirects"), (300..400).contains(&status));
    }
    let passes = Ok(Answer::Pass { context: None });
    assert_eq!(with(|received| received.content_type = Some(b"Application/JSON; charset=\"UTF-8\"")), passes);
    assert_eq!(with(|received| received.content_type = Some(b"application/json;x=y")), passes);
    assert_eq!(with(|received| received.content_type = None), passes);
    for other in ["text/html", "text/json", "application/problem+json", "application/json; charset=latin1", ""] {
        let mut received = received(pass.as_bytes());
        received.content_type = Some(other.as_bytes());
        let failure = Dialect::Native.answer(Event::PreToolUse, received).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Malformed, "{other}");
    }
    assert_eq!(with(|received| received.content_type = Some(b"\xff")), Err(FailureKind::Malformed));
    assert_eq!(with(|received| received.encoded = true), Err(FailureKind::Malformed));
    assert_eq!(with(|received| received.complete = false), Err(FailureKind::TooLarge));
}

#[test]
fn caps_count_bytes_of_utf_8() {
    // "é" is two bytes, and six as an escape: what counts is the text.
    let reason = |count: usize| answer_of(&format!(r#""outcome":"deny","reason":"{}""#, "\\u00e9".repeat(count)));
    let fits = MAX_REASON_BYTES / 2;
    assert_eq!(read(Event::PreToolUse, &reason(fits)), Ok(Answer::Deny { reason: Some("é".repeat(fits)) }));
    assert_eq!(kind(Event::PreToolUse, &reason(fits + 1)), FailureKind::TooLarge);
    let context = |count: usize| answer_of(&format!(r#""outcome":"pass","additionalContext":"{}""#, "é".repeat(count)));
    let fits = MAX_CONTEXT_BYTES / 2;
    assert!(read(Event::PreToolUse, &context(fits)).is_ok());
    assert_eq!(kind(Event::PreToolUse, &context(fits + 1)), FailureKind::TooLarge);
    let long = answer_of(&format!(r#""outcome":"continue","reason":"{}""#, "x".repeat(MAX_REASON_BYTES + 1)));
    assert_eq!(kind(Event::Stop, &long), FailureKind::TooLarge);
}

#[test]
fn a_replacement_is_kept_as_it_was_written() {
    let body = r#"{ "replacement" : { "n" : 1e400, "big":12345678901234567890.0 , "s":"\u0041" }, "outcome":"modify","schemaVersion":1 }"#;
    let Ok(Answer::Modify { replacement: Replacement::Object(object), .. }) = read(Event::PreToolUse, body) else {
        panic!("not a replacement")
    };
    assert_eq!(object, r#"{ "n" : 1e400, "big":12345678901234567890.0 , "s":"\u0041" }"#);
}

#[test]
fn a_readable_refusal_survives_its_own_failure() {
    let long = "é".repeat(MAX_REASON_BYTES);
    let salvaged = |body: &[u8], complete: bool, status: u16| {
        let received = Received { status, complete, ..received(body) };
        let failure = Dialect::Native.answer(Event::PreToolUse, received).unwrap_err();
        failure.deny.map(|deny| deny.reason)
    };
    let deny = r#"{"schemaVersion":1,"outcome":"deny","reason":"no"}"#;
    let no = Some(Some("no".to_owned()));
    for body in [
        r#"{"schemaVersion":1,"outcome":"deny","reason":"no","extra":true}"#.to_owned(),
        r#"{"outcome":"deny","reason":"no"}"#.to_owned(),
        r#"{"schemaVersion":1,"outcome":"pass","outcome":"deny","reason":"no"}"#.to_owned(),
        r#"{"schemaVersion":1,"outc\u006fme":"den\u0079","reason":"no","replacement":{}}"#.to_owned(),
        format!("ready\n{deny}"),
        format!("{deny} trailing"),
        r#"{"reason":"no","outcome":"deny","x":"#.to_owned(),
    ] {
        assert_eq!(salvaged(body.as_bytes(), true, 200), no, "{body}");
    }
    assert_eq!(salvaged(deny.as_bytes(), true, 403), no);
    assert_eq!(salvaged(deny.as_bytes(), false, 200), no);
    assert_eq!(salvaged(b"{\"outcome\":\"deny\",\"reason\":\"no\",\"x\":\"\xff\"}", true, 200), no);
    assert_eq!(salvaged(br#"{"outcome":"deny","reason":7}"#, true, 200), Some(None));

    // Over its cap, and cut on a character boundary.
    let body = answer_of(&format!(r#""outcome":"deny","reason":"x{long}""#));
    let cut = salvaged(body.as_bytes(), true, 200).unwrap().unwrap();
    assert_eq!((cut.len(), cut.starts_with("xéé")), (MAX_REASON_BYTES - 1, true));

    // So long that the reading stopped within the reason, even within an escape.
    for unit in ["é", "\\u00e9", "\\ud83d\\ude00", "\\\""] {
        let body = answer_of(&format!(r#""outcome":"deny","reason":"{}"#, unit.repeat(MAX_HANDLER_ANSWER_BYTES)));
        for end in MAX_HANDLER_ANSWER_BYTES - 13..MAX_HANDLER_ANSWER_BYTES {
            let cut = salvaged(&body.as_bytes()[..end], false, 200).unwrap().unwrap();
            assert!(cut.len() <= MAX_REASON_BYTES && cut.len() > MAX_REASON_BYTES - 4, "{unit} {}", cut.len());
        }
    }
    for end in 0..deny.len() {
        let found = salvaged(&deny.as_bytes()[..end], true, 200);
        let whole = end >= deny.find(r#""deny""#).unwrap() + 6;
        assert_eq!(found.is_some(), whole, "{end}");
    }

    for body in [
        r#"{"schemaVersion":1,"outcome":"pass","x":1}"#,
        r#"{"x":{"outcome":"deny"}}"#,
        r#"{"outcome":["deny"]}"#,
        r#"{"outcome":"denied"}"#,
        "deny",
        "",
    ] {
        assert_eq!(salvaged(body.as_bytes(), true, 200), None, "{body}");
    }
}

#[test]
fn an_event_without_deny_has_none_to_keep() {
    for event in Event::ALL.into_iter().filter(|event| !event.allows(OutcomeKind::Deny)) {
        let failure = read(event, &answer_of(r#""outcome":"deny","reason":"no""#)).unwrap_err();
        assert_eq!((failure.kind, failure.deny), (FailureKind::Outcome, None), "{event:?}");
    }
}

#[test]
fn causes_quote_nothing_of_the_answer_but_its_outcome() {
    for body in [r#"{"s3cret":1,"schemaVersion":1}"#, r#"{"schemaVersion":"s3cret"}"#, r#"["s3cret"]"#, "s3cret"] {
        let failure = read(Event::PreToolUse, body).unwrap_err();
        assert!(!failure.cause.contains("s3cret"), "{}", failure.cause);
    }
    let failure = read(Event::PreToolUse, &answer_of(&format!(r#""outcome":"{}""#, "x".repeat(1000)))).unwrap_err();
    assert!(failure.cause.len() < 200, "{}", failure.cause);
}

proptest::proptest! {
    #[test]
    fn nothing_that_comes_back_panics(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        json in "[{}\\[\\]\":,\\\\a-f0-9u ]{0,80}",
        status in 0u16..700,
        complete: bool,
    ) {
        for dialect in [Dialect::Native, Dialect::ClaudeCode] {
            for event in Event::ALL {
                for body in [&bytes[..], json.as_bytes(), format!("{{\"outcome\":\"deny\",\"reason\":\"{json}").as_bytes()] {
                    let _ = dialect.answer(event, Received { status, complete, ..received(body) });
                }
            }
        }
    }
}
