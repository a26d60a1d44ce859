//! The control surface over a socket.

use std::net::SocketAddr;
use std::sync::Arc;

use hookgate::Hookgate;
use hookgate::audit::{AuditLog, AuditOutcome, AuditRecord};
use hookgate::callback::{Settings, TmpHooks, TokenKey};
use hookgate::control::{ControlState, Metrics, Readiness, owns, router};
use hookgate::hooks::{Event, Occasion, Plane};
use hookgate::id::SessionKey;
use hookgate::store::MemoryStore;
use hookgate::time::Timestamp;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

struct Served {
    address: SocketAddr,
    audit: AuditLog,
    readiness: Readiness,
}

async fn serve() -> Served {
    serve_with(Metrics::detached()).await
}

async fn serve_with(metrics: Metrics) -> Served {
    let tmp_hooks = TmpHooks::new(Settings::default(), Arc::new(MemoryStore::new()), TokenKey::random(), None);
    let core = Hookgate::builder().build();
    let state = ControlState { core, tmp_hooks, readiness: Readiness::new(), metrics };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let served = Served {
        address: listener.local_addr().unwrap(),
        audit: state.core.audit().clone(),
        readiness: state.readiness.clone(),
    };
    tokio::spawn(async move { axum::serve(listener, router(state)).await });
    served
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.body))
    }

    /// A problem's detail, after checking what every problem has.
    fn problem(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.body);
        assert!(self.head.contains("content-type: application/problem+json"), "{}", self.head);
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert!(problem["type"].is_string() && problem["title"].is_string());
        problem["detail"].as_str().unwrap().to_owned()
    }
}

impl Served {
    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "").await
    }

    async fn send(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn record(&self, tenant: &str, session: &str, turn: &str, event: Event, outcome: AuditOutcome) {
        let occasion = Occasion {
            event,
            session: SessionKey { tenant: tenant.into(), session: session.into() },
            turn_id: Some(turn.into()),
            tool_call_id: None,
            task_id: None,
            agent_id: None,
            parent_agent_id: None,
            model: None,
            plane: Plane::Model,
            route: "anthropic".into(),
            name: None,
            server: None,
            trace: None,
        };
        self.audit.record(AuditRecord::of(&occasion, "e".into(), outcome, Timestamp::from_unix_millis(0)));
    }
}

