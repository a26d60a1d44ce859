//! Inspected exchanges.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use crate::away::Away;
use crate::pingora_kit::{
    BEGIN, Closing, END, EVENTS, Upstream, WHOLE, Wire, chunk, closing, delta, half_answering, json, messages, model,
    proxy, proxy_with, within,
};

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "the test says a handful of events")]
async fn events_arrive_one_by_one() {
    let (say, said) = mpsc::channel::<String>(16);
    let said = Arc::new(tokio::sync::Mutex::new(said));
    let upstream = Upstream::start(move |_, mut wire| {
        let said = said.clone();
        async move {
            wire.request().await.unwrap();
            wire.send(EVENTS).await;
            while let Some(event) = said.lock().await.recv().await {
                wire.send(chunk(&event)).await;
            }
            wire.send("0\r\n\r\n").await;
            wire.closed().await;
        }
    })
    .await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(messages(true)).await;
    say.send(BEGIN.to_owned()).await.unwrap();
    let head = client.head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    client.until("content_block_start").await.unwrap();
    // The next event is only sent when the one before has arrived.
    for text in ["one", "two", "three"] {
        say.send(delta(text)).await.unwrap();
        client.until(&format!("\"text\":\"{text}\"")).await.unwrap();
    }
    say.send(END.to_owned()).await.unwrap();
    drop(say);
    client.until("message_stop\"}\n\n\r\n0\r\n\r\n").await.unwrap();
}

#[tokio::test]
async fn the_connection_goes_on_after_an_exchange() {
    let upstream = Upstream::answering(|_| json(WHOLE)).await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    for _ in 0..20 {
        client.send(messages(false)).await;
        let answer = client.answer().await;
        assert_eq!((answer.status(), answer.text()), (200, WHOLE));
        assert_eq!(answer.header("content-length"), Some(WHOLE.len().to_string().as_str()));
        assert_eq!(answer.header("connection"), Some("keep-alive"));
    }
    // Not always 1: pingora gives a pooled connection up when it is interrupted while it takes it.
    assert!(upstream.connections() < 20, "no pooled connection was used again");
}

#[tokio::test]
async fn a_request_sent_early_does_not_look_like_a_client_that_left() {
    let upstream = Upstream::answering(|_| json(WHOLE)).await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(format!("{0}{0}{0}", messages(false))).await;
    for _ in 0..3 {
        assert_eq!(client.answer().await.text(), WHOLE);
    }
}

