use super::super::Received;
use super::*;
use crate::hooks::{Dialect, FailureKind};
use crate::limits::MAX_REASON_BYTES;

fn read(event: Event, body: &str) -> Result<Answer, Failure> {
    let received = Received { status: 200, content_type: None, encoded: false, body: body.as_bytes(), complete: true };
    Dialect::ClaudeCode.answer(event, received)
}

fn pre(rest: &str) -> String {
    format!(r#"{{"hookSpecificOutput":{{"hookEventName":"PreToolUse",{rest}}}}}"#)
}

fn deny(reason: &str) -> Result<Answer, Failure> {
    Ok(Answer::Deny { reason: Some(reason.into()) })
}

const PASS: Result<Answer, Failure> = Ok(Answer::Pass { context: None });

#[test]
fn no_opinion() {
    for event in Event::ALL {
        for body in ["", " \n", "{}", r#"{"continue":true}"#, r#"{"systemMessage":"hi","suppressOutput":true}"#] {
            assert_eq!(read(event, body), PASS, "{event:?} {body}");
        }
        assert_eq!(read(event, r#"{"futureField":{"x":[1]}}"#), PASS, "{event:?}");
    }
    let received = Received { status: 204, content_type: None, encoded: false, body: b"", complete: true };
    assert_eq!(Dialect::ClaudeCode.answer(Event::PreToolUse, received), PASS);
}

#[test]
fn decisions_about_a_tool() {
    let tool = |body: &str| read(Event::PreToolUse, body);
    assert_eq!(tool(&pre(r#""permissionDecision":"allow","permissionDecisionReason":"fine""#)), PASS);
    assert_eq!(tool(&pre(r#""permissionDecision":"deny","permissionDecisionReason":"no""#)), deny("no"));
    assert_eq!(tool(&pre(r#""permissionDecision":"deny""#)), Ok(Answer::Deny { reason: None }));
    assert_eq!(tool(r#"{"decision":"block","reason":"no"}"#), deny("no"));
    assert_eq!(tool(r#"{"decision":"approve","reason":"yes"}"#), PASS);
    assert_eq!(tool(r#"{"continue":false,"stopReason":"halt"}"#), deny("halt"));
    let input = r#""updatedInput":{ "n" : 1e400 }"#;
    let modified = |context: Option<&str>| {
        let replacement = Replacement::Object(Bytes::from_static(b"{ \"n\" : 1e400 }"));
        Ok(Answer::Modify { replacement, context: context.map(Into::into) })
    };
    assert_eq!(tool(&pre(input)), modified(None));
    assert_eq!(
        tool(&pre(&format!(r#""permissionDecision":"allow",{input},"additionalContext":"c""#))),
        modified(Some("c"))
    );
    assert_eq!(tool(&pre(&format!(r#""permissionDecision":"deny",{input}"#))), Ok(Answer::Deny { reason: None }));
    // A refusal wins over a permission, wherever both stand.
    let both = r#"{"decision":"block","reason":"no","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#;
    assert_eq!(tool(both), deny("no"));
}

#[test]
fn what_needs_a_person_is_refused_and_says_so() {
    for (wish, words) in [("ask", "approval"), ("defer", "somebody else")] {
        let body =
            pre(&format!(r#""permissionDecision":"{wish}","permissionDecisionReason":"risky","updatedInput":{{}}"#));
        let Ok(Answer::Deny { reason: Some(reason) }) = read(Event::PreToolUse, &body) else { panic!("{wish}") };
        assert!(reason.contains(words) && reason.contains("not available") && reason.contains("risky"), "{reason}");
        let long = "x".repeat(MAX_REASON_BYTES);
        let body = pre(&format!(r#""permissionDecision":"{wish}","permissionDecisionReason":"{long}""#));
        let Ok(Answer::Deny { reason: Some(reason) }) = read(Event::PreToolUse, &body) else { panic!("{wish}") };
        assert!(reason.len() <= MAX_REASON_BYTES);
    }
}

#[test]
fn prompts_delegations_and_sessions() {
    let specific = |event: Event| {
        format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{}","additionalContext":"c"}}}}"#, event.name())
    };
    for event in [Event::SessionStart, Event::UserPromptSubmit, Event::SubagentStart] {
        assert_eq!(read(event, &specific(event)), Ok(Answer::Pass { context: Some("c".into()) }), "{event:?}");
    }
    for event in [Event::UserPromptSubmit, Event::SubagentStart] {
        assert_eq!(read(event, r#"{"decision":"block","reason":"no"}"#), deny("no"));
        assert_eq!(read(event, r#"{"continue":false,"stopReason":"halt"}"#), deny("halt"));
    }
    assert_eq!(read(Event::PostToolUse, &specific(Event::PostToolUse)).unwrap_err().kind, FailureKind::Malformed);
}

#[test]
fn the_end_of_a_turn() {
    let stop = |body: &str| read(Event::Stop, body);
    let go_on = Ok(Answer::Continue { reason: Some("tests fail".into()) });
    assert_eq!(stop(r#"{"decision":"block","reason":"tests fail"}"#), go_on);
    assert_eq!(stop(r#"{"decision":"block"}"#), Ok(Answer::Continue { reason: None }));
    assert_eq!(stop(r#"{"decision":"approve"}"#), PASS);
    assert_eq!(stop(r#"{"continue":false,"decision":"block","reason":"r"}"#), PASS);
}

#[test]
fn observers_decide_nothing() {
    for event in Event::ALL.into_iter().filter(|event| !event.gates()) {
        for body in [r#"{"decision":"block","reason":"r"}"#, r#"{"continue":false}"#] {
            let failure = read(event, body).unwrap_err();
            assert_eq!((failure.kind, failure.deny), (FailureKind::Outcome, None), "{event:?} {body}");
        }
    }
    let output = r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":{}}}"#;
    assert_eq!(read(Event::PostToolUse, output).unwrap_err().kind, FailureKind::Outcome);
}

#[test]
fn what_only_looks_like_a_decision_is_a_failure() {
    for body in [
        "[]",
        "ready",
        r#"{"decision":null}"#,
        r#"{"decision":"blok"}"#,
        r#"{"decision":"ask"}"#,
        r#"{"continue":"false"}"#,
        r#"{"approve":false}"#,
        r#"{"outcome":"pass"}"#,
        r#"{"permission":"allow"}"#,
        r#"{"permissionDecision":"allow"}"#,
        r#"{"updatedInput":{}}"#,
        r#"{"updated_input":{}}"#,
        r#"{"hookSpecificOutput":null}"#,
        r#"{"hookSpecificOutput":{"permissionDecision":"allow"}}"#,
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"allow"}}"#,
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","decision":{"behavior":"allow"}}}"#,
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"Allow"}}"#,
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":"ls"}}"#,
        r#"{"decision":"approve","decision":"approve"}"#,
    ] {
        let failure = read(Event::PreToolUse, body).expect_err(body);
        assert_eq!((failure.kind, failure.deny), (FailureKind::Malformed, None), "{body}");
    }
    for body in [pre(r#""permissionDecision":"allow""#), pre(r#""updatedInput":{}"#)] {
        let body = body.replace("PreToolUse", "UserPromptSubmit");
        assert_eq!(read(Event::UserPromptSubmit, &body).unwrap_err().kind, FailureKind::Outcome, "{body}");
    }
}

#[test]
fn a_readable_refusal_survives_its_own_failure() {
    for body in [
        r#"{"permissionDecision":"deny","reason":"no"}"#,
        r#"{"hookSpecificOutput":{"permissionDecision":"block","permissionDecisionReason":"no"}}"#,
        r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no"}}"#,
        "ready\n{\"decision\":\"block\",\"reason\":\"no\"}",
        r#"{"decision":"block","decision":"approve","reason":"no"}"#,
        r#"{"continue":false,"stopReason":"no","verdict":1}"#,
        r#"{"decision":"block","reason":"no","x":"#,
    ] {
        let failure = read(Event::PreToolUse, body).expect_err(body);
        assert_eq!(failure.kind, FailureKind::Malformed, "{body}");
        assert_eq!(failure.deny, Some(Salvaged { reason: Some("no".into()) }), "{body}");
    }
    let received =
        Received { status: 403, content_type: None, encoded: false, body: br#"{"decision":"block"}"#, complete: true };
    let failure = Dialect::ClaudeCode.answer(Event::PreToolUse, received).unwrap_err();
    assert_eq!((failure.kind, failure.deny), (FailureKind::Status, Some(Salvaged { reason: None })));
    let long = format!(r#"{{"decision":"block","reason":"{}"}}"#, "é".repeat(MAX_REASON_BYTES));
    let failure = read(Event::PreToolUse, &long).unwrap_err();
    assert_eq!(failure.kind, FailureKind::TooLarge);
    assert_eq!(failure.deny.unwrap().reason.unwrap().len(), MAX_REASON_BYTES);
    assert_eq!(read(Event::Stop, r#"{"decision":"block","verdict":1}"#).unwrap_err().deny, None);
}
