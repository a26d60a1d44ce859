//! Handlers that offer HTTP/2 by ALPN.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use hookgate::dispatch::{Connection, Decision, HyperTransport};
use hookgate::hooks::{Event, FailureKind};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::dispatch_policy::{PATIENCE, dispatcher, gated, hooks, occasion, records, tool_input};

/// A policy service with TLS, by hyper: it offers these protocols, answers `pass`, and floods on `/flood`.
async fn alpn_server(alpn: &[&str]) -> (u16, String, Arc<AtomicUsize>, mpsc::Receiver<String>) {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (connections, (tell, told)) = (Arc::new(AtomicUsize::new(0)), mpsc::channel(64));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, tell, count) = (acceptor.clone(), tell.clone(), count.clone());
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let service = service_fn(move |request| answer(request, tell.clone()));
                let builder = Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    (port, cert.pem(), connections, told)
}

async fn answer(
    request: http::Request<hyper::body::Incoming>,
    tell: mpsc::Sender<String>,
) -> Result<http::Response<hookgate::Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let event = serde_json::from_slice::<serde_json::Value>(&body).unwrap()["event"].clone();
    tell.try_send(format!("{:?} {} {event}", head.version, head.uri.path())).unwrap();
    let body = match head.uri.path() {
        "/flood" => {
            let piece = || Ok::<_, hookgate::BoxError>(Frame::data(Bytes::from(vec![b' '; 16 << 10])));
            let cut = Cut(tell);
            let endless = futures_util::stream::repeat_with(move || {
                let _until_dropped = &cut;
                piece()
            });
            hookgate::Body::wrap(StreamBody::new(endless))
        }
        _ => hookgate::Body::from(r#"{"schemaVersion":1,"outcome":"pass"}"#),
    };
    Ok(http::Response::builder().header("content-type", "application/json").body(body).unwrap())
}

/// Tells that a flood was cut off.
struct Cut(mpsc::Sender<String>);

impl Drop for Cut {
    fn drop(&mut self) {
        let _ = self.0.try_send("cut".to_owned());
    }
}

/// A service that offers HTTP/2 is asked in HTTP/2, all events on one connection; others in HTTP/1.1.
#[tokio::test]
async fn a_handler_chooses_the_version() {
    for (alpn, version) in [(&["h2", "http/1.1"] as &[_], "HTTP/2.0"), (&["http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")] {
        let (port, pem, connections, mut told) = alpn_server(alpn).await;
        let trusted = Connection::new().trusting(pem.as_bytes()).unwrap();
        let dispatcher = dispatcher(HyperTransport::new().connection("policy", trusted));
        let more = r#""connection":"policy","timeoutMs":20000"#;
        for event in [Event::PreToolUse, Event::UserPromptSubmit, Event::Stop] {
            let hooks = hooks(event, &[("h", &format!("https://localhost:{port}/hook"), more)]);
            let verdict = dispatcher.gate(&hooks, &occasion(event), gated(event), None).await;
            assert_eq!(verdict.decision, Decision::Allow, "{:?}", records(&dispatcher));
            assert_eq!(told.recv().await.unwrap(), format!("{version} /hook \"{}\"", event.name()));
        }
        assert_eq!(connections.load(Ordering::SeqCst), 1, "{alpn:?}");
    }
}

/// Reading stops at the cap there too, and costs the stream alone: the connection goes on.
#[tokio::test]
async fn an_http_2_answer_over_the_cap_costs_its_stream_alone() {
    let (port, pem, connections, mut told) = alpn_server(&["h2"]).await;
    let trusted = Connection::new().trusting(pem.as_bytes()).unwrap();
    let dispatcher = dispatcher(HyperTransport::new().connection("policy", trusted));
    let event = Event::PreToolUse;
    for _ in 0..3 {
        for (path, failure) in [("flood", Some(FailureKind::TooLarge)), ("hook", None)] {
            let url = format!("https://localhost:{port}/{path}");
            let hooks = hooks(event, &[("h", &url, r#""connection":"policy","timeoutMs":20000"#)]);
            dispatcher.gate(&hooks, &occasion(event), tool_input("{}"), None).await;
            assert_eq!(records(&dispatcher).pop().unwrap().failure, failure);
            assert!(told.recv().await.unwrap().starts_with("HTTP/2.0"));
            if failure.is_some() {
                assert_eq!(tokio::time::timeout(PATIENCE, told.recv()).await.unwrap().unwrap(), "cut");
            }
        }
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}
