//! TLS on both sides, with authorities made for the test.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use pingora::listeners::tls::Acceptor;
use pingora::protocols::l4::stream::Stream;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::pingora_kit::{
    BEGIN, Closing, EVENTS, Upstream, WHOLE, Wire, chunk, closing, json, messages, model, pass, proxy_in, within,
};

/// Writes `NAME-ca.pem`, `NAME.pem` and `NAME.key`: a certificate for localhost and its authority.
pub(crate) fn certificates(folder: &Path, name: &str, names: &[&str]) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
    std::fs::write(folder.join(format!("{name}-ca.pem")), authority.pem()).unwrap();
    std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// A server that answers with the version that it was asked in, and a trailer.
///
/// A path with `messages` is answered with an event stream that never ends.
struct TlsUpstream {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    /// How many event streams were given up by who had asked for them.
    resets: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

impl TlsUpstream {
    async fn start(folder: &Path, alpn: &[&str]) -> Self {
        let chain = CertificateDer::pem_file_iter(folder.join("up.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(folder.join("up.key")).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = Arc::new(Acceptor::from_server_config(Arc::new(config)));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (reset, resets) = watch::channel(0);
        let count = connections.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, count, reset) = (acceptor.clone(), count.clone(), reset.clone());
                serving.spawn(async move {
                    let Ok(stream) = acceptor.tls_handshake(Stream::from(stream)).await else { return };
                    count.fetch_add(1, Ordering::SeqCst);
                    let service = service_fn(|request| answer(request, reset.clone()));
                    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        TlsUpstream { address, connections, resets, _tasks: tasks }
    }
}

/// Counts when it is dropped.
struct Reset(watch::Sender<usize>);

impl Drop for Reset {
    fn drop(&mut self) {
        self.0.send_modify(|resets| *resets += 1);
    }
}

async fn answer(
    request: http::Request<Incoming>,
    reset: watch::Sender<usize>,
) -> Result<http::Response<hookgate::Body>, Infallible> {
    if request.uri().path().contains("messages") {
        let reset = Reset(reset);
        let begin =
            futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(BEGIN.as_bytes())))]);
        let rest = futures_util::stream::once(async move {
            let _reset = reset;
            std::future::pending().await
        });
        let body = hookgate::Body::wrap(StreamBody::new(begin.chain(rest)));
        return Ok(http::Response::builder().header("content-type", "text/event-stream").body(body).unwrap());
    }
    let version = format!("{:?} {}", request.version(), request.uri().path());
    let sent = request.into_body().collect().await.unwrap().to_bytes().len();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-trailer", "at the end".parse().unwrap());
    let body = Full::new(Bytes::from(format!("{version} {sent}"))).with_trailers(async move { Some(Ok(trailers)) });
    Ok(http::Response::new(hookgate::Body::wrap(body)))
}

fn route(kind: &str, upstream: &str, ca: &str) -> String {
    format!(
        "[[routes]]\nname = \"r\"\nkind = \"{kind}\"\npath_prefix = \"/\"\nupstream = \"{upstream}\"\nca_file = \"{ca}\"\n"
    )
}

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

/// A client that trusts `down-ca.pem`.
pub(crate) fn client(
    folder: &Path,
    http2: bool,
) -> Client<hyper_rustls::HttpsConnector<hyper_util::client::legacy::connect::HttpConnector>, Full<Bytes>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(folder.join("down-ca.pem")).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_only();
    let connector = if http2 { builder.enable_http2().build() } else { builder.enable_http1().build() };
    Client::builder(TokioExecutor::new()).build(connector)
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
async fn trailers_pass_from_http_2_to_http_2() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "up", &["localhost"]);
    certificates(folder.path(), "down", &["localhost"]);
    let upstream = TlsUpstream::start(folder.path(), &["h2"]).await;
    let tls = "tls = { cert = \"down.pem\", key = \"down.key\" }\n";
    let url = format!("https://localhost:{}", upstream.address.port());
    let proxy = proxy_in(folder.path(), &format!("{tls}{}", route("passthrough", &url, "up-ca.pem")));
    let uri = format!("https://localhost:{}/x", proxy.addresses()[0].port());
    let request = http::Request::get(&uri).body(Full::default()).unwrap();
    let response = within("an answer", client(folder.path(), true).request(request)).await.unwrap();
    let body = within("the body", response.into_body().collect()).await.unwrap();
    assert_eq!(body.trailers().unwrap()["x-trailer"], "at the end");
    assert_eq!(body.to_bytes(), "HTTP/2.0 /x 0");
}

#[tokio::test]
async fn a_certificate_can_be_replaced_while_the_proxy_runs() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), "down", &["localhost"]);
    let upstream = Upstream::answering(|_| json("1")).await;
    let tls = "tls = { cert = \"down.pem\", key = \"down.key\" }\n";
    let proxy = proxy_in(folder.path(), &format!("{tls}{}", pass(upstream.address)));
    let uri: http::Uri = format!("https://localhost:{}/", proxy.addresses()[0].port()).parse().unwrap();
    let trusts_new = |folder: &Path| client(folder, false).get(uri.clone());
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
