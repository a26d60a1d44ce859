//! Trailers pass from HTTP/2 to HTTP/2, which is what gRPC needs. Where they do not, all else passes and none is promised.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;

use bytes::{BufMut as _, Bytes, BytesMut};
use hookgate::Body;
use hookgate::host::pingora::Proxy;
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::pingora_kit::{Upstream, WHOLE, Wire, chunk, json, messages, model, pass, proxy, proxy_in, within};
use crate::pingora_tls_kit::{TlsClient, certificates, client, route, tls_server};

type Frames = mpsc::Sender<Result<Frame<Bytes>, Infallible>>;

/// A body that is written frame by frame.
fn frames() -> (Frames, Body) {
    let (send, mut frames) = mpsc::channel(4);
    (send, Body::wrap(StreamBody::new(futures_util::stream::poll_fn(move |cx| frames.poll_recv(cx)))))
}

fn trailers(name: &'static str, value: &'static str) -> Frame<Bytes> {
    let mut trailers = http::HeaderMap::new();
    trailers.insert(name, value.parse().unwrap());
    Frame::trailers(trailers)
}

/// A message as gRPC frames it: not compressed, its length, its bytes.
fn grpc(message: &str) -> Bytes {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put_slice(message.as_bytes());
    framed.freeze()
}

/// Repeats every piece of the request as it comes and ends with a status in a trailer; on `/refused` the status is in the
/// head, as gRPC has it when there is no message.
async fn repeat(request: http::Request<Incoming>) -> Result<http::Response<Body>, Infallible> {
    let response =
        http::Response::builder().header("content-type", "application/grpc").header("trailer", "grpc-status");
    if request.uri().path() == "/refused" {
        return Ok(response.header("grpc-status", "7").body(Body::empty()).unwrap());
    }
    let asked = ["te", "trailer"].map(|name| request.headers().get(name).cloned());
    let (answer, body) = frames();
    tokio::spawn(async move {
        let mut request = request.into_body();
        while let Some(Ok(frame)) = request.frame().await {
            let frame = frame.into_data().map_or_else(|_| Frame::data(grpc("trailers came")), Frame::data);
            let _ = answer.send(Ok(frame)).await;
        }
        let _ = answer.send(Ok(trailers("grpc-status", "0"))).await;
    });
    let [te, promised] = asked.map(|value| value.unwrap_or_else(|| "none".parse().unwrap()));
    Ok(response.header("x-te", te).header("x-promised", promised).body(body).unwrap())
}

/// An upstream that speaks HTTP/2 alone, see [`repeat`].
async fn grpc_server(folder: &Path) -> (SocketAddr, JoinSet<()>) {
    tls_server(folder, &["h2"], |stream| async {
        let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service_fn(repeat)).await;
    })
    .await
}

/// A proxy that speaks HTTP/2 on both sides.
async fn both_sides(folder: &Path) -> (Proxy, JoinSet<()>) {
    certificates(folder, "up", &["localhost"]);
    certificates(folder, "down", &["localhost"]);
    let (address, tasks) = grpc_server(folder).await;
    (tls_proxy(folder, &route("passthrough", &https(address), "up-ca.pem")), tasks)
}

fn https(address: SocketAddr) -> String {
    format!("https://localhost:{}", address.port())
}

fn tls_proxy(folder: &Path, routes: &str) -> Proxy {
    certificates(folder, "down", &["localhost"]);
    proxy_in(folder, &format!("tls = {{ cert = \"down.pem\", key = \"down.key\" }}\n{routes}"))
}

fn post(proxy: &Proxy, path: &str) -> http::request::Builder {
    http::Request::post(format!("{}{path}", https(proxy.addresses()[0]))).header("te", "trailers")
}

#[tokio::test]
async fn a_grpc_conversation_passes_piece_by_piece_and_ends_with_its_status() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, _upstream) = both_sides(folder.path()).await;
    let client: TlsClient<Body> = client(folder.path(), true);
    let (say, body) = frames();
    let request = post(&proxy, "/chat").header("content-type", "application/grpc").body(body).unwrap();
    let mut response = within("the head", client.request(request)).await.unwrap();
    assert_eq!((response.status().as_u16(), response.version()), (200, http::Version::HTTP_2));
    assert_eq!(response.headers()["x-te"], "trailers");
    assert_eq!(response.headers()["trailer"], "grpc-status");
    // The next message is only said when the one before was repeated.
    for message in ["one", "two", "three"] {
        say.send(Ok(Frame::data(grpc(message)))).await.unwrap();
        let mut came = BytesMut::new();
        while came.len() < message.len() + 5 {
            let frame = within("a message", response.frame()).await.unwrap().unwrap();
            came.extend_from_slice(frame.data_ref().unwrap());
        }
        assert_eq!(came, grpc(message));
    }
    drop(say);
    let end = within("the end", response.frame()).await.unwrap().unwrap();
    assert_eq!(end.trailers_ref().unwrap()["grpc-status"], "0");
}

#[tokio::test]
async fn a_grpc_status_without_a_message_passes() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, _upstream) = both_sides(folder.path()).await;
    let client: TlsClient<Full<Bytes>> = client(folder.path(), true);
    let response =
        within("the head", client.request(post(&proxy, "/refused").body(Full::default()).unwrap())).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "7");
    assert!(within("the body", response.into_body().collect()).await.unwrap().to_bytes().is_empty());
}

