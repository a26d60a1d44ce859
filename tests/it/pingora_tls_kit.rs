//! TLS for the proxy's tests: authorities made for them, servers and clients that trust these.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use pingora::listeners::tls::Acceptor;
use pingora::protocols::l4::stream::Stream;
use pingora::protocols::tls::TlsStream;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::pingora_kit::BEGIN;

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
pub(crate) struct TlsUpstream {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<AtomicUsize>,
    /// How many event streams were given up by who had asked for them.
    pub(crate) resets: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

impl TlsUpstream {
    pub(crate) async fn start(folder: &Path, alpn: &[&str]) -> Self {
        let (reset, resets) = watch::channel(0);
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let (address, tasks) = tls_server(folder, alpn, move |stream| {
            count.fetch_add(1, Ordering::SeqCst);
            let reset = reset.clone();
            async move {
                let service = service_fn(|request| answer(request, reset.clone()));
                let builder = Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection(TokioIo::new(stream), service).await;
            }
        })
        .await;
        TlsUpstream { address, connections, resets, _tasks: tasks }
    }
}

/// Runs `serve` for every connection to a server with the certificate `up.pem`, as long as the tasks live.
pub(crate) async fn tls_server<F, R>(folder: &Path, alpn: &[&str], serve: F) -> (SocketAddr, JoinSet<()>)
where
    F: Fn(TlsStream<Stream>) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send + 'static,
{
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
    let serve = Arc::new(serve);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut serving = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, serve) = (acceptor.clone(), serve.clone());
            serving.spawn(async move {
                let Ok(stream) = acceptor.tls_handshake(Stream::from(stream)).await else { return };
                serve(stream).await;
            });
        }
    });
    (address, tasks)
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

pub(crate) fn route(kind: &str, upstream: &str, ca: &str) -> String {
    format!(
        "[[routes]]\nname = \"r\"\nkind = \"{kind}\"\npath_prefix = \"/\"\nupstream = \"{upstream}\"\nca_file = \"{ca}\"\n"
    )
}

/// A client that trusts `down-ca.pem`.
pub(crate) type TlsClient<B> = Client<HttpsConnector<HttpConnector>, B>;

pub(crate) fn client<B>(folder: &Path, http2: bool) -> TlsClient<B>
where
    B: Body + Send,
    B::Data: Send,
{
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
