use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::Body;

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Received {
    /// The method.
    pub method: Method,
    /// The target: path and query.
    pub uri: Uri,
    /// The header.
    pub headers: HeaderMap,
    /// The body, byte for byte (compressed if it came so).
    pub body: Bytes,
}

impl Received {
    /// The body as JSON; `null` when it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// A header's value as text; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Answers one request; the number counts the server's requests from 0. An error closes the connection without an
/// answer.
pub(super) type Handler =
    Arc<dyn Fn(usize, Arc<Received>) -> BoxFuture<'static, io::Result<Response<Body>>> + Send + Sync>;

/// A server on a free port of loopback, ended when it is dropped. HTTP/1.1 and HTTP/2 (without TLS).
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    log: Log,
    task: JoinHandle<()>,
}

/// What came and what was given up, for tests to wait on.
#[derive(Clone, Debug)]
pub(super) struct Log {
    received: watch::Sender<Vec<Arc<Received>>>,
    abandoned: watch::Sender<usize>,
}

impl Server {
    pub(super) async fn start(handler: impl FnOnce(Log) -> Handler) -> io::Result<Server> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let log = Log { received: watch::Sender::default(), abandoned: watch::Sender::default() };
        let handler = handler(log.clone());
        let task = tokio::spawn(accept(listener, handler, log.clone()));
        Ok(Server { address, log, task })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Log {
    pub(super) fn received(&self) -> Vec<Arc<Received>> {
        self.received.borrow().clone()
    }

    /// Waits until that many requests have come.
    pub(super) async fn at_least(&self, count: usize) -> Vec<Arc<Received>> {
        let mut received = self.received.subscribe();
        match received.wait_for(|received| received.len() >= count).await {
            Ok(received) => received.clone(),
            Err(_) => Vec::new(),
        }
    }

    /// Waits until the other side gave up that many answers before their end.
    pub(super) async fn abandoned(&self, count: usize) {
        let _ = self.abandoned.subscribe().wait_for(|abandoned| *abandoned >= count).await;
    }

    /// Counts an answer as given up, unless [`Unfinished::finish`] is called first.
    pub(super) fn unfinished(&self) -> Unfinished {
        Unfinished { abandoned: Some(self.abandoned.clone()) }
    }

    fn add(&self, received: Arc<Received>) -> usize {
        let mut number = 0;
        self.received.send_modify(|all| {
            number = all.len();
            all.push(received);
        });
        number
    }
}

/// An answer that has not come to its end.
pub(super) struct Unfinished {
    abandoned: Option<watch::Sender<usize>>,
}

impl Unfinished {
    pub(super) fn finish(&mut self) {
        self.abandoned = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(abandoned) = self.abandoned.take() {
            abandoned.send_modify(|count| *count += 1);
        }
    }
}

async fn accept(listener: TcpListener, handler: Handler, log: Log) {
    // Owned by this task, so that the connections end with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, handler.clone(), log.clone()));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, handler: Handler, log: Log) {
    // Small frames must leave at once, or tests of early release would measure the kernel.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request: Request<Incoming>| {
        let (handler, log) = (handler.clone(), log.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
            let received = Received { method: head.method, uri: head.uri, headers: head.headers, body };
            let received = Arc::new(received);
            let number = log.add(received.clone());
            handler(number, received).await
        }
    });
    // An error is a connection that the other side, or a scripted cut, has ended.
    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
