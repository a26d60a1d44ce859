//! Connections that are switched to another protocol, and those that are not.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::away::Away;
use crate::pingora_kit::{Closing, Upstream, Wire, closing, json, messages, model, pass, proxy, proxy_in, within};
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

/// Also when the upstream answers at once.
#[tokio::test]
async fn no_switch_is_lost() {
    let upstream = Upstream::start(|_, wire| switch(wire)).await;
    let proxy = proxy(&pass(upstream.address));
    for _ in 0..300 {
        talk(Wire::to(&proxy).await, "websocket", "websocket").await;
    }
}

#[tokio::test]
async fn the_request_has_its_path_and_its_headers() {
    let upstream = Upstream::answering(|request| json(&request.head)).await;
    let proxy = proxy(&format!(
        "[[routes]]\nname = \"r\"\nkind = \"passthrough\"\npath_prefix = \"/live\"\nupstream = \"http://{}/base\"\n",
        upstream.address
    ));
    let mut client = Wire::to(&proxy).await;
    client
        .send(
            "GET /live?room=%2F HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, X-Named\r\nX-Named: gone\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Key: k\r\nX-Hookgate-Session: s\r\n\r\n",
        )
        .await;
    let answer = client.answer().await;
    let mut sent: Vec<&str> = answer.text().lines().collect();
    sent.sort_unstable();
    let host = format!("Host: {}", upstream.address);
    let key = "Sec-WebSocket-Key: k";
    assert_eq!(sent, ["", "Connection: Upgrade", "GET /base?room=%2F HTTP/1.1", &host, key, "Upgrade: websocket"]);
}

/// What the client says before it hears of the switch is said to the new protocol.
#[tokio::test]
async fn early_words_are_not_lost() {
    let upstream = Upstream::start(|_, wire| switch(wire)).await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(format!("{}raw bytes.", upgrade("chat"))).await;
    assert!(client.head().await.unwrap().starts_with("HTTP/1.1 101"));
    assert_eq!(client.until("bytes.").await.unwrap(), "hello.you said raw bytes.");
}

#[tokio::test]
async fn either_side_may_close() {
    let (say, mut said) = tokio::sync::mpsc::channel(1);
    let upstream = Upstream::start(move |number, mut wire| {
        let say = say.clone();
        async move {
            wire.request().await.unwrap();
            wire.send("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello.").await;
            if number == 0 {
                wire.closed().await;
                say.send("the client left").await.unwrap();
            }
        }
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut first = Wire::to(&proxy).await;
    first.send(upgrade("x")).await;
    first.until("hello.").await.unwrap();
    drop(first);
    assert_eq!(within("the upstream to be left", said.recv()).await, Some("the client left"));

    let mut second = Wire::to(&proxy).await;
    second.send(upgrade("x")).await;
    second.until("hello.").await.unwrap();
    second.closed().await;
}

#[tokio::test]
async fn a_large_conversation_passes_both_ways() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.request().await.unwrap();
        wire.send("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n").await;
        while let Some(said) = wire.until(".").await {
            wire.send(said).await;
        }
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(upgrade("x")).await;
    client.head().await.unwrap();
    for size in [1, 100_000, 1_000_000] {
        let message = format!("{}.", "x".repeat(size));
        client.send(&message).await;
        assert!(client.until(".").await.unwrap() == message);
    }
}

#[tokio::test]
async fn an_unreachable_upstream_is_named() {
    let away = Away::new();
    let proxy = proxy(&pass(away.address));
    let mut client = Wire::to(&proxy).await;
    client.send(upgrade("websocket")).await;
    let answer = client.answer().await;
    assert_eq!(answer.status(), 502);
    assert!(answer.text().contains(&format!("{}: the connection was refused", away.address)), "{}", answer.text());
}

#[tokio::test]
async fn a_client_that_leaves_before_the_switch_ends_the_upstreams_work() {
    let Closing { upstream, asked, closed } = closing("").await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(upgrade("websocket")).await;
    within("the upstream to be asked", asked).await.unwrap();
    drop(client);
    within("the upstream to be left", closed).await.unwrap();
}

/// A request with a body is answered as if it had not asked to switch.
#[tokio::test]
async fn a_body_and_a_switch_do_not_go_together() {
    let upstream = Upstream::start(|_, wire| switch(wire)).await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 3\r\n\r\nabc")
        .await;
    assert_eq!(client.answer().await.text(), "not asked");
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
