//! A gate of a service's own, callbacks that pass it, and paths that try to: `examples/own_gate.rs` over sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use hookgate::Hookgate;
use hookgate::callback::{Settings, TmpHooks, TokenKey};
use hookgate::store::MemoryStore;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::auth_paths::{PASSING, TRICKS, UNKNOWN};
use crate::pingora_kit::{Wire, within};

#[path = "../../examples/own_gate.rs"]
#[expect(dead_code, reason = "its main is for cargo run")]
mod own_gate;

const KEY: &str = "the-key-of-the-service";

struct Service {
    address: SocketAddr,
    task: JoinHandle<std::io::Result<()>>,
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn service() -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings::default().base_url(&format!("http://{address}")).unwrap();
    let callbacks = TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None);
    let app = own_gate::app(&Hookgate::builder().build(), &callbacks, KEY);
    Service { address, task: tokio::spawn(axum::serve(listener, app).into_future()) }
}

/// Status and text of a request whose target is sent as it is.
async fn ask(service: &Service, target: &str, headers: &str) -> (u16, String) {
    let mut client = Wire::connect(service.address).await;
    client.send(format!("POST {target} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n{headers}\r\n")).await;
    let answer = client.answer().await;
    (answer.status(), answer.text().to_owned())
}

#[tokio::test]
async fn exactly_callbacks_pass() {
    let service = service().await;
    for target in PASSING {
        let (status, text) = ask(&service, target, "").await;
        assert_eq!((status, text.as_str()), (404, UNKNOWN), "{target}");
    }
    for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
        let mut client = Wire::connect(service.address).await;
        client.send(format!("{method} /api/tmp-hooks/abc HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        assert!(client.head().await.unwrap().starts_with("HTTP/1.1 405"), "{method}");
    }
}

#[tokio::test]
async fn no_trick_with_the_path_passes() {
    let service = service().await;
    for target in TRICKS {
        let (status, text) = ask(&service, target, "").await;
        // 400 is hyper's own, for what is no target at all.
        assert!(matches!(status, 400 | 401), "{target}: {status} {text}");
    }
}

#[tokio::test]
async fn no_trick_passes_over_http_2() {
    let service = service().await;
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http::<Full<bytes::Bytes>>();
    let mut asked = 0;
    for (target, passes) in PASSING.iter().map(|path| (path, true)).chain(TRICKS.iter().map(|path| (path, false))) {
        let Ok(uri) = format!("http://{}{target}", service.address).parse::<http::Uri>() else { continue };
        if !target.starts_with('/') || uri.path_and_query().is_none_or(|path| path.as_str() != *target) {
            continue; // This client cannot send it.
        }
        asked += 1;
        let request = http::Request::post(uri).body(Full::default()).unwrap();
        let answer = within("an answer", client.request(request)).await.unwrap();
        assert_eq!(answer.status() == 404, passes, "{target}: {}", answer.status());
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes() == UNKNOWN, passes, "{target}");
    }
    assert!(asked > 30, "{asked}");
}

#[tokio::test]
async fn everything_else_is_the_services_own_decision() {
    let service = service().await;
    let key = format!("x-service-key: {KEY}\r\n");
    for target in ["/private/x", "/hookgate/v1/audit", "/healthz", "/nothing"] {
        assert_eq!(ask(&service, target, "").await, (401, "this service asks for its key\n".to_owned()), "{target}");
        assert_eq!(ask(&service, target, "x-service-key: other\r\n").await.0, 401, "{target}");
        assert_ne!(ask(&service, target, &key).await.0, 401, "{target}");
    }
    assert_eq!(ask(&service, "/private/x", &key).await, (200, "/private/x for operator\n".to_owned()));

    // Whoever has the key gets a callback for a worker that has none.
    let (status, text) = ask(&service, "/hookgate/v1/sessions/s1/tmp-hooks", &key).await;
    let issued: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 201, "{text}");
    let url = issued["url"].as_str().unwrap();
    assert_eq!(ask(&service, url, "").await, (200, "{\"received\":true}".to_owned()));
    assert_eq!(ask(&service, "/hookgate/v1/sessions/s1/inbox", "").await.0, 401);
}
