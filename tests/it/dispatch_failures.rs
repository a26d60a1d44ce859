//! Every class of failure in both failure modes, over real sockets.

use hookgate::audit::{AuditLog, AuditOutcome};
use hookgate::dispatch::{Decision, DispatchKey, Dispatcher, HyperTransport, ToolSchema, Verdict};
use hookgate::hooks::{Event, FailureKind, Redact, Redaction};
use hookgate::limits::{Limits, MAX_HANDLER_ANSWER_BYTES};

use super::away::Away;
use super::dispatch_policy::{FLOOD, PolicyServer, Reply, dispatcher, gated, hooks, occasion, records, tool_input};

const JSON: &str = "content-type: application/json\r\n";
const PASS: &[u8] = br#"{"schemaVersion":1,"outcome":"pass"}"#;

/// Asks one handler that fails in this way, closed and open, on every gating event.
async fn fails(reply: Reply, kind: FailureKind, cause: &str) {
    let server = PolicyServer::start(move |_| reply.clone()).await;
    fails_at(&server.url(), kind, cause).await;
    assert_eq!(server.seen().len(), 8);
}

async fn fails_at(url: &str, kind: FailureKind, cause: &str) {
    for event in Event::ALL.into_iter().filter(|event| event.gates()) {
        for mode in ["closed", "open"] {
            let dispatcher = dispatcher(HyperTransport::new());
            let time = if kind == FailureKind::Timeout { 100 } else { 20_000 };
            let hooks = hooks(event, &[("strict", url, &format!(r#""failureMode":"{mode}","timeoutMs":{time}"#))]);
            let verdict = dispatcher.gate(&hooks, &occasion(event), gated(event), None).await;
            let records = records(&dispatcher);
            assert_eq!(records.len(), 1, "{records:?}");
            assert_eq!(records[0].failure, Some(kind), "{event:?} {mode} {records:?}");
            if mode == "open" {
                assert_eq!((verdict, records[0].outcome), (Verdict::allow(), AuditOutcome::FailedOpen));
                continue;
            }
            assert_eq!(records[0].outcome, AuditOutcome::FailedClosed);
            let Decision::Deny { reason, handler } = verdict.decision else { panic!("{event:?} {kind:?}") };
            assert_eq!(&*handler, "strict");
            assert!(reason.contains("\"strict\"") && reason.contains(cause), "{reason}");
            assert!(records[0].reason.as_deref().unwrap_or("").contains(cause), "{records:?}");
        }
    }
}

#[tokio::test]
async fn transport_refused() {
    let away = Away::new();
    fails_at(&format!("http://{}/", away.address), FailureKind::Transport, "refused").await;
}

#[tokio::test]
async fn transport_closed_without_an_answer() {
    fails(Reply::Raw(vec![]), FailureKind::Transport, "closed").await;
}

#[tokio::test]
async fn transport_not_http() {
    fails(Reply::Raw(b"ssh-2.0\r\n\r\n".to_vec()), FailureKind::Transport, "invalid HTTP").await;
}

#[tokio::test]
async fn transport_broken_off() {
    let half =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{\"schemaVersion\":1".to_vec();
    fails(Reply::Raw(half), FailureKind::Transport, "broke off").await;
}

#[tokio::test]
async fn timeout_before_the_answer() {
    fails(Reply::Silence, FailureKind::Timeout, "timeout after 100 ms").await;
}

#[tokio::test]
async fn timeout_within_the_answer() {
    fails(Reply::Trickle, FailureKind::Timeout, "timeout after 100 ms").await;
}

#[tokio::test]
async fn status() {
    for status in [201, 400, 403, 500, 503] {
        fails(Reply::Http(status, JSON.into(), PASS.to_vec()), FailureKind::Status, &format!("HTTP {status}")).await;
    }
    fails(Reply::Raw(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()), FailureKind::Status, "HTTP 204").await;
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = PolicyServer::start(|_| Reply::pass()).await;
    for status in [301, 302, 303, 307, 308] {
        let headers = format!("location: {}\r\n", elsewhere.url());
        fails(Reply::Http(status, headers, vec![]), FailureKind::Status, "redirects are not followed").await;
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn malformed() {
    for body in [
        "",
        "[]",
        "nonsense",
        r#"{"schemaVersion":1,"outcome":"pass"} x"#,
        r#"{"schemaVersion":1,"outcome":"pass","x":1}"#,
    ] {
        fails(Reply::Http(200, JSON.into(), body.into()), FailureKind::Malformed, "its answer").await;
    }
    fails(
        Reply::Http(200, "content-type: text/html\r\n".into(), PASS.to_vec()),
        FailureKind::Malformed,
        "application/json",
    )
    .await;
    let packed = format!("{JSON}content-encoding: gzip\r\n");
    fails(Reply::Http(200, packed, PASS.to_vec()), FailureKind::Malformed, "compressed").await;
    fails(
        Reply::Http(200, JSON.into(), b"{\"schemaVersion\":1,\"outcome\":\"pass\xff\"}".to_vec()),
        FailureKind::Malformed,
        "UTF-8",
    )
    .await;
}

#[tokio::test]
async fn outcome() {
    fails(Reply::json(r#""outcome":"allow""#), FailureKind::Outcome, "allow").await;
}

#[tokio::test]
async fn too_large() {
    let mut body = br#"{"schemaVersion":1,"outcome":"pass","additionalContext":""#.to_vec();
    body.resize(MAX_HANDLER_ANSWER_BYTES + 1, b'x');
    fails(Reply::Http(200, JSON.into(), body), FailureKind::TooLarge, "65536 bytes").await;
}

#[tokio::test]
async fn an_answer_of_exactly_the_cap_is_read() {
    let mut body = PASS.to_vec();
    body.resize(MAX_HANDLER_ANSWER_BYTES, b' ');
    let server = PolicyServer::start(move |_| Reply::Http(200, JSON.into(), body.clone())).await;
    let hooks = hooks(Event::Stop, &[("h", &server.url(), "")]);
    let dispatcher = dispatcher(HyperTransport::new());
    assert_eq!(dispatcher.gate(&hooks, &occasion(Event::Stop), gated(Event::Stop), None).await, Verdict::allow());
    assert_eq!(records(&dispatcher)[0].response_bytes, MAX_HANDLER_ANSWER_BYTES as u64);
}

#[tokio::test]
async fn reading_stops_at_the_cap() {
    let server = PolicyServer::start(|_| Reply::Flood).await;
    let dispatcher = dispatcher(HyperTransport::new());
    let hooks = hooks(Event::PreToolUse, &[("h", &server.url(), r#""failureMode":"open","timeoutMs":20000"#)]);
    let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
    // What was read before the cap was a refusal, and it stands.
    assert_eq!(verdict.decision, Decision::Deny { reason: "flooded".into(), handler: "h".into() });
    let record = &records(&dispatcher)[0];
    assert_eq!((record.outcome, record.failure), (AuditOutcome::Deny, Some(FailureKind::TooLarge)));
    assert_eq!(record.response_bytes, MAX_HANDLER_ANSWER_BYTES as u64);
    // The rest is what lay in the sockets' buffers when the connection was closed.
    let sent = server.flooded().await;
    assert!(sent < FLOOD / 16, "{sent} bytes were taken");
}

#[tokio::test]
async fn a_readable_refusal_stands_in_both_modes() {
    let long = "é".repeat(2_000);
    for (reply, reason) in [
        (Reply::json(r#""outcome":"deny","reason":"no","extra":1"#), "no".to_owned()),
        (Reply::Http(403, JSON.into(), br#"{"schemaVersion":1,"outcome":"deny","reason":"no"}"#.to_vec()), "no".into()),
        (Reply::json(&format!(r#""outcome":"deny","reason":"{long}""#)), "é".repeat(1_024)),
    ] {
        for mode in ["closed", "open"] {
            let reply = reply.clone();
            let server = PolicyServer::start(move |_| reply.clone()).await;
            let dispatcher = dispatcher(HyperTransport::new());
            let hooks = hooks(Event::PreToolUse, &[("h", &server.url(), &format!(r#""failureMode":"{mode}""#))]);
            let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
            assert_eq!(verdict.decision, Decision::Deny { reason: reason.clone(), handler: "h".into() }, "{mode}");
            assert_eq!(records(&dispatcher)[0].outcome, AuditOutcome::Deny);
        }
    }
}

#[tokio::test]
async fn a_replacement_against_the_schema_is_not_used() {
    let server = PolicyServer::start(|_| Reply::json(r#""outcome":"modify","replacement":{"n":"x"}"#)).await;
    let schema = ToolSchema::compile(br#"{"properties":{"n":{"type":"integer"}}}"#).unwrap();
    for (mode, outcome) in [("open", AuditOutcome::FailedOpen), ("closed", AuditOutcome::FailedClosed)] {
        let dispatcher = dispatcher(HyperTransport::new());
        let hooks = hooks(Event::PreToolUse, &[("h", &server.url(), &format!(r#""failureMode":"{mode}""#))]);
        let input = tool_input(r#"{"n":1}"#);
        let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), input, Some(&schema)).await;
        assert_eq!(verdict.decision == Decision::Allow, mode == "open", "{verdict:?}");
        assert_eq!(
            (records(&dispatcher)[0].outcome, records(&dispatcher)[0].failure),
            (outcome, Some(FailureKind::Schema))
        );
    }
}

#[tokio::test]
async fn what_is_too_large_to_judge_is_never_cut_and_nobody_is_asked() {
    let server = PolicyServer::start(|_| Reply::pass()).await;
    let mut limits = Limits::default();
    limits.max_gated_bytes = 4;
    for event in Event::ALL.into_iter().filter(|event| event.gates()) {
        let transport = std::sync::Arc::new(HyperTransport::new());
        let dispatcher = Dispatcher::new(transport, AuditLog::new(10, 10), DispatchKey::random(), &limits);
        let url = server.url();
        let hooks =
            hooks(event, &[("open", &url, r#""failureMode":"open""#), ("closed", &url, ""), ("late", &url, "")]);
        let asked = event == Event::Stop || event == Event::SubagentStart;
        let verdict = dispatcher.gate(&hooks, &occasion(event), gated(event), None).await;
        if asked {
            // Four bytes are not over four.
            assert_eq!(verdict, Verdict::allow(), "{event:?}");
            continue;
        }
        let Decision::Deny { reason, handler } = verdict.decision else { panic!("{event:?}") };
        assert!(reason.contains("max_gated_bytes = 4") && &*handler == "closed", "{reason}");
        let records = records(&dispatcher);
        let outcomes: Vec<_> = records.iter().map(|record| (record.outcome, record.failure)).collect();
        let kind = Some(FailureKind::TooLargeInput);
        assert_eq!(outcomes, [(AuditOutcome::FailedOpen, kind), (AuditOutcome::FailedClosed, kind)]);
    }
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn malformed_input_is_undecidable() {
    let dispatcher = dispatcher(HyperTransport::new());
    let event = Event::PreToolUse;
    let undecidable = |matcher: &str, mode: &str| {
        let more = format!(r#""failureMode":"{mode}","matcher":["{matcher}"]"#);
        let hooks = hooks(event, &[("h", "https://hooks.example.com/", &more)]);
        dispatcher.undecidable(&hooks, &occasion(event), FailureKind::MalformedInput, "a key stands twice")
    };
    assert_eq!(undecidable("Edit", "closed"), Verdict::allow());
    assert_eq!(records(&dispatcher), []);
    assert_eq!(undecidable("Bash", "open"), Verdict::allow());
    let Decision::Deny { reason, .. } = undecidable("Bash", "closed").decision else { panic!() };
    assert!(reason.contains("\"h\" could not be asked (a key stands twice)"), "{reason}");
    for record in records(&dispatcher) {
        assert_eq!((record.outcome, record.failure), (AuditOutcome::MalformedInput, None));
    }
    assert_eq!(records(&dispatcher).len(), 2);
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_the_handler_that_is_asked() {
    let server = PolicyServer::start(|_| Reply::Silence).await;
    let dispatcher = dispatcher(HyperTransport::new());
    let url = server.url();
    let hooks = hooks(Event::PreToolUse, &[("first", &url, r#""timeoutMs":30000"#), ("second", &url, "")]);
    let asked = {
        let (dispatcher, hooks) = (dispatcher.clone(), hooks.clone());
        tokio::spawn(async move { dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input("{}"), None).await })
    };
    server.wait_for(1).await;
    assert_eq!(records(&dispatcher), []);
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    let records = records(&dispatcher);
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].outcome, records[0].failure), (AuditOutcome::Cancelled, None));
    assert_eq!(records[0].handler_id.as_deref(), Some("first"));
    assert!(records[0].request_bytes > 0);
}

#[tokio::test]
async fn secrets_of_redacted_tools_reach_nobody() {
    let server = PolicyServer::start(|_| Reply::json(r#""outcome":"deny","reason":"no""#)).await;
    let document =
        format!(r#"{{"version":1,"hooks":{{"PreToolUse":[{{"id":"h","type":"http","url":"{}"}}]}}}}"#, server.url());
    let hooks = hookgate::hooks::HookSet::builder()
        .allowed_hosts(["127.0.0.1"])
        .allow_insecure_loopback(true)
        .redaction(Redaction::default().rule("Bash", Redact::Whole))
        .document("d", document.as_bytes())
        .build()
        .unwrap();
    let dispatcher = dispatcher(HyperTransport::new());
    dispatcher.gate(&hooks.into(), &occasion(Event::PreToolUse), tool_input(r#"{"k":"s3cret"}"#), None).await;
    assert_eq!(server.seen()[0].json()["detail"]["input"], "[redacted]");
    assert!(!format!("{:?}", records(&dispatcher)).contains("s3cret"));
}
