//! Connections that are switched to another protocol, and those that are not.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::pingora_kit::{Upstream, Wire, json, messages, model, pass, proxy, proxy_in};
use crate::pingora_tls_kit::{certificates, route, tls_server};

fn upgrade(protocols: &str) -> String {
    format!("GET /x HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: {protocols}\r\n\r\n")
}

/// Switches to whatever it is asked for, and repeats what is said then.
async fn switch<S: AsyncRead + AsyncWrite + Unpin>(mut wire: Wire<S>) {
    let request = wire.request().await.unwrap();
    let Some(protocol) = request.header("upgrade") else {
        wire.send(json("not asked")).await;
        return wire.closed().await;
    };
    assert_eq!(request.header("connection"), Some("Upgrade"));
    // pingora loses an upgrade that is answered before it has noted that the request has no body.
    tokio::time::sleep(Duration::from_millis(100)).await;
    wire.send(format!("HTTP/1.1 101 Switching Protocols\r\nupgrade: {protocol}\r\nconnection: upgrade\r\n\r\nhello."))
        .await;
    let said = wire.until(".").await.unwrap();
    wire.send(format!("you said {said}")).await;
    wire.closed().await;
}

async fn talk(mut client: Wire, protocols: &str, expected: &str) {
    client.send(upgrade(protocols)).await;
    let head = client.head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    assert!(head.to_ascii_lowercase().contains(&format!("upgrade: {expected}\r\n")), "{head}");
    assert_eq!(client.until(".").await.unwrap(), "hello.");
    client.send("raw bytes.").await;
    assert_eq!(client.until("bytes.").await.unwrap(), "you said raw bytes.");
}

#[tokio::test]
async fn any_protocol_is_switched_through_after_101() {
    let upstream = Upstream::start(|_, wire| switch(wire)).await;
    let proxy = proxy(&pass(upstream.address));
    for (asked, expected) in
        [("websocket", "websocket"), ("chat/2", "chat/2"), ("h2c, chat/2, websocket", "chat/2, websocket")]
    {
        talk(Wire::to(&proxy).await, asked, expected).await;
    }
}

#[tokio::test]
async fn an_upstream_that_prefers_http_2_is_asked_in_http_1() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "up", &["localhost"]);
    let (address, _tasks) = tls_server(folder.path(), &["h2", "http/1.1"], |stream| switch(Wire::new(stream))).await;
    let url = format!("https://localhost:{}", address.port());
    let proxy = proxy_in(folder.path(), &route("passthrough", &url, "up-ca.pem"));
    talk(Wire::to(&proxy).await, "websocket", "websocket").await;
}

/// What follows such a switch would be HTTP that nobody routes.
#[tokio::test]
async fn http_itself_is_not_switched_to() {
    for protocols in ["h2c", "HTTP/2.0", "TLS/1.2, h2c"] {
        let upstream = Upstream::start(|_, wire| switch(wire)).await;
        let proxy = proxy(&pass(upstream.address));
        let mut client = Wire::to(&proxy).await;
        client.send(upgrade(protocols)).await;
        assert_eq!(client.answer().await.text(), "not asked", "{protocols}");
    }
}

/// An upstream that switches without having been asked is not believed.
#[tokio::test]
async fn a_switch_that_nobody_asked_for_is_an_error() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.request().await.unwrap();
        wire.send("HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\nhello.").await;
        wire.closed().await;
    })
    .await;
    for (route, request) in [
        (pass(upstream.address), upgrade("h2c")),
        (pass(upstream.address), "GET / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()),
        (model(upstream.address), messages(false)),
    ] {
        let proxy = proxy(&route);
        let mut client = Wire::to(&proxy).await;
        client.send(request).await;
        let answer = client.answer().await;
        assert!(answer.status() >= 500 && !answer.text().contains("hello"), "{}", answer.head);
    }
}

#[tokio::test]
async fn bytes_after_a_refused_upgrade_are_the_next_request() {
    let upstream = Upstream::answering(|request| json(request.head.lines().next().unwrap())).await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(format!("{}GET /two HTTP/1.1\r\nhost: a\r\n\r\n", upgrade("websocket"))).await;
    assert_eq!(client.answer().await.text(), "GET /x HTTP/1.1");
    assert_eq!(client.answer().await.text(), "GET /two HTTP/1.1");
}
