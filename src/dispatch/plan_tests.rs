use super::*;
use crate::hooks::{HookSet, Redact, Salvaged};
use bytes::Bytes;

fn handlers(event: Event, modes: &[&str]) -> Vec<Arc<Handler>> {
    let handler = |(index, mode): (usize, &&str)| {
        let mode = if mode.is_empty() { String::new() } else { format!(r#","failureMode":"{mode}""#) };
        format!(r#"{{"id":"h{index}","type":"http","url":"https://h.example/"{mode}}}"#)
    };
    let list: Vec<_> = modes.iter().enumerate().map(handler).collect();
    let document = format!(r#"{{"version":1,"hooks":{{"{}":[{}]}}}}"#, event.name(), list.join(","));
    let set = HookSet::builder().allowed_hosts(["h.example"]).document("d", document.as_bytes()).build().unwrap();
    set.handlers(event).to_vec()
}

fn input(json: &str) -> Detail {
    Detail::PreToolUse { tool_name: "t".into(), input: Bytes::from(json.to_owned()), server: None, declared: false }
}

fn detail(event: Event) -> Detail {
    match event {
        Event::PreToolUse => input("{}"),
        Event::Stop => {
            Detail::Stop { response: "r".into(), stop_reason: "end_turn".into(), attempt: 1, max_attempts: 4 }
        }
        Event::SubagentStart => Detail::SubagentStart { subagent: "a".into(), prompt: "p".into() },
        _ => Detail::UserPromptSubmit {
            prompt: "p".into(),
            attachments: vec![],
            client_context: vec![],
            replayed: false,
            side: false,
            source: None,
        },
    }
}

fn pass(context: &str) -> Result<Answer, Failure> {
    Ok(Answer::Pass { context: (!context.is_empty()).then(|| context.to_owned()) })
}

fn modify(json: &str, context: &str) -> Result<Answer, Failure> {
    let replacement = Replacement::Object(Bytes::from(json.to_owned()));
    Ok(Answer::Modify { replacement, context: (!context.is_empty()).then(|| context.to_owned()) })
}

fn deny(reason: Option<&str>) -> Result<Answer, Failure> {
    Ok(Answer::Deny { reason: reason.map(Into::into) })
}

fn fail(kind: FailureKind) -> Result<Answer, Failure> {
    Err(Failure::new(kind, "the cause"))
}

/// Runs a chain over the answers, as the runner does.
fn run(chain: Chain<'_>, modes: &[&str], answers: Vec<Result<Answer, Failure>>) -> (Verdict, Vec<Ruling>) {
    let mut chain = chain;
    let mut rulings = Vec::new();
    for (handler, answer) in handlers(chain.event, modes).iter().zip(answers) {
        let (ruling, verdict) = chain.take(handler, answer);
        rulings.push(ruling);
        if let Some(verdict) = verdict {
            return (verdict, rulings);
        }
    }
    (chain.finish(), rulings)
}

fn ask(event: Event, modes: &[&str], answers: Vec<Result<Answer, Failure>>) -> (Verdict, Vec<Ruling>) {
    let redaction = Redaction::default();
    run(Chain::new(event, detail(event), "t".into(), &redaction, None), modes, answers)
}

fn outcomes(rulings: &[Ruling]) -> Vec<&'static str> {
    rulings.iter().map(|ruling| ruling.outcome.name()).collect()
}

fn modified(json: &str) -> Decision {
    Decision::Modify(Replacement::Object(Bytes::from(json.to_owned())))
}

#[test]
fn the_first_deny_ends_it_and_wins_over_everything_before() {
    let answers = vec![modify(r#"{"a":1}"#, "c"), deny(Some("no")), deny(Some("later"))];
    let (verdict, rulings) = ask(Event::PreToolUse, &["", "", ""], answers);
    assert_eq!(outcomes(&rulings), ["modify", "deny"]);
    assert_eq!(rulings[1].reason.as_deref(), Some("no"));
    let decision = Decision::Deny { reason: "no".into(), handler: "h1".into() };
    assert_eq!(verdict, Verdict { decision, context: vec![], failed: false });
}

#[test]
fn a_deny_without_a_reason_names_the_handler() {
    let (verdict, _) = ask(Event::UserPromptSubmit, &[""], vec![deny(None)]);
    let Decision::Deny { reason, .. } = verdict.decision else { panic!("{verdict:?}") };
    assert_eq!(reason, r#"the policy hook "h0" refused this"#);
}

#[test]
fn a_replacement_is_the_next_input_and_a_later_pass_keeps_it() {
    let redaction = Redaction::default();
    let mut chain = Chain::new(Event::PreToolUse, input(r#"{"a":0}"#), "t".into(), &redaction, None);
    let handlers = handlers(Event::PreToolUse, &["", "", ""]);
    assert_eq!(chain.shown(), input(r#"{"a":0}"#));
    chain.take(&handlers[0], modify(r#"{"a": 1.0}"#, "one"));
    assert_eq!(chain.shown(), input(r#"{"a": 1.0}"#));
    chain.take(&handlers[1], modify(r#"{"a":2}"#, ""));
    assert_eq!(chain.shown(), input(r#"{"a":2}"#));
    chain.take(&handlers[2], pass("three"));
    let context = |handler: &str, text: &str| AddedContext { handler: handler.into(), text: text.into() };
    let expected = Verdict {
        decision: modified(r#"{"a":2}"#),
        context: vec![context("h0", "one"), context("h2", "three")],
        failed: false,
    };
    assert_eq!(chain.finish(), expected);
}

#[test]
fn prompts_are_replaced_too() {
    for event in [Event::UserPromptSubmit, Event::SubagentStart] {
        let redaction = Redaction::default();
        let mut chain = Chain::new(event, detail(event), "t".into(), &redaction, None);
        let replacement = Replacement::Text("q".into());
        let answer = Answer::Modify { replacement: replacement.clone(), context: None };
        chain.take(&handlers(event, &[""])[0], Ok(answer));
        assert_eq!(chain.shown().judged().unwrap().1, 1);
        assert_ne!(chain.shown(), detail(event));
        assert_eq!(chain.finish().decision, Decision::Modify(replacement));
    }
}

/// Every class of failure on every gating event: closed refuses and names handler and cause, open goes on.
#[test]
fn failures_go_through_the_failure_mode() {
    use FailureKind::*;
    let kinds =
        [Transport, Timeout, Status, Malformed, Outcome, TooLarge, BlockedHost, TooLargeInput, Schema, MalformedInput];
    for event in Event::ALL.into_iter().filter(|event| event.gates()) {
        for kind in kinds {
            let (verdict, rulings) = ask(event, &["closed", ""], vec![fail(kind), pass("")]);
            assert_eq!(outcomes(&rulings), ["failed_closed"], "{event:?} {kind:?}");
            assert_eq!(rulings[0].failure, Some(kind));
            let Decision::Deny { reason, handler } = verdict.decision else { panic!("{event:?} {kind:?}") };
            assert!(reason.contains("\"h0\"") && reason.contains("the cause"), "{reason}");
            assert!(!reason.contains("user"), "{reason}");
            assert_eq!(&*handler, "h0");

            let (verdict, rulings) = ask(event, &["open", ""], vec![fail(kind), pass("")]);
            assert_eq!(outcomes(&rulings), ["failed_open", "pass"], "{event:?} {kind:?}");
            assert_eq!((verdict, rulings[0].failure), (Verdict::allow(), Some(kind)));
        }
    }
}

#[test]
fn a_salvaged_deny_stands_in_both_modes() {
    for mode in ["open", "closed"] {
        let failure = Failure {
            deny: Some(Salvaged { reason: Some("no".into()) }),
            ..Failure::new(FailureKind::TooLarge, "the cause")
        };
        let (verdict, rulings) = ask(Event::PreToolUse, &[mode, ""], vec![Err(failure), pass("")]);
        assert_eq!(verdict.decision, Decision::Deny { reason: "no".into(), handler: "h0".into() });
        assert_eq!((outcomes(&rulings), rulings[0].failure), (vec!["deny"], Some(FailureKind::TooLarge)));
    }
}

#[test]
fn stop_goes_on_at_the_first_wish() {
    let go_on = |reason: Option<&str>| Ok(Answer::Continue { reason: reason.map(Into::into) });
    let (verdict, rulings) = ask(Event::Stop, &["", "", ""], vec![pass(""), go_on(Some("test it")), pass("")]);
    assert_eq!(outcomes(&rulings), ["pass", "continue"]);
    assert_eq!(verdict.decision, Decision::Continue { reason: "test it".into(), handler: "h1".into() });
    let (verdict, _) = ask(Event::Stop, &[""], vec![go_on(None)]);
    let Decision::Continue { reason, .. } = verdict.decision else { panic!("{verdict:?}") };
    assert!(reason.contains("\"h0\""), "{reason}");
    assert_eq!(ask(Event::Stop, &[""], vec![pass("")]).0, Verdict::allow());
}

#[test]
fn the_context_of_one_dispatch_is_bounded() {
    let half = "x".repeat(MAX_CONTEXT_BYTES / 2);
    let over = "x".repeat(MAX_CONTEXT_BYTES / 2 + 1);
    let (verdict, _) = ask(Event::PreToolUse, &["", "", ""], vec![pass(&half), pass(&half), pass("")]);
    assert_eq!(verdict.context.len(), 2);

    // The handler that passes what is left has failed: its replacement is not used, and a later one may still fit.
    let answers = vec![pass(&half), modify("{}", &over), pass(&half)];
    let (verdict, rulings) = ask(Event::PreToolUse, &["", "open", ""], answers);
    assert_eq!(outcomes(&rulings), ["pass", "failed_open", "pass"]);
    assert_eq!(rulings[1].failure, Some(FailureKind::TooLarge));
    assert_eq!((&verdict.decision, verdict.context.len()), (&Decision::Allow, 2));

    let (verdict, rulings) = ask(Event::PreToolUse, &["", "closed", ""], vec![pass(&half), pass(&over), pass("")]);
    assert_eq!(outcomes(&rulings), ["pass", "failed_closed"]);
    assert!(matches!(&verdict.decision, Decision::Deny { handler, .. } if &**handler == "h1"), "{verdict:?}");
    assert_eq!(verdict.context, []);
}

#[test]
fn each_replacement_must_fit_the_tools_schema() {
    let schema = ToolSchema::compile(br#"{"properties":{"n":{"type":"integer"}},"required":["n"]}"#).unwrap();
    let redaction = Redaction::default();
    let chain = || Chain::new(Event::PreToolUse, input("{}"), "t".into(), &redaction, Some(&schema));
    let (verdict, rulings) = run(chain(), &["open", ""], vec![modify(r#"{"n":"s3cret"}"#, "c"), pass("")]);
    assert_eq!((outcomes(&rulings), verdict), (vec!["failed_open", "pass"], Verdict::allow()));
    assert_eq!(rulings[0].failure, Some(FailureKind::Schema));

    // What an earlier handler wrote stays when a later replacement is refused.
    let answers = vec![modify(r#"{"n":1}"#, ""), modify(r#"{}"#, "")];
    let (verdict, _) = run(chain(), &["closed", "open"], answers);
    assert_eq!(verdict.decision, modified(r#"{"n":1}"#));

    let (verdict, rulings) = run(chain(), &["closed"], vec![modify(r#"{"n":"s3cret"}"#, "")]);
    assert_eq!(outcomes(&rulings), ["failed_closed"]);
    let Decision::Deny { reason, .. } = verdict.decision else { panic!("{rulings:?}") };
    assert!(reason.contains("/n") && !reason.contains("s3cret"), "{reason}");
}

#[test]
fn the_final_replacement_is_checked_once_more() {
    let schema = ToolSchema::compile(br#"{"required":["n"]}"#).unwrap();
    let redaction = Redaction::default();
    let mut chain = Chain::new(Event::PreToolUse, input("{}"), "t".into(), &redaction, Some(&schema));
    chain.replaced = Some((Replacement::Object(Bytes::from_static(b"{}")), "h0".into()));
    assert!(matches!(chain.finish().decision, Decision::Deny { .. }));
}

#[test]
fn what_a_handler_could_not_see_it_does_not_overwrite() {
    let redaction = Redaction::default().rule("login", Redact::Fields(vec!["/password".into()]));
    let start = input(r#"{"user":"a","password":"s3cret"}"#);
    let mut chain = Chain::new(Event::PreToolUse, start, "mcp__vault__login".into(), &redaction, None);
    assert_eq!(chain.shown(), input(r#"{"user":"a","password":"[redacted]"}"#));
    let handlers = handlers(Event::PreToolUse, &["", ""]);
    chain.take(&handlers[0], modify(r#"{"password":"[redacted]","user":"b"}"#, ""));
    assert_eq!(chain.shown(), input(r#"{"password":"[redacted]","user":"b"}"#));
    chain.take(&handlers[1], pass(""));
    assert_eq!(chain.finish().decision, modified(r#"{"password":"s3cret","user":"b"}"#));
}
