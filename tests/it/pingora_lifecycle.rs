//! Start and stop.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use tokio::sync::Notify;

use crate::pingora_kit::{Upstream, Wire, chunk, json, pass, proxy, within};

fn is_free(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_err()
}

#[tokio::test]
async fn stopping_lets_an_answer_finish_and_leaves_nothing() {
    let go_on = Arc::new(Notify::new());
    let gate = go_on.clone();
    let upstream = Upstream::start(move |_, mut wire| {
        let gate = gate.clone();
        async move {
            wire.request().await.unwrap();
            wire.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
            wire.send(chunk("first")).await;
            gate.notified().await;
            wire.send(chunk("last")).await;
            wire.send("0\r\n\r\n").await;
            wire.closed().await;
        }
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let address = proxy.addresses()[0];
    let mut idle = Wire::to(&proxy).await;
    let mut client = Wire::to(&proxy).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until("first").await.unwrap();

    let stopped = tokio::task::spawn_blocking(move || proxy.stop());
    // An idle connection is closed at once, and new ones are refused; only the answer keeps the proxy.
    idle.closed().await;
    while !is_free(address) {
        tokio::task::yield_now().await;
    }
    assert!(!stopped.is_finished());
    go_on.notify_one();
    client.until("last\r\n0\r\n\r\n").await.unwrap();
    client.closed().await;
    within("the end of the proxy", stopped).await.unwrap();
}

#[tokio::test]
async fn the_grace_is_bounded() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.request().await.unwrap();
        wire.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        wire.send(chunk("first")).await;
        wire.closed().await;
    })
    .await;
    let proxy = proxy(&format!("shutdown_grace = \"100ms\"\n{}", pass(upstream.address)));
    let mut client = Wire::to(&proxy).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.until("first").await.unwrap();
    within("the end of the proxy", tokio::task::spawn_blocking(move || proxy.stop())).await.unwrap();
    client.closed().await;
}

#[tokio::test]
async fn dropping_ends_at_once() {
    let upstream = Upstream::answering(|_| json("1")).await;
    let proxy = proxy(&pass(upstream.address));
    let address = proxy.addresses()[0];
    let mut client = Wire::to(&proxy).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(client.answer().await.status(), 200);
    drop(proxy);
    client.closed().await;
    assert!(is_free(address));
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hookgate.toml");
    std::fs::write(&file, format!("[server]\nlisten = [\"{address}\"]\n{}", pass(address))).unwrap();
    let config = hookgate::config::Config::load(Some(&file), []).unwrap();
    let error = hookgate::host::pingora::Proxy::start(config).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot listen on {address}: ")), "{error}");
}

async fn status(address: SocketAddr, path: &str) -> u16 {
    let mut client = Wire::connect(address).await;
    client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
    client.answer().await.status()
}

#[tokio::test]
async fn the_control_surface_wins_over_routes() {
    let upstream = Upstream::answering(|_| "HTTP/1.1 299 Upstream\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let proxy = proxy(&pass(upstream.address));
    let address = proxy.addresses()[0];
    for (path, expected) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/hookgate/v1/sessions/s/hooks", 200),
        ("/hookgate/nothing", 404),
        ("/h%65althz", 400),
        ("/healthz/x", 299),
        ("/", 299),
    ] {
        assert_eq!(status(address, path).await, expected, "{path}");
    }
}

#[tokio::test]
async fn the_control_surface_can_have_its_own_listener() {
    let upstream = Upstream::answering(|_| "HTTP/1.1 299 Upstream\r\ncontent-length: 0\r\n\r\n".to_owned()).await;
    let proxy = proxy(&format!("control_listen = [\"127.0.0.1:0\"]\n{}", pass(upstream.address)));
    let (traffic, control) = (proxy.addresses()[0], proxy.control_addresses()[0]);
    assert_eq!(status(control, "/healthz").await, 200);
    assert_eq!(status(control, "/").await, 404);
    assert_eq!(status(traffic, "/healthz").await, 299);
    assert_eq!(status(traffic, "/").await, 299);
}
