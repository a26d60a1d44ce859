//! The built-in transport: hyper with rustls.

use std::collections::HashMap;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io, vec};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::{BodyExt, Full};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

use super::clients::Clients;
use super::connection::Connection;
use crate::dispatch::transport::{AnswerBody, ConnectionName, HandlerAnswer, HandlerTransport, TransportError};

/// An idle connection is given up after this time. Common servers close theirs after 5 s; a request that crosses such a
/// close on the wire would be a failed handler.
const POOL_IDLE: Duration = Duration::from_secs(4);
/// The most that is read of an answer ahead of who asks for it, in bytes; it bounds the answer's head too.
const READ_AHEAD: usize = 32 * 1024;

pub(super) type HyperClient = Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// Reaches handlers by HTTP/1.1 or HTTP/2, over TLS or in the clear (documents decide where that is allowed).
///
/// 1. Connections are pooled, for each tokio runtime that sends, and belong to no agent: nothing of its request or connection is
///    used.
/// 2. Redirects are not followed, and no proxy variable of the environment is obeyed.
/// 3. An answer is read up to its limit; then its connection (its stream, with HTTP/2) is closed at once.
/// 4. Servers are checked against the system's root certificates, or against those of the handler's [`Connection`].
#[derive(Clone)]
pub struct HyperTransport {
    clients: Arc<Clients>,
    connections: HashMap<Arc<str>, (Connection, Arc<Clients>)>,
}

impl HyperTransport {
    /// A transport without connections.
    pub fn new() -> Self {
        HyperTransport { clients: Clients::new(SYSTEM_ROOTS.clone()), connections: HashMap::new() }
    }

    /// Adds what handlers with `"connection": name` use.
    #[must_use]
    pub fn connection(mut self, name: impl Into<Arc<str>>, connection: Connection) -> Self {
        let clients = match connection.roots() {
            Some(roots) => Clients::new(trusting(roots.clone())),
            None => self.clients.clone(),
        };
        self.connections.insert(name.into(), (connection, clients));
        self
    }
}

impl Default for HyperTransport {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows no credential.
impl fmt::Debug for HyperTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HyperTransport").field("connections", &self.connections.keys()).finish_non_exhaustive()
    }
}

impl HandlerTransport for HyperTransport {
    fn send(
        &self,
        mut request: http::Request<Bytes>,
        limit: usize,
    ) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
        let clients = match request.extensions_mut().remove::<ConnectionName>() {
            None => self.clients.clone(),
            Some(ConnectionName(name)) => match self.connections.get(&name) {
                Some((connection, clients)) => {
                    connection.authorize(request.headers_mut());
                    clients.clone()
                }
                // Asking without the credential would only look like a refusal of the handler.
                None => {
                    let error = TransportError::new(format!("the connection {name:?} is not known"));
                    return std::future::ready(Err(error)).boxed();
                }
            },
        };
        async move {
            let answer = clients.here().request(request.map(Full::new)).await.map_err(|error| {
                let at = if error.is_connect() { "connect: " } else { "" };
                TransportError::new(format!("{at}{}", root_cause(&error)))
            })?;
            let (head, body) = answer.into_parts();
            let body = read(body, limit).await?;
            Ok(HandlerAnswer { status: head.status, headers: head.headers, body })
        }
        .boxed()
    }
}

/// Reads up to the limit; dropping the rest closes it.
async fn read(mut body: hyper::body::Incoming, limit: usize) -> Result<AnswerBody, TransportError> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| TransportError::new(format!("its answer broke off: {}", root_cause(&error))))?;
        let Some(data) = frame.data_ref() else { continue };
        let room = limit - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            return Ok(AnswerBody::TooLarge(read.freeze()));
        }
    }
    Ok(AnswerBody::Complete(read.freeze()))
}

/// The innermost error says what happened; those around it say where, which is known.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

pub(super) fn client(tls: &ClientConfig) -> HyperClient {
    let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls.clone())
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(tcp);
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .http1_max_buf_size(READ_AHEAD)
        .build(connector)
}

/// The system's root certificates, read once. Without any (a bare container) every TLS handshake is refused.
static SYSTEM_ROOTS: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| match tls().with_native_roots() {
    Ok(config) => Arc::new(config.with_no_client_auth()),
    Err(error) => {
        tracing::warn!(%error, "no root certificates were found on this system: https handlers cannot be reached");
        trusting(RootCertStore::empty())
    }
});

pub(super) fn trusting(roots: RootCertStore) -> Arc<ClientConfig> {
    Arc::new(tls().with_root_certificates(roots).with_no_client_auth())
}

fn tls() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring has the default protocol versions")
}

/// The system's resolver, which is not asked about `localhost`: plain HTTP is allowed to that name because it never leaves
/// the machine, so that must be so.
#[derive(Clone)]
pub(super) struct Resolver(GaiResolver);

impl tower_service::Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        tower_service::Service::poll_ready(&mut self.0, cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        if name.as_str() == "localhost" {
            let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
            let addresses = loopback.map(|address| SocketAddr::new(address, 0)).to_vec();
            return std::future::ready(Ok(addresses.into_iter())).boxed();
        }
        let found = tower_service::Service::call(&mut self.0, name);
        async move { Ok(found.await?.collect::<Vec<_>>().into_iter()) }.boxed()
    }
}
