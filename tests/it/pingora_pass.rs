//! What passes uninspected.

use std::sync::atomic::Ordering;

use crate::away::Away;
use crate::pingora_kit::{Closing, Upstream, Wire, chunk, closing, half_answering, json, pass, proxy, within};

#[tokio::test]
async fn large_bodies_pass_both_ways() {
    let upstream = Upstream::start(|_, mut wire| async move {
        let request = wire.request().await.unwrap();
        wire.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", request.body.len())).await;
        wire.send(request.body).await;
        wire.closed().await;
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let body: Vec<u8> = (0..20_000_000u32).map(|n| (n % 251) as u8).collect();

    let mut client = Wire::to(&proxy).await;
    client.send(format!("PUT /big HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len())).await;
    client.send(&body).await;
    let answer = client.answer().await;
    assert_eq!(answer.status(), 200);
    assert!(answer.body == body, "the body was changed");
}

#[tokio::test]
async fn chunked_uploads_pass() {
    let upstream = Upstream::answering(|request| json(&format!("\"{}\"", request.text()))).await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").await;
    client.send(chunk("abc")).await;
    client.send(chunk("def")).await;
    client.send("0\r\n\r\n").await;
    assert_eq!(client.answer().await.text(), "\"abcdef\"");
}

#[tokio::test]
async fn the_request_is_rewritten_for_its_upstream_and_otherwise_left_alone() {
    let upstream = Upstream::answering(|request| json(&request.head)).await;
    let proxy = proxy(&format!(
        "[[routes]]\nname = \"tools\"\nkind = \"passthrough\"\npath_prefix = \"/tools/x\"\n\
         upstream = \"http://{}/base\"\n",
        upstream.address
    ));
    let mut client = Wire::to(&proxy).await;
    client
        .send(
            "GET /tools/x/a%20b/c?q=1&r=%2F HTTP/1.1\r\nHost: hookgate.example\r\nX-UPPER-Case: 1\r\n\
             Connection: keep-alive, X-Named\r\nX-Named: gone\r\nKeep-Alive: timeout=5\r\n\
             X-Hookgate-Session: s\r\nAccept-Encoding: gzip\r\n\r\n",
        )
        .await;
    let answer = client.answer().await;
    let expected = format!(
        "GET /base/a%20b/c?q=1&r=%2F HTTP/1.1\r\nHost: {}\r\nX-UPPER-Case: 1\r\nAccept-Encoding: gzip\r\n\r\n",
        upstream.address
    );
    let mut sent: Vec<&str> = answer.text().lines().collect();
    let mut wanted: Vec<&str> = expected.lines().collect();
    // pingora keeps the headers, but not always their order.
    sent.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(sent, wanted);

    client.send("GET /tools/x?q=1 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(client.answer().await.text().starts_with("GET /base?q=1 HTTP/1.1\r\n"));
    client.send("GET http://a/tools/x/y HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(client.answer().await.text().starts_with("GET /base/y HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_closed_pooled_connection_is_not_the_clients_problem() {
    let upstream = Upstream::start(|number, mut wire| async move {
        let request = wire.request().await.unwrap();
        wire.send(json(request.text())).await;
        // The first connection takes one more request and closes without a word.
        if number == 0 {
            wire.request().await;
        } else {
            wire.closed().await;
        }
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    for body in ["1", "2"] {
        client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n{body}")).await;
        let answer = client.answer().await;
        assert_eq!((answer.status(), answer.text()), (200, body));
    }
    assert_eq!(upstream.connections(), 2);
}

#[tokio::test]
async fn a_request_that_was_being_answered_is_not_sent_again() {
    let (upstream, requests) = half_answering("1").await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n1").await;
    assert_eq!(client.answer().await.status(), 200);
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\n2").await;
    assert_eq!(client.answer().await.status(), 502);
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_unreachable_upstream_is_named() {
    let away = Away::new();
    let proxy = proxy(&pass(away.address));
    let mut client = Wire::to(&proxy).await;
    client.send("GET /?key=secret HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert!(answer.text().contains(&format!("{}: the connection was refused", away.address)), "{}", answer.text());
}

#[tokio::test]
async fn servers_take_turns_and_one_that_is_away_is_passed_over() {
    let away = Away::new();
    let one = Upstream::answering(|_| json("1")).await;
    let two = Upstream::answering(|_| json("2")).await;
    let proxy = proxy(&format!(
        "[[routes]]\nname = \"pass\"\nkind = \"passthrough\"\npath_prefix = \"/\"\n\
         upstream = [\"http://{}\", \"http://{}\", \"http://{}\"]\n",
        one.address, away.address, two.address
    ));
    let mut client = Wire::to(&proxy).await;
    for _ in 0..6 {
        client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx").await;
        assert_eq!(client.answer().await.status(), 200);
    }
    assert!(one.connections() > 0 && two.connections() > 0);
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_upstreams_work() {
    let Closing { upstream, asked, closed } = closing("").await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    within("the upstream to be asked", asked).await.unwrap();
    drop(client);
    within("the upstream to be left", closed).await.unwrap();
}

#[tokio::test]
async fn an_answer_that_broke_off_does_not_look_complete() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.request().await.unwrap();
        wire.send("HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ntransfer-encoding: chunked\r\n\r\n")
            .await;
        wire.send(chunk("half")).await;
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert!(client.try_answer().await.is_none(), "the answer has an end");
}

#[tokio::test]
async fn the_answer_to_head_has_its_length_and_no_body() {
    let upstream = Upstream::answering(|_| {
        "HTTP/1.1 200 OK\r\ncontent-length: 12\r\nx-answer: 1\r\nkeep-alive: timeout=5\r\n\r\n".into()
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    for _ in 0..2 {
        client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let head = client.head().await.unwrap().to_ascii_lowercase();
        assert!(head.contains("content-length: 12\r\n") && head.contains("x-answer: 1\r\n"), "{head}");
        assert!(!head.contains("keep-alive: timeout"), "{head}");
    }
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_has_an_end_for_the_client() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.request().await.unwrap();
        wire.send("HTTP/1.1 200 OK\r\nx-answer: 1\r\n\r\nall of it").await;
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let answer = client.answer().await;
        assert_eq!((answer.text(), answer.header("transfer-encoding")), ("all of it", Some("chunked")));
    }
}
