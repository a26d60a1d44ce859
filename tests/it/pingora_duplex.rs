//! What passes uninspected goes both ways at the same time.

use crate::pingora_kit::{Upstream, Wire, chunk, pass, proxy, within};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const ASKS_FIRST: &str = "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

#[tokio::test]
async fn an_answer_may_begin_before_its_request_ends() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.head().await.unwrap();
        wire.send(CHUNKED).await;
        while let Some(piece) = wire.chunk().await.filter(|piece| !piece.is_empty()) {
            wire.send(chunk(std::str::from_utf8(&piece).unwrap())).await;
        }
        wire.send("0\r\n\r\n").await;
        wire.closed().await;
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").await;
    assert!(client.head().await.unwrap().starts_with("HTTP/1.1 200"));
    for word in ["one", "two", "three"] {
        client.send(chunk(word)).await;
        assert_eq!(client.chunk().await.unwrap(), word.as_bytes());
    }
    client.send("0\r\n\r\n").await;
    assert!(client.chunk().await.unwrap().is_empty());
}

/// The upstream says all that it will say while the client has not sent all: nobody waits for the rest.
#[tokio::test]
async fn a_refusal_ends_the_upload() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Arc::new(std::sync::Mutex::new(Some(tell)));
    let upstream = Upstream::start(move |_, mut wire| {
        let tell = tell.lock().unwrap().take();
        async move {
            wire.head().await.unwrap();
            wire.send("HTTP/1.1 413 Content Too Large\r\ncontent-length: 3\r\n\r\nno!").await;
            wire.closed().await;
            let _ = tell.unwrap().send(());
        }
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nhalf").await;
    let answer = client.answer().await;
    assert_eq!((answer.status(), answer.text()), (413, "no!"));
    assert_eq!(answer.header("connection"), Some("close"));
    within("the upstream to be left", told).await.unwrap();
    client.closed().await;
}

#[tokio::test]
async fn the_upstream_asks_for_a_body_that_waits() {
    let upstream = Upstream::start(|_, mut wire| async move {
        while let Some(head) = wire.head().await {
            assert!(head.contains("expect: 100-continue\r\n"), "{head}");
            wire.send(CONTINUE).await;
            assert!(wire.until("last").await.is_some());
            wire.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    for _ in 0..2 {
        client.send(ASKS_FIRST).await;
        assert!(client.head().await.unwrap().starts_with("HTTP/1.1 100"));
        client.send("last").await;
        assert_eq!(client.answer().await.status(), 200);
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn an_upstream_that_asks_and_leaves_is_named() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.head().await.unwrap();
        wire.send(CONTINUE).await;
        assert!(wire.until("last").await.is_some());
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(ASKS_FIRST).await;
    assert!(client.head().await.unwrap().starts_with("HTTP/1.1 100"));
    client.send("last").await;
    let answer = client.answer().await;
    assert_eq!(answer.status(), 502);
    assert!(answer.text().contains(&upstream.address.to_string()), "{}", answer.text());
}

/// Words before the answer are for those who know them, and so are chunks.
#[tokio::test]
async fn an_older_client_gets_what_it_knows() {
    let upstream = Upstream::start(|_, mut wire| async move {
        while wire.request().await.is_some() {
            wire.send("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n").await;
            wire.send(CHUNKED).await;
            wire.send(chunk("text")).await;
            wire.send("0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let hints = client.head().await.unwrap();
    assert!(hints.starts_with("HTTP/1.1 103") && hints.to_ascii_lowercase().contains("link: </a>\r\n"), "{hints}");
    assert_eq!(client.answer().await.text(), "text");

    let mut older = Wire::to(&proxy).await;
    older.send("GET / HTTP/1.0\r\nhost: a\r\n\r\n").await;
    let answer = older.answer().await;
    assert_eq!((answer.status(), answer.text(), answer.header("transfer-encoding")), (200, "text", None));
}