fn turns(page: &Value) -> Vec<&str> {
    page["items"].as_array().unwrap().iter().map(|record| record["turnId"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn health_tells_running_from_ready() {
    let served = serve().await;
    assert_eq!(served.get("/healthz").await.status, 200);
    assert!(served.get("/readyz").await.problem(503).contains("starting or stopping"));
    served.readiness.set(true);
    assert_eq!(served.get("/readyz").await.status, 200);
    served.readiness.set(false);
    assert_eq!(served.get("/readyz").await.status, 503);
}

#[tokio::test]
async fn records_come_page_by_page_each_in_the_order_of_time() {
    let served = serve().await;
    for turn in ["t1", "t2", "t3"] {
        served.record("default", "s 1", turn, Event::PreToolUse, AuditOutcome::Pass);
    }
    for base in ["/hookgate/v1/sessions/s%201/hooks", "/api/sessions/s%201/hooks"] {
        let first = served.get(&format!("{base}?limit=2")).await.json();
        assert_eq!(turns(&first), ["t2", "t3"]);
        assert_eq!(first["items"][0]["event"], "PreToolUse");
        let second = served.get(&format!("{base}?limit=2&before={}", first["next"].as_str().unwrap())).await.json();
        assert_eq!((turns(&second), &second["next"]), (vec!["t1"], &Value::Null));
    }
}

#[tokio::test]
async fn records_are_filtered() {
    let served = serve().await;
    served.record("default", "s", "t1", Event::PreToolUse, AuditOutcome::Deny);
    served.record("default", "s", "t2", Event::PreToolUse, AuditOutcome::Pass);
    served.record("default", "s", "t3", Event::Stop, AuditOutcome::FailedOpen);
    for (query, expected) in [
        ("turn=t2", vec!["t2"]),
        ("event=PreToolUse", vec!["t1", "t2"]),
        ("outcome=failed_open", vec!["t3"]),
        ("event=PreToolUse&outcome=deny", vec!["t1"]),
        ("event=Stop&outcome=deny", vec![]),
        ("", vec!["t1", "t2", "t3"]),
    ] {
        let page = served.get(&format!("/api/sessions/s/hooks?{query}")).await.json();
        assert_eq!(turns(&page), expected, "{query}");
    }
}

#[tokio::test]
async fn records_come_line_by_line_when_asked_for() {
    let served = serve().await;
    served.record("default", "s", "t1", Event::Stop, AuditOutcome::Pass);
    served.record("default", "s", "t2", Event::Stop, AuditOutcome::Pass);
    let answer = served.send("GET", "/api/sessions/s/hooks", "accept: text/html, Application/X-NDJSON;q=0.9\r\n").await;
    assert!(answer.head.contains("content-type: application/x-ndjson"), "{}", answer.head);
    let lines: Vec<Value> = answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line["turnId"].as_str().unwrap()).collect::<Vec<_>>(), ["t1", "t2"]);
}

#[tokio::test]
async fn a_session_id_of_several_tenants_has_to_be_narrowed() {
    let served = serve().await;
    served.record("blue", "s", "b", Event::Stop, AuditOutcome::Pass);
    served.record("red", "s", "r", Event::Stop, AuditOutcome::Pass);
    let answer = served.get("/api/sessions/s/hooks").await;
    assert!(answer.problem(409).contains("?tenant="));
    assert_eq!(answer.json()["tenants"], serde_json::json!(["blue", "red"]));
    assert_eq!(turns(&served.get("/api/sessions/s/hooks?tenant=red").await.json()), ["r"]);
    assert!(turns(&served.get("/api/sessions/s/hooks?tenant=green").await.json()).is_empty());
}

#[tokio::test]
async fn a_session_without_records_is_an_empty_list() {
    let answer = serve().await.get("/hookgate/v1/sessions/nobody/hooks").await;
    assert_eq!((answer.status, answer.json()), (200, serde_json::json!({"items": [], "next": null})));
}

#[tokio::test]
async fn questions_that_make_no_sense_are_explained() {
    let served = serve().await;
    for (query, expected) in [
        ("limit=0", "from 1 to 500"),
        ("limit=501", "from 1 to 500"),
        ("limit=x", "from 1 to 500"),
        ("event=preToolUse", "PreToolUse"),
        ("outcome=allowed", "failed_open"),
        ("turns=t", "limit, before, turn, event, outcome, tenant"),
        ("turn=a&turn=b", "given twice"),
    ] {
        let detail = served.get(&format!("/api/sessions/s/hooks?{query}")).await.problem(400);
        assert!(detail.contains(expected), "{query}: {detail}");
    }
    assert!(served.get("/api/sessions/%ff/hooks").await.problem(400).contains("UTF-8"));
}

#[tokio::test]
async fn other_paths_and_methods_are_problems_too() {
    let served = serve().await;
    for path in ["/hookgate/v1/nothing", "/hookgate", "/hookgate/v1/session"] {
        assert!(owns(path));
        assert!(served.get(path).await.problem(404).contains(path));
    }
    let answer = served.send("POST", "/api/sessions/s/hooks", "content-length: 0\r\n").await;
    assert!(answer.problem(405).contains("POST"));
    assert!(answer.head.contains("\r\nallow: get,head"), "{}", answer.head);
    assert_eq!(served.send("HEAD", "/healthz", "").await.body, "");
}

/// The only test that installs a recorder: it is one for the whole process.
#[tokio::test]
async fn metrics_are_shown_in_prometheus_form() {
    let metrics = Metrics::install().unwrap();
    assert!(Metrics::install().is_err());
    metrics::counter!("hookgate_test_total", "outcome" => "pass").increment(2);
    metrics::histogram!("hookgate_test_seconds").record(0.003);
    let served = serve_with(metrics).await;
    let answer = served.get("/metrics").await;
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    assert!(answer.body.contains("hookgate_test_total{outcome=\"pass\"} 2"), "{}", answer.body);
    assert!(answer.body.contains("hookgate_test_seconds_bucket{le=\"0.005\"} 1"), "{}", answer.body);
}
