//! The native contract, row by row, over real sockets: what each event accepts, and what happens to all else.

use bytes::Bytes;
use hookgate::audit::{AuditOutcome, AuditRecord};
use hookgate::dispatch::{AddedContext, Decision, HyperTransport, Verdict};
use hookgate::hooks::{Detail, Event, FailureKind, HookSet, Redact, Redaction, Replacement};
use hookgate::limits::{MAX_CONTEXT_BYTES, MAX_OBSERVED_TEXT_BYTES, MAX_REASON_BYTES};

use super::away::Away;
use super::dispatch_policy::{PolicyServer, Reply, dispatcher, gated, hooks, occasion, records, tool_input};

const OUTCOMES: [&str; 4] = ["pass", "deny", "modify", "continue"];

/// The events, what they may be answered, and whether they accept context.
const TABLE: [(Event, &[&str], bool); 12] = [
    (Event::SessionStart, &["pass"], true),
    (Event::TaskStart, &["pass"], true),
    (Event::UserPromptSubmit, &["pass", "deny", "modify"], true),
    (Event::SubagentStart, &["pass", "deny", "modify"], true),
    (Event::PreToolUse, &["pass", "deny", "modify"], true),
    (Event::PostToolUse, &["pass"], false),
    (Event::PostToolUseFailure, &["pass"], false),
    (Event::SubagentStop, &["pass"], false),
    (Event::TaskStop, &["pass"], false),
    (Event::Stop, &["pass", "continue"], false),
    (Event::StopFailure, &["pass"], false),
    (Event::SessionEnd, &["pass"], false),
];

/// A small detail of each event that is only told.
fn told(event: Event) -> Detail {
    let (tool_name, input) = ("Bash".to_owned(), Some(Bytes::from_static(b"{}")));
    let (truncated, executed_upstream) = (false, false);
    match event {
        Event::SessionStart => Detail::SessionStart { source: "new" },
        Event::TaskStart => Detail::TaskStart { title: Some("t".into()) },
        Event::PostToolUse => {
            let result = Bytes::from_static(b"\"ok\"");
            Detail::PostToolUse { tool_name, input, result, truncated, executed_upstream, failure_known: true }
        }
        Event::PostToolUseFailure => {
            let error = Bytes::from_static(b"\"no\"");
            Detail::PostToolUseFailure { tool_name, input, error, truncated, executed_upstream }
        }
        Event::SubagentStop => {
            Detail::SubagentStop { subagent: "Bash".into(), ok: true, text: "found".into(), truncated }
        }
        Event::TaskStop => Detail::TaskStop { status: "completed".into() },
        Event::StopFailure => Detail::StopFailure { kind: "upstream".into(), status: None, message: "gone".into() },
        Event::SessionEnd => Detail::SessionEnd { reason: "deleted".into() },
        _ => gated(event),
    }
}

