//! TLS on both sides, with authorities made for the test.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hookgate::id::SessionKey;
use http_body_util::{BodyExt as _, Full};

use crate::pingora_kit::{
    BEGIN, Closing, EVENTS, Upstream, WHOLE, Wire, chunk, closing, json, messages, model, pass, proxy_in, within,
};
use crate::pingora_tls_kit::{TlsUpstream, certificates, client, route};

async fn get(proxy: &hookgate::host::pingora::Proxy) -> (u16, String) {
    let mut client = Wire::to(proxy).await;
    client.send("POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc").await;
    let answer = client.answer().await;
    (answer.status(), answer.text().to_owned())
}

#[tokio::test]
async fn upstreams_with_a_private_authority_are_reached() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "up", &["localhost", "127.0.0.1"]);
    for (alpn, version) in [(&["h2", "http/1.1"] as &[_], "HTTP/2.0"), (&["http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")] {
        let upstream = TlsUpstream::start(folder.path(), alpn).await;
        for host in ["localhost", "127.0.0.1"] {
            let url = format!("https://{host}:{}", upstream.address.port());
            let proxy = proxy_in(folder.path(), &route("passthrough", &url, "up-ca.pem"));
            for _ in 0..2 {
                assert_eq!(get(&proxy).await, (200, format!("{version} /x 3")), "{host} {alpn:?}");
            }
        }
    }
}

#[tokio::test]
async fn an_upstream_that_cannot_be_trusted_is_not_spoken_to() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "up", &["localhost"]);
    certificates(folder.path(), "other", &["localhost"]);
    let upstream = TlsUpstream::start(folder.path(), &["h2"]).await;
    let port = upstream.address.port();
    // Another authority; the right one, but the certificate is for another name.
    for (host, ca) in [("localhost", "other-ca.pem"), ("127.0.0.1", "up-ca.pem")] {
        let proxy = proxy_in(folder.path(), &route("passthrough", &format!("https://{host}:{port}"), ca));
        let (status, text) = get(&proxy).await;
        assert_eq!(status, 502);
        assert!(text.contains(&format!("{host}:{port}: the TLS handshake failed")), "{text}");
    }
}

#[tokio::test]
async fn listeners_offer_http_2_and_http_1() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "down", &["localhost"]);
    let upstream = Upstream::answering(|request| json(request.text())).await;
    let tls = "tls = { cert = \"down.pem\", key = \"down.key\" }\n";
    let proxy = proxy_in(folder.path(), &format!("{tls}{}", pass(upstream.address)));
    for (http2, version) in [(true, http::Version::HTTP_2), (false, http::Version::HTTP_11)] {
        let client = client(folder.path(), http2);
        let uri = format!("https://localhost:{}/x", proxy.addresses()[0].port());
        for _ in 0..2 {
            let request = http::Request::post(&uri).body(Full::new(Bytes::from_static(b"42"))).unwrap();
            let response = within("an answer", client.request(request)).await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (200, version));
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "42");
        }
    }
}

#[tokio::test]
async fn a_certificate_can_be_replaced_while_the_proxy_runs() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "down", &["localhost"]);
    let upstream = Upstream::answering(|_| json("1")).await;
    let tls = "tls = { cert = \"down.pem\", key = \"down.key\" }\n";
    let proxy = proxy_in(folder.path(), &format!("{tls}{}", pass(upstream.address)));
    let uri: http::Uri = format!("https://localhost:{}/", proxy.addresses()[0].port()).parse().unwrap();
    let trusts_new = |folder: &Path| client::<Full<Bytes>>(folder, false).get(uri.clone());
    assert!(within("an answer", trusts_new(folder.path())).await.is_ok());

    // A broken file changes nothing.
    std::fs::write(folder.path().join("down.pem"), "nothing").unwrap();
    proxy.reload();
    assert!(within("an answer", trusts_new(folder.path())).await.is_ok());

    certificates(folder.path(), "down", &["localhost"]);
    assert!(within("an answer", trusts_new(folder.path())).await.is_err(), "the new authority is trusted already");
    proxy.reload();
    assert!(within("an answer", trusts_new(folder.path())).await.is_ok());
}