#[tokio::test]
async fn the_upstream_gets_the_body_and_its_own_headers() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let upstream = Upstream::answering(move |request| {
        seen.lock().unwrap().push(request);
        json(WHOLE)
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let route = format!("{}header_env = {{ \"x-api-key\" = \"UPSTREAM_KEY\" }}\n", model(upstream.address));
    let proxy = proxy_with(folder.path(), &route, &[("UPSTREAM_KEY", "of-the-upstream")]);
    let mut client = Wire::to(&proxy).await;
    client.send(messages(false)).await;
    client.answer().await;
    let request = heads.lock().unwrap().remove(0);
    assert!(request.head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{}", request.head);
    assert_eq!(request.header("host"), Some(upstream.address.to_string().as_str()));
    assert_eq!(request.header("x-api-key"), Some("of-the-upstream"));
    assert_eq!(request.header("transfer-encoding"), None);
    assert!(messages(false).ends_with(request.text()), "{}", request.text());
}

#[tokio::test]
async fn a_client_that_leaves_before_the_first_byte_ends_the_upstreams_work() {
    let Closing { upstream, asked, closed } = closing("").await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(messages(true)).await;
    within("the upstream to be asked", asked).await.unwrap();
    drop(client);
    within("the upstream to be left", closed).await.unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_within_the_answer_ends_the_upstreams_work() {
    let start: &'static str = format!("{EVENTS}{}", chunk(BEGIN)).leak();
    let Closing { upstream, closed, .. } = closing(start).await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(messages(true)).await;
    client.until("content_block_start").await.unwrap();
    drop(client);
    within("the upstream to be left", closed).await.unwrap();
}

#[tokio::test]
async fn a_body_declared_too_large_is_refused_before_it_is_asked_for() {
    let upstream = Upstream::answering(|_| json(WHOLE)).await;
    let proxy = proxy(&format!("[limits]\nmax_request_bytes = 1024\n{}", model(upstream.address)));
    let mut client = Wire::to(&proxy).await;
    client.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 2000\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.status(), 413, "{}", answer.head);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(answer.text().contains("max_request_bytes"), "{}", answer.text());
    client.closed().await;

    // One that sends all of it at once gets to read the refusal all the same.
    let mut client = Wire::to(&proxy).await;
    client.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 20000000\r\n\r\n").await;
    client.send(vec![b' '; 20_000_000]).await;
    assert_eq!(client.answer().await.status(), 413);
    client.closed().await;

    let mut client = Wire::to(&proxy).await;
    client.send(messages(false)).await;
    assert_eq!(client.answer().await.status(), 200);
}

#[tokio::test]
async fn a_body_that_grows_too_large_is_refused() {
    let upstream = Upstream::answering(|_| json(WHOLE)).await;
    let proxy = proxy(&format!("[limits]\nmax_request_bytes = 1024\n{}", model(upstream.address)));
    let mut client = Wire::to(&proxy).await;
    client.send("POST /v1/messages HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").await;
    for _ in 0..100 {
        client.try_send(chunk(&" ".repeat(100_000))).await;
    }
    client.try_send("0\r\n\r\n").await;
    let answer = client.answer().await;
    assert_eq!(answer.status(), 413);
    assert_eq!(answer.header("connection"), Some("close"));
    client.closed().await;
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_body_that_waits_is_asked_for() {
    let upstream =
        Upstream::answering(|request| json(if request.header("expect").is_none() { WHOLE } else { "{}" })).await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    let request = messages(false).replace("X-Api-Key: k\r\n", "Expect: 100-continue\r\n");
    let (head, body) = request.split_at(request.find("\r\n\r\n").unwrap() + 4);
    client.send(head).await;
    assert!(client.head().await.unwrap().starts_with("HTTP/1.1 100"));
    client.send(body).await;
    assert_eq!(client.answer().await.text(), WHOLE);
}

#[tokio::test]
async fn a_closed_pooled_connection_is_not_the_clients_problem() {
    let upstream = Upstream::start(|number, mut wire| async move {
        wire.request().await.unwrap();
        wire.send(json(WHOLE)).await;
        if number == 0 {
            wire.request().await;
        } else {
            wire.closed().await;
        }
    })
    .await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    for _ in 0..2 {
        client.send(messages(false)).await;
        assert_eq!(client.answer().await.text(), WHOLE);
    }
    assert_eq!(upstream.connections(), 2);
}

#[tokio::test]
async fn a_request_that_was_being_answered_is_not_sent_again() {
    let (upstream, requests) = half_answering(WHOLE).await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(messages(false)).await;
    assert_eq!(client.answer().await.status(), 200);
    client.send(messages(false)).await;
    assert!(client.answer().await.status() >= 500);
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_unreachable_upstream_is_named() {
    let away = Away::new();
    let proxy = proxy(&model(away.address));
    let mut client = Wire::to(&proxy).await;
    client.send(messages(false)).await;
    let answer = client.answer().await;
    assert!(answer.status() >= 500, "{}", answer.head);
    assert!(answer.text().contains(&format!("{}: the connection was refused", away.address)), "{}", answer.text());
}

#[tokio::test]
async fn an_early_refusal_of_the_upstream_is_the_answer() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.head().await.unwrap();
        let body = "{\"type\":\"error\",\"error\":{\"type\":\"request_too_large\",\"message\":\"no\"}}";
        wire.send(format!(
            "HTTP/1.1 413 Too Large\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
        wire.closed().await;
    })
    .await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    let text = "x".repeat(8_000_000);
    let body =
        format!("{{\"model\":\"m\",\"max_tokens\":9,\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}");
    client.send(format!("POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
    let answer = client.answer().await;
    assert_eq!(answer.status(), 413, "{}", answer.text());
    assert!(answer.text().contains("request_too_large"));
}

#[tokio::test]
async fn http_1_0_gets_no_chunks() {
    let upstream = Upstream::start(|_, mut wire| async move {
        wire.request().await.unwrap();
        wire.send(EVENTS).await;
        for event in [BEGIN, END] {
            wire.send(chunk(event)).await;
        }
        wire.send("0\r\n\r\n").await;
        wire.closed().await;
    })
    .await;
    let proxy = proxy(&model(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send(messages(true).replace("HTTP/1.1", "HTTP/1.0")).await;
    let answer = client.answer().await;
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(answer.text(), format!("{BEGIN}{END}"));
}