/// Fires an event at one handler that gives this reply. What is only told has the verdict of those who may not object.
async fn fire(event: Event, mode: &str, reply: Reply) -> (Verdict, AuditRecord) {
    let server = PolicyServer::start(move |_| reply.clone()).await;
    let mode = if event.gates() { format!(r#""failureMode":"{mode}","#) } else { String::new() };
    let fired = fire_at(&[(&server.url(), &format!(r#"{mode}"timeoutMs":20000"#))], event).await;
    assert_eq!(server.seen().len(), 1);
    assert_eq!(server.seen()[0].json()["event"], event.name());
    let [record] = <[_; 1]>::try_from(fired.1).unwrap();
    (fired.0, record)
}

async fn fire_at(handlers: &[(&str, &str)], event: Event) -> (Verdict, Vec<AuditRecord>) {
    let ids = ["one", "two", "three"];
    let handlers: Vec<_> = ids.iter().zip(handlers).map(|(id, (url, more))| (*id, *url, *more)).collect();
    let (dispatcher, hooks) = (dispatcher(HyperTransport::new()), hooks(event, &handlers));
    let verdict = match event.gates() {
        true => dispatcher.gate(&hooks, &occasion(event), gated(event), None).await,
        false => {
            let context = dispatcher.observe_awaited(&hooks, &occasion(event), told(event)).await;
            Verdict { context, ..Verdict::allow() }
        }
    };
    (verdict, records(&dispatcher))
}

/// That a handler failed so, and what its failure mode makes of it.
fn assert_failed(event: Event, mode: &str, kind: FailureKind, (verdict, record): &(Verdict, AuditRecord)) {
    assert_eq!(record.failure, Some(kind), "{event:?} {mode} {record:?}");
    if event.gates() && mode == "closed" {
        assert_eq!(record.outcome, AuditOutcome::FailedClosed, "{event:?} {record:?}");
        let Decision::Deny { reason, handler } = &verdict.decision else { panic!("{event:?} {verdict:?}") };
        assert!(&**handler == "one" && reason.contains("\"one\""), "{reason}");
        assert_eq!(verdict.context, []);
    } else {
        assert_eq!(record.outcome, AuditOutcome::FailedOpen, "{event:?} {record:?}");
        assert_eq!(*verdict, Verdict::allow(), "{event:?} {mode}");
    }
}

fn modes(event: Event) -> &'static [&'static str] {
    if event.gates() { &["closed", "open"] } else { &["open"] }
}

fn replacement(event: Event) -> &'static str {
    if event == Event::PreToolUse { r#"{"command":"true"}"# } else { r#""another""# }
}

fn answer(event: Event, outcome: &str) -> String {
    match outcome {
        "modify" => format!(r#""outcome":"modify","replacement":{}"#, replacement(event)),
        "pass" => r#""outcome":"pass""#.to_owned(),
        _ => format!(r#""outcome":"{outcome}","reason":"because""#),
    }
}

#[tokio::test]
async fn every_event_takes_its_outcomes_and_no_other() {
    for (event, allowed, _) in TABLE {
        for outcome in OUTCOMES {
            for mode in modes(event) {
                let fired = fire(event, mode, Reply::json(&answer(event, outcome))).await;
                if !allowed.contains(&outcome) {
                    assert_failed(event, mode, FailureKind::Outcome, &fired);
                    continue;
                }
                let (reason, handler) = ("because".to_owned(), "one".into());
                let expected = match (outcome, event) {
                    ("pass", _) => Decision::Allow,
                    ("deny", _) => Decision::Deny { reason, handler },
                    ("continue", _) => Decision::Continue { reason, handler },
                    (_, Event::PreToolUse) => Decision::Modify(Replacement::Object(replacement(event).into())),
                    _ => Decision::Modify(Replacement::Text("another".into())),
                };
                assert_eq!(fired.0.decision, expected, "{event:?} {outcome} {mode}");
                assert_eq!((fired.1.outcome.name(), fired.1.failure), (outcome, None), "{event:?} {mode}");
            }
        }
    }
}

#[tokio::test]
async fn context_is_for_the_events_that_accept_it() {
    for (event, allowed, accepts) in TABLE {
        for outcome in ["pass", "modify"].into_iter().filter(|outcome| allowed.contains(outcome)) {
            for mode in modes(event) {
                let with = format!(r#"{},"additionalContext":"hint""#, answer(event, outcome));
                let fired = fire(event, mode, Reply::json(&with)).await;
                match accepts {
                    true => {
                        assert_eq!(fired.0.context, [AddedContext { handler: "one".into(), text: "hint".into() }]);
                        assert_eq!(fired.1.failure, None, "{event:?} {outcome}");
                    }
                    false => assert_failed(event, mode, FailureKind::Malformed, &fired),
                }
            }
        }
    }
}

#[tokio::test]
async fn fields_that_do_not_fit_are_failures() {
    for event in Event::ALL.into_iter().filter(|event| event.gates()) {
        let mut misfits = vec![
            r#""outcome":"pass","reason":"why""#.to_owned(),
            r#""outcome":"pass","replacement":{}"#.to_owned(),
            r#""outcome":7"#.to_owned(),
            r#""reason":"no outcome""#.to_owned(),
            r#""outcome":"pass","outcome":"pass""#.to_owned(),
            r#""outcome":"pass","additionalContext":7"#.to_owned(),
            r#""outcome":"pass","schemaVersion":1"#.to_owned(),
        ];
        match event {
            Event::Stop => misfits.push(r#""outcome":"continue","additionalContext":"x""#.to_owned()),
            Event::PreToolUse => misfits.push(r#""outcome":"modify","replacement":"text""#.to_owned()),
            _ => misfits.push(r#""outcome":"modify","replacement":{}"#.to_owned()),
        }
        if event != Event::Stop {
            misfits.push(r#""outcome":"modify""#.to_owned());
            misfits.push(format!(r#""outcome":"modify","replacement":{},"reason":"why""#, replacement(event)));
        }
        for misfit in misfits {
            for mode in modes(event) {
                let fired = fire(event, mode, Reply::json(&misfit)).await;
                assert_failed(event, mode, FailureKind::Malformed, &fired);
            }
        }
        for body in [r#"{"outcome":"pass"}"#, r#"{"schemaVersion":2,"outcome":"pass"}"#] {
            for mode in modes(event) {
                let fired = fire(event, mode, Reply::Json(body.to_owned())).await;
                assert_failed(event, mode, FailureKind::Malformed, &fired);
            }
        }
    }
}

/// The cap is in bytes of UTF-8, and reaching it is not passing it.
#[tokio::test]
async fn the_context_of_one_handler_has_a_cap() {
    let most = "é".repeat(MAX_CONTEXT_BYTES / 2);
    for (event, _, accepts) in TABLE {
        if !accepts {
            continue;
        }
        for mode in modes(event) {
            let with = |text: &str| Reply::json(&format!(r#""outcome":"pass","additionalContext":"{text}""#));
            let fired = fire(event, mode, with(&most)).await;
            assert_eq!(fired.0.context[0].text.len(), MAX_CONTEXT_BYTES, "{event:?} {mode}");
            let fired = fire(event, mode, with(&format!("{most}x"))).await;
            assert_failed(event, mode, FailureKind::TooLarge, &fired);
        }
    }
}

/// The handler that passes what is left for the whole dispatch has failed; those before it have not.
#[tokio::test]
async fn the_context_of_one_dispatch_has_a_cap() {
    let half = "x".repeat(MAX_CONTEXT_BYTES / 2);
    let server = PolicyServer::start(move |seen| match seen.line.split('/').nth(1).map(|path| &path[..3]) {
        Some("big") => Reply::json(&format!(r#""outcome":"pass","additionalContext":"{half}x""#)),
        _ => Reply::json(&format!(r#""outcome":"pass","additionalContext":"{half}""#)),
    })
    .await;
    let [half, big] = ["half", "big"].map(|path| format!("http://{}/{path}", server.address));
    for (event, _, accepts) in TABLE {
        if !accepts {
            continue;
        }
        let (verdict, records) = fire_at(&[(&half, ""), (&half, "")], event).await;
        assert_eq!((verdict.context.len(), records[1].failure), (2, None), "{event:?}");
        for mode in modes(event) {
            let more = if event.gates() { format!(r#""failureMode":"{mode}""#) } else { String::new() };
            let (verdict, records) = fire_at(&[(&half, &more), (&big, &more)], event).await;
            assert_eq!((records[0].failure, records[1].failure), (None, Some(FailureKind::TooLarge)), "{event:?}");
            let refused = matches!(&verdict.decision, Decision::Deny { handler, .. } if &**handler == "two");
            assert_eq!(refused, event.gates() && *mode == "closed", "{event:?} {mode} {verdict:?}");
            assert_eq!(verdict.context.len(), usize::from(!refused));
        }
    }
}

/// A reason over its cap is a failure; of a deny it is cut, and the deny stands.
#[tokio::test]
async fn reasons_have_a_cap() {
    let most = "é".repeat(MAX_REASON_BYTES / 2);
    for mode in ["closed", "open"] {
        let with = |outcome: &str, reason: &str| Reply::json(&format!(r#""outcome":"{outcome}","reason":"{reason}""#));
        let fired = fire(Event::Stop, mode, with("continue", &most)).await;
        assert_eq!(fired.0.decision, Decision::Continue { reason: most.clone(), handler: "one".into() });
        let fired = fire(Event::Stop, mode, with("continue", &format!("{most}x"))).await;
        assert_failed(Event::Stop, mode, FailureKind::TooLarge, &fired);
        for event in [Event::UserPromptSubmit, Event::SubagentStart, Event::PreToolUse] {
            for (reason, failure) in [(most.clone(), None), (format!("{most}x"), Some(FailureKind::TooLarge))] {
                let fired = fire(event, mode, with("deny", &reason)).await;
                assert_eq!(fired.0.decision, Decision::Deny { reason: most.clone(), handler: "one".into() });
                assert_eq!((fired.1.outcome, fired.1.failure), (AuditOutcome::Deny, failure), "{event:?} {mode}");
            }
        }
    }
}

/// Whatever is wrong with an observer, nothing comes of it but a record.
#[tokio::test]
async fn observers_fail_open_in_every_way() {
    let json = "content-type: application/json\r\n";
    let away = Away::new();
    let nobody = format!("http://{}/", away.address);
    for event in Event::ALL.into_iter().filter(|event| !event.gates()) {
        for (reply, kind) in [
            (Reply::Raw(vec![]), FailureKind::Transport),
            (Reply::Http(500, json.into(), vec![]), FailureKind::Status),
            (Reply::Http(307, "location: /elsewhere\r\n".into(), vec![]), FailureKind::Status),
            (Reply::Http(200, json.into(), vec![]), FailureKind::Malformed),
            (Reply::Flood, FailureKind::TooLarge),
        ] {
            let fired = fire(event, "open", reply).await;
            assert_failed(event, "open", kind, &fired);
        }
        let silent = PolicyServer::start(|_| Reply::Silence).await;
        for (url, kind) in [(&silent.url(), FailureKind::Timeout), (&nobody, FailureKind::Transport)] {
            let time = if kind == FailureKind::Timeout { 50 } else { 20_000 };
            let (verdict, records) = fire_at(&[(url, &format!(r#""timeoutMs":{time}"#))], event).await;
            assert_eq!((verdict, records[0].failure), (Verdict::allow(), Some(kind)), "{event:?}");
        }
    }
}

/// An MCP tool is named alone or with its server, always whole.
#[tokio::test]
async fn matchers_name_mcp_tools_in_two_ways() {
    let server = PolicyServer::start(|_| Reply::pass()).await;
    let url = server.url();
    let matchers = ["remember", "mcp__notes__remember", "mcp__other__remember", "Remember", "rememb", "notes"];
    let matchers = matchers.map(|name| format!(r#""matcher":["{name}"]"#));
    let ids = ["bare", "full", "elsewhere", "case", "part", "server"];
    let handlers: Vec<_> = ids.iter().zip(&matchers).map(|(id, more)| (*id, &*url, &**more)).collect();
    let hooks = hooks(Event::PreToolUse, &handlers);
    for (name, from) in [("mcp__notes__remember", None), ("remember", Some("notes"))] {
        let dispatcher = dispatcher(HyperTransport::new());
        let occasion = hookgate::hooks::Occasion {
            name: Some(name.into()),
            server: from.map(Into::into),
            ..occasion(Event::PreToolUse)
        };
        dispatcher.gate(&hooks, &occasion, tool_input("{}"), None).await;
        let records = records(&dispatcher);
        let asked: Vec<_> = records.iter().map(|record| record.handler_id.as_deref().unwrap()).collect();
        assert_eq!(asked, ["bare", "full"], "{name}");
    }
}

/// What is only told is cut on a character boundary and says so.
#[tokio::test]
async fn observed_text_is_cut() {
    let server = PolicyServer::start(|_| Reply::pass()).await;
    let event = Event::SubagentStop;
    let (dispatcher, hooks) = (dispatcher(HyperTransport::new()), hooks(event, &[("h", &server.url(), "")]));
    for (len, cut) in [(MAX_OBSERVED_TEXT_BYTES / 2, false), (MAX_OBSERVED_TEXT_BYTES / 2 + 1, true)] {
        let text = "é".repeat(len);
        let detail = Detail::SubagentStop { subagent: "Bash".into(), ok: true, text, truncated: false };
        dispatcher.observe_awaited(&hooks, &occasion(event), detail).await;
        let seen = server.seen().pop().unwrap().json();
        assert_eq!(seen["detail"]["response"].as_str().unwrap().len(), MAX_OBSERVED_TEXT_BYTES);
        assert_eq!(seen["detail"]["truncated"] == true, cut, "{len}");
    }
}

/// Rules hide what they name from handlers, in arguments and results, and a replacement gets it back.
#[tokio::test]
async fn redaction_hides_what_its_rules_name() {
    let server = PolicyServer::start(|seen| match seen.json()["event"] == "PreToolUse" {
        true => Reply::json(r#""outcome":"modify","replacement":{"name":"n","password":"[redacted]"}"#),
        false => Reply::pass(),
    })
    .await;
    let input = r#"{"name":"m","password":"s3cret"}"#;
    for (rule, shown) in [
        (Redact::Whole, serde_json::json!("[redacted]")),
        (Redact::Fields(vec!["/password".into()]), serde_json::json!({"name": "m", "password": "[redacted]"})),
        (Redact::Allow(vec!["name".into()]), serde_json::json!({"name": "m"})),
    ] {
        let restores = matches!(rule, Redact::Fields(_));
        let url = server.url();
        let entry = |event: &str| format!(r#""{event}":[{{"id":"{event}","type":"http","url":"{url}"}}]"#);
        let document = format!(r#"{{"version":1,"hooks":{{{},{}}}}}"#, entry("PreToolUse"), entry("PostToolUse"));
        let hooks = HookSet::builder()
            .allowed_hosts(["127.0.0.1"])
            .allow_insecure_loopback(true)
            .redaction(Redaction::default().rule("Bash", rule))
            .document("d", document.as_bytes())
            .build()
            .unwrap();
        let (dispatcher, hooks) = (dispatcher(HyperTransport::new()), hooks.into());
        let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input(input), None).await;
        if restores {
            let complete = Replacement::Object(r#"{"name":"n","password":"s3cret"}"#.into());
            assert_eq!(verdict.decision, Decision::Modify(complete));
        }
        let after = Detail::PostToolUse {
            tool_name: "Bash".into(),
            input: Some(Bytes::from_static(input.as_bytes())),
            result: Bytes::from_static(input.as_bytes()),
            truncated: false,
            executed_upstream: false,
            failure_known: true,
        };
        dispatcher.observe_awaited(&hooks, &occasion(Event::PostToolUse), after).await;
        let seen = server.seen();
        let [before, after] = &seen[seen.len() - 2..] else { panic!() };
        assert_eq!(before.json()["detail"]["input"], shown);
        assert_eq!((&after.json()["detail"]["input"], &after.json()["detail"]["result"]), (&shown, &shown));
        assert!(!format!("{:?}", records(&dispatcher)).contains("s3cret"));
    }
    assert!(server.seen().iter().all(|seen| !seen.body.windows(6).any(|window| window == b"s3cret")));
}
