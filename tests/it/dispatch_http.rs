//! Handlers over real sockets: the request, the connection, the order.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;

use hookgate::audit::AuditOutcome;
use hookgate::dispatch::{AddedContext, Connection, Decision, HyperTransport};
use hookgate::hooks::{Event, FailureKind, Replacement};

use super::dispatch_policy::{
    PATIENCE, PolicyServer, Reply, dispatcher, gated, hooks, occasion, read_blocking, records, tool_input,
};

#[tokio::test]
async fn the_request_is_the_contracts_and_nothing_else() {
    let server = PolicyServer::start(|_| Reply::pass()).await;
    let url = format!("{}?tenant=a", server.url());
    let hooks = hooks(Event::PreToolUse, &[("a", &url, ""), ("b", &url, "")]);
    let dispatcher = dispatcher(HyperTransport::new());
    for _ in 0..2 {
        dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input(r#"{ "n" : 1.00 }"#), None).await;
    }
    let seen = server.seen();
    let names: BTreeSet<_> = seen[0].headers.iter().map(|(name, _)| name.as_str()).collect();
    let expected = ["content-length", "content-type", "host", "idempotency-key", "user-agent", "x-hookgate-dispatch"];
    assert_eq!(names, BTreeSet::from(expected));
    assert_eq!(seen[0].line, "POST /hook?tenant=a HTTP/1.1");
    assert_eq!(seen[0].header("content-type"), "application/json");
    assert_eq!(seen[0].header("user-agent"), concat!("hookgate/", env!("CARGO_PKG_VERSION")));
    assert_eq!(seen[0].header("host"), server.address.to_string());

    // Two handlers of one event, then two of another: four keys, two events.
    let keys: BTreeSet<_> = seen.iter().map(|seen| seen.header("idempotency-key").to_owned()).collect();
    assert_eq!(keys.len(), 4);
    let events: Vec<_> = seen.iter().map(|seen| seen.json()["eventId"].as_str().unwrap().to_owned()).collect();
    assert!(events[0] == events[1] && events[1] != events[2] && events[2] == events[3], "{events:?}");

    let envelope = seen[0].json();
    assert_eq!((&envelope["sessionId"], &envelope["turnId"]), (&"s-1".into(), &"turn-1".into()));
    assert_eq!(&envelope["detail"]["toolName"], "Bash");
    assert!(String::from_utf8_lossy(&seen[0].body).contains(r#""input":{ "n" : 1.00 }"#));

    // A handler that calls through hookgate copies the token.
    let token = seen[0].header("x-hookgate-dispatch");
    assert!(token.starts_with(&format!("{}.", events[0])), "{token}");
    assert!(dispatcher.is_own_traffic(token.as_bytes()));
    assert!(!dispatcher.is_own_traffic(format!("{token}0").as_bytes()));
}

#[tokio::test]
async fn each_outcome_arrives() {
    for (event, answer, expected) in [
        (Event::PreToolUse, r#""outcome":"pass""#, Decision::Allow),
        (
            Event::PreToolUse,
            r#""outcome":"deny","reason":"use the staging host""#,
            Decision::Deny { reason: "use the staging host".into(), handler: "h".into() },
        ),
        (
            Event::PreToolUse,
            r#""outcome":"modify","replacement":{ "n":1.0}"#,
            Decision::Modify(Replacement::Object("{ \"n\":1.0}".into())),
        ),
        (
            Event::UserPromptSubmit,
            r#""outcome":"deny","reason":"no""#,
            Decision::Deny { reason: "no".into(), handler: "h".into() },
        ),
        (
            Event::UserPromptSubmit,
            r#""outcome":"modify","replacement":"q""#,
            Decision::Modify(Replacement::Text("q".into())),
        ),
        (
            Event::SubagentStart,
            r#""outcome":"modify","replacement":"q""#,
            Decision::Modify(Replacement::Text("q".into())),
        ),
        (
            Event::SubagentStart,
            r#""outcome":"deny""#,
            Decision::Deny { reason: "the policy hook \"h\" refused this".into(), handler: "h".into() },
        ),
        (
            Event::Stop,
            r#""outcome":"continue","reason":"run the tests""#,
            Decision::Continue { reason: "run the tests".into(), handler: "h".into() },
        ),
        (Event::Stop, r#""outcome":"pass""#, Decision::Allow),
    ] {
        let server = PolicyServer::start(move |_| Reply::json(answer)).await;
        let dispatcher = dispatcher(HyperTransport::new());
        let hooks = hooks(event, &[("h", &server.url(), "")]);
        let verdict = dispatcher.gate(&hooks, &occasion(event), gated(event), None).await;
        assert_eq!(verdict.decision, expected, "{event:?} {answer}");
        let records = records(&dispatcher);
        assert_eq!(records.len(), 1);
        assert!(records[0].request_bytes > 200 && records[0].response_bytes > 20, "{records:?}");
        assert_eq!(records[0].attempt, if event == Event::Stop { 2 } else { 1 });
        assert_eq!(records[0].handler_id.as_deref(), Some("h"));
    }
}

#[tokio::test]
async fn handlers_are_asked_in_order_and_see_what_came_before() {
    let server = PolicyServer::start(|seen| match seen.json()["detail"]["input"]["step"].as_u64() {
        Some(0) => Reply::json(r#""outcome":"modify","replacement":{"step":1},"additionalContext":"first""#),
        Some(1) => Reply::json(r#""outcome":"modify","replacement":{"step":2}"#),
        _ => Reply::json(r#""outcome":"pass","additionalContext":"last""#),
    })
    .await;
    let url = server.url();
    let hooks = hooks(
        Event::PreToolUse,
        &[
            ("a", &url, ""),
            ("other", &url, r#""matcher":["Edit"]"#),
            ("b", &url, r#""matcher":["Bash"]"#),
            ("c", &url, ""),
        ],
    );
    let dispatcher = dispatcher(HyperTransport::new());
    let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input(r#"{"step":0}"#), None).await;
    assert_eq!(verdict.decision, Decision::Modify(Replacement::Object(r#"{"step":2}"#.into())));
    let context = |handler: &str, text: &str| AddedContext { handler: handler.into(), text: text.into() };
    assert_eq!(verdict.context, [context("a", "first"), context("c", "last")]);
    let ids: Vec<_> =
        records(&dispatcher).iter().map(|record| record.handler_id.as_deref().unwrap().to_owned()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
}

#[tokio::test]
async fn connections_are_pooled() {
    let server = PolicyServer::start(|_| Reply::pass()).await;
    let hooks = hooks(Event::PreToolUse, &[("h", &server.url(), "")]);
    let dispatcher = dispatcher(HyperTransport::new());
    for _ in 0..5 {
        let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
        assert_eq!(verdict.decision, Decision::Allow);
    }
    assert_eq!((server.seen().len(), server.connections()), (5, 1));
}

#[tokio::test]
async fn localhost_is_this_machine() {
    let server = PolicyServer::start(|_| Reply::pass()).await;
    let url = format!("http://localhost:{}/hook", server.address.port());
    let dispatcher = dispatcher(HyperTransport::new());
    let hooks = hooks(Event::PreToolUse, &[("h", &url, "")]);
    let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
    assert_eq!(verdict.decision, Decision::Allow);
}

#[tokio::test]
async fn a_connection_brings_the_credential() {
    let server = PolicyServer::start(|_| Reply::pass()).await;
    let dispatcher =
        dispatcher(HyperTransport::new().connection("policy", Connection::new().bearer("s3cret").unwrap()));
    let known =
        hooks(Event::PreToolUse, &[("h", &server.url(), r#""connection":"policy""#), ("open", &server.url(), "")]);
    dispatcher.gate(&known, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
    let seen = server.seen();
    assert_eq!((seen[0].header("authorization"), seen[1].header("authorization")), ("Bearer s3cret", ""));

    let unknown = hooks(Event::PreToolUse, &[("h", &server.url(), r#""connection":"unknown""#)]);
    let verdict = dispatcher.gate(&unknown, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
    assert!(matches!(verdict.decision, Decision::Deny { .. }), "{verdict:?}");
    assert_eq!(server.seen().len(), 2);
    assert!(!format!("{:?}", records(&dispatcher)).contains("s3cret"));
}

/// Proxy variables belong to the process, so that this test runs itself in another one that has them.
#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "the environment is what is tested")]
async fn proxy_variables_are_not_obeyed() {
    const NAME: &str = "dispatch_http::proxy_variables_are_not_obeyed";
    if std::env::var_os("HOOKGATE_TEST_PROXY").is_some() {
        let server = PolicyServer::start(|_| Reply::pass()).await;
        let dispatcher = dispatcher(HyperTransport::new());
        let hooks = hooks(Event::PreToolUse, &[("h", &server.url(), "")]);
        let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
        assert_eq!(verdict.decision, Decision::Allow);
        assert_eq!(server.seen()[0].line, "POST /hook HTTP/1.1");
        return;
    }
    let proxy = PolicyServer::start(|_| Reply::json(r#""outcome":"deny""#)).await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", NAME, "--test-threads=1"]).env("HOOKGATE_TEST_PROXY", "1");
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        child.env(name, format!("http://{}", proxy.address));
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(proxy.connections(), 0);
}

/// A server with a certificate of its own; it answers `pass` to each connection's request.
fn tls_server() -> (u16, String) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut session = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut tls = rustls::Stream::new(&mut session, &mut stream);
            if read_blocking(&mut tls).is_some() {
                let body = br#"{"schemaVersion":1,"outcome":"pass"}"#;
                let answer = super::dispatch_policy::http(200, "content-type: application/json\r\n", body);
                tls.write_all(&answer).unwrap();
                tls.flush().unwrap();
            }
        }
    });
    (port, cert.pem())
}

#[tokio::test]
async fn a_connection_may_bring_its_own_roots() {
    let (port, pem) = tls_server();
    let url = format!("https://localhost:{port}/hook");
    let trusted = Connection::new().trusting(pem.as_bytes()).unwrap();
    let dispatcher = dispatcher(HyperTransport::new().connection("policy", trusted));
    let with = hooks(Event::PreToolUse, &[("h", &url, r#""connection":"policy","timeoutMs":20000"#)]);
    let verdict = dispatcher.gate(&with, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
    assert_eq!(verdict.decision, Decision::Allow);

    // Without them nobody vouches for the server.
    let without = hooks(Event::PreToolUse, &[("h", &url, r#""timeoutMs":20000"#)]);
    let verdict = dispatcher.gate(&without, &occasion(Event::PreToolUse), tool_input("{}"), None).await;
    let Decision::Deny { reason, .. } = verdict.decision else { panic!("{verdict:?}") };
    assert!(reason.contains("certificate"), "{reason}");
    let last = records(&dispatcher).pop().unwrap();
    assert_eq!((last.outcome, last.failure), (AuditOutcome::FailedClosed, Some(FailureKind::Transport)));
}
