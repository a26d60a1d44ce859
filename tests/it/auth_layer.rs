//! A gate of a service's own, callbacks that pass it, and paths that try to: `examples/own_gate.rs` over sockets.

use std::net::SocketAddr;

use hookgate::Hookgate;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::auth_paths::{PASSING, TRICKS};
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
    let app = own_gate::app(&Hookgate::builder().build(), KEY);
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
        assert_eq!(status, 200, "{target}");
        assert!(text.starts_with("a callback for "), "{target}: {text}");
    }
    for method in ["GET", "HEAD", "OPTIONS", "DELETE"] {
        let mut client = Wire::connect(service.address).await;
        client.send(format!("{method} /api/tmp-hooks/abc HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        assert!(client.head().await.unwrap().starts_with("HTTP/1.1 200"), "{method}");
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
        assert_eq!(answer.status() == 200, passes, "{target}: {}", answer.status());
        assert_eq!(
            answer.into_body().collect().await.unwrap().to_bytes().starts_with(b"a callback"),
            passes,
            "{target}"
        );
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
}