#[tokio::test]
async fn a_client_that_leaves_resets_its_stream_and_spares_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "up", &["localhost"]);
    let upstream = TlsUpstream::start(folder.path(), &["h2"]).await;
    let url = format!("https://localhost:{}", upstream.address.port());
    let hooks = "[hooks]\ndocuments = [\"hooks.json\"]\nallowed_hosts = [\"policy.invalid\"]\n";
    let proxy = proxy_in(folder.path(), &format!("{hooks}{}", route("model", &url, "up-ca.pem")));
    for left in 1..=3 {
        let mut client = Wire::to(&proxy).await;
        client.send(messages(true)).await;
        client.until("content_block_start").await.unwrap();
        drop(client);
        within("the stream to be reset", upstream.resets.clone().wait_for(|resets| *resets == left)).await.unwrap();
    }
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 1);
}

/// An inspected route behind a listener with TLS.
fn tls_model(folder: &Path, upstream: SocketAddr, more: &str) -> hookgate::host::pingora::Proxy {
    certificates(folder, "down", &["localhost"]);
    let tls = "tls = { cert = \"down.pem\", key = \"down.key\" }\n";
    proxy_in(folder, &format!("{tls}{more}{}", model(upstream)))
}

fn ask(proxy: &hookgate::host::pingora::Proxy, body: impl Into<Bytes>) -> http::Request<Full<Bytes>> {
    let uri = format!("https://localhost:{}/v1/messages", proxy.addresses()[0].port());
    http::Request::post(uri).header("content-type", "application/json").body(Full::new(body.into())).unwrap()
}

#[tokio::test]
async fn an_http_2_client_gets_events_and_may_leave() {
    let folder = tempfile::tempdir().unwrap();
    let Closing { upstream, closed, .. } = closing(format!("{EVENTS}{}", chunk(BEGIN)).leak()).await;
    let proxy = tls_model(folder.path(), upstream.address, "");
    let client = client(folder.path(), true);
    let request = messages(true);
    let body = request.split_once("\r\n\r\n").unwrap().1.to_owned();
    let mut response = within("an answer", client.request(ask(&proxy, body))).await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
    let frame = within("the first event", response.frame()).await.unwrap().unwrap();
    assert!(frame.into_data().unwrap().starts_with(b"event: message_start"));
    drop(response);
    within("the upstream to be left", closed).await.unwrap();
}

#[tokio::test]
async fn an_http_2_client_is_refused_one_request_only() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::answering(|_| json(WHOLE)).await;
    let proxy = tls_model(folder.path(), upstream.address, "[limits]\nmax_request_bytes = 1024\n");
    let client = client(folder.path(), true);
    let large = vec![b' '; 1_000_000];
    let response = within("a refusal", client.request(ask(&proxy, large))).await.unwrap();
    assert_eq!(response.status(), 413);
    let request = messages(false);
    let body = request.split_once("\r\n\r\n").unwrap().1.to_owned();
    let response = within("an answer", client.request(ask(&proxy, body))).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), WHOLE);

    // The client keeps its connection; that does not keep the proxy.
    within("the end of the proxy", tokio::task::spawn_blocking(move || proxy.stop())).await.unwrap();
}

#[tokio::test]
async fn callbacks_come_over_http_2_and_http_1() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "down", &["localhost"]);
    let upstream = Upstream::answering(|_| json("1")).await;
    let tls = "tls = { cert = \"down.pem\", key = \"down.key\" }\n";
    let settings = "[tmp_hooks]\nbase_url = \"https://localhost\"\nmax_body_bytes = 1000\n";
    let proxy = proxy_in(folder.path(), &format!("{tls}{settings}{}", pass(upstream.address)));
    let session = SessionKey { tenant: "default".into(), session: "s1".into() };
    for http2 in [true, false] {
        let client = client(folder.path(), http2);
        for body in ["", "done"] {
            let hook = proxy.tmp_hooks().issue(&session, None, None).await.unwrap();
            let uri = format!("https://localhost:{}/api/tmp-hooks/{}", proxy.addresses()[0].port(), hook.token);
            let post = async |body: Vec<u8>| {
                let request = http::Request::post(&uri).body(Full::new(Bytes::from(body))).unwrap();
                let response = within("an answer", client.request(request)).await.unwrap();
                (response.status().as_u16(), response.into_body().collect().await.unwrap().to_bytes())
            };
            assert_eq!(post(vec![b' '; 500_000]).await.0, 413, "{http2}");
            assert_eq!(post(body.into()).await, (200, "{\"received\":true}".into()), "{http2}");
            assert_eq!(post(body.into()).await.0, 410, "{http2}");
        }
    }
    let messages = proxy.tmp_hooks().take_for_injection(&session).await;
    let payloads: Vec<&str> = messages.iter().filter_map(|message| message.text.lines().last()).collect();
    assert_eq!(payloads, ["(empty)", "done", "(empty)", "done"]);
    assert_eq!(upstream.connections(), 0);
}