/// Of a request's trailers nothing reaches the upstream, and nothing is said of them.
#[tokio::test]
async fn trailers_of_an_http_2_request_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, _upstream) = both_sides(folder.path()).await;
    let client: TlsClient<Body> = client(folder.path(), true);
    for _ in 0..2 {
        let (say, body) = frames();
        say.send(Ok(Frame::data(grpc("message")))).await.unwrap();
        say.send(Ok(trailers("x-checksum", "1"))).await.unwrap();
        drop(say);
        let request = post(&proxy, "/chat").header("trailer", "x-checksum").body(body).unwrap();
        let response = within("the head", client.request(request)).await.unwrap();
        assert_eq!(response.headers()["x-promised"], "none");
        assert_eq!(within("the body", response.into_body().collect()).await.unwrap().to_bytes(), grpc("message"));
    }
}

#[tokio::test]
async fn trailers_of_an_http_1_request_are_dropped() {
    let upstream = Upstream::answering(|request| {
        json(&format!("{} {:?} {:?}", request.text(), request.header("trailer"), request.header("te")))
    })
    .await;
    let proxy = proxy(&pass(upstream.address));
    let mut client = Wire::to(&proxy).await;
    for _ in 0..2 {
        client
            .send(
                "POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\ntrailer: x-checksum\r\n\
                 transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nx-checksum: 1\r\n\r\n",
            )
            .await;
        // The connections on both sides go on: nothing of the trailers was taken for a request.
        assert_eq!(client.answer().await.text(), "abc None None");
    }
}

/// From one version to the other: the body comes whole, and nothing of the trailers.
#[tokio::test]
async fn trailers_of_a_request_are_dropped_between_versions() {
    let folder = tempfile::tempdir().unwrap();
    let upstream =
        Upstream::answering(|request| json(&format!("{} {:?}", request.text(), request.header("trailer")))).await;
    let down = tls_proxy(folder.path(), &pass(upstream.address));
    let client: TlsClient<Body> = client(folder.path(), true);
    for _ in 0..2 {
        let (say, body) = frames();
        say.send(Ok(Frame::data("abc".into()))).await.unwrap();
        say.send(Ok(trailers("x-checksum", "1"))).await.unwrap();
        drop(say);
        let request = post(&down, "/").header("trailer", "x-checksum").body(body).unwrap();
        let response = within("the head", client.request(request)).await.unwrap();
        assert_eq!(within("the body", response.into_body().collect()).await.unwrap().to_bytes(), "abc None");
    }

    certificates(folder.path(), "up", &["localhost"]);
    let (address, _tasks) = grpc_server(folder.path()).await;
    let up = proxy_in(folder.path(), &route("passthrough", &https(address), "up-ca.pem"));
    for _ in 0..2 {
        // A connection of its own: pingora may close one whose answer ended as soon as the request did.
        let mut wire = Wire::to(&up).await;
        wire.send(
            "POST / HTTP/1.1\r\nhost: a\r\ntrailer: x-checksum\r\ntransfer-encoding: chunked\r\n\r\n\
             3\r\nabc\r\n0\r\nx-checksum: 1\r\n\r\n",
        )
        .await;
        let answer = wire.answer().await;
        assert_eq!((answer.text(), answer.header("x-promised")), ("abc", Some("none")));
    }
}

/// On the inspected path too: `route` is for either kind.
async fn of_an_http_1_answer(request: &str, route: fn(SocketAddr) -> String) {
    let upstream = Upstream::start(|_, mut wire| async move {
        while wire.request().await.is_some() {
            wire.send(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntrailer: x-checksum\r\n\
                 transfer-encoding: chunked\r\n\r\n",
            )
            .await;
            wire.send(format!("{}0\r\nx-checksum: 1\r\n\r\n", chunk(WHOLE))).await;
        }
    })
    .await;
    let plain = proxy(&route(upstream.address));
    let mut wire = Wire::to(&plain).await;
    for _ in 0..2 {
        wire.send(request).await;
        let answer = wire.answer().await;
        assert_eq!((answer.status(), answer.text(), answer.header("trailer")), (200, WHOLE, None));
    }

    let folder = tempfile::tempdir().unwrap();
    let proxy = tls_proxy(folder.path(), &route(upstream.address));
    let client: TlsClient<Full<Bytes>> = client(folder.path(), true);
    let body = request.split_once("\r\n\r\n").unwrap().1.to_owned();
    let request = post(&proxy, "/v1/messages").header("content-type", "application/json");
    let response = within("the head", client.request(request.body(Full::from(body)).unwrap())).await.unwrap();
    assert_eq!(response.headers().get("trailer"), None);
    let body = within("the body", response.into_body().collect()).await.unwrap();
    assert!(body.trailers().is_none() && body.to_bytes() == WHOLE);
}

#[tokio::test]
async fn trailers_of_an_http_1_answer_are_dropped() {
    of_an_http_1_answer("GET / HTTP/1.1\r\nhost: a\r\n\r\n", pass).await;
    of_an_http_1_answer(&messages(false), model).await;
}

#[tokio::test]
async fn trailers_for_an_http_1_client_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "up", &["localhost"]);
    let (address, _upstream) = grpc_server(folder.path()).await;
    let proxy = proxy_in(folder.path(), &route("passthrough", &https(address), "up-ca.pem"));
    let mut client = Wire::to(&proxy).await;
    for _ in 0..2 {
        client.send("POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\ncontent-length: 3\r\n\r\nabc").await;
        let answer = client.answer().await;
        assert_eq!((answer.status(), answer.text(), answer.header("trailer")), (200, "abc", None));
        // The upstream is not told that its trailers would be read.
        assert_eq!(answer.header("x-te"), Some("none"));
    }
}
