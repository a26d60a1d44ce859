//! Requests that no upstream gets to see.

use crate::pingora_kit::{Upstream, Wire, json, pass, proxy};

/// An upstream that must not be called, for the two routes of these tests.
async fn two_routes() -> (Upstream, hookgate::host::pingora::Proxy) {
    let upstream = Upstream::answering(|request| json(request.head.lines().next().unwrap())).await;
    let route = |name: &str| {
        format!(
            "[[routes]]\nname = \"{name}\"\nkind = \"passthrough\"\npath_prefix = \"/{name}\"\n\
             upstream = \"http://{}/{name}-base\"\n",
            upstream.address
        )
    };
    let proxy = proxy(&format!("{}{}", route("public"), route("private")));
    (upstream, proxy)
}

#[tokio::test]
async fn a_path_that_could_be_another_routes_is_refused() {
    let (upstream, proxy) = two_routes().await;
    for path in [
        "/public/../private/x",
        "/public/%2e%2e/private/x",
        "/public/..%2fprivate/x",
        "/public/%252e%252e/private",
        "/public/..;/private",
        "/public\\..\\private",
        "/%70rivate/x",
        "/public/x/../../..",
        "//private/x",
        "/private%2fx",
        "/public/%zz",
        "/public//x",
        "*",
        "public/x",
    ] {
        let mut client = Wire::to(&proxy).await;
        client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        assert_eq!(client.answer().await.status(), 400, "{path}");
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn a_path_without_a_route_learns_which_there_are() {
    let (upstream, proxy) = two_routes().await;
    let mut client = Wire::to(&proxy).await;
    for path in ["/", "/publicx", "/v1/messages?key=secret"] {
        client.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        let answer = client.answer().await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(answer.text().contains("/private (passthrough route \\\"private\\\")"), "{}", answer.text());
        assert!(!answer.text().contains("secret"));
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn framing_that_reads_two_ways_is_refused_and_the_connection_closed() {
    let upstream = Upstream::answering(|_| json("1")).await;
    let proxy = proxy(&pass(upstream.address));
    for framing in [
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: identity",
        "transfer-encoding: xchunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: +5",
        "content-length: 5, 6",
    ] {
        let mut client = Wire::to(&proxy).await;
        client
            .send(format!(
                "POST / HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"
            ))
            .await;
        let answer = client.answer().await;
        assert_eq!(answer.status(), 400, "{framing}");
        assert_eq!(answer.header("connection"), Some("close"), "{framing}");
        client.closed().await;
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn connect_is_refused() {
    let upstream = Upstream::answering(|_| json("1")).await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    client.send("CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n").await;
    assert_eq!(client.answer().await.status(), 405);
    client.closed().await;
    assert_eq!(upstream.connections(), 0);
}
