//! The layer on the server side: hyper, `HookLayer`, and a service that sends requests on.

use hookgate::callback::TmpHooks;
use hookgate::{Body, BoxError, GuardedBody, HookLayer, Hookgate, Route};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tower::{Layer, ServiceExt, service_fn};

/// A server that ends when it is dropped.
pub(crate) struct LayerHost {
    url: String,
    task: JoinHandle<()>,
}

impl LayerHost {
    pub(crate) async fn start(
        core: &Hookgate,
        route: Route,
        upstream: &str,
        callbacks: Option<TmpHooks>,
    ) -> Result<LayerHost, BoxError> {
        let upstream: Uri = upstream.parse()?;
        let authority = upstream.authority().cloned().ok_or("an upstream without an authority")?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
        let forward = service_fn(move |request| forward(client.clone(), authority.clone(), request));
        let layered = HookLayer::new(core.clone(), route).layer(forward);
        let service = service_fn(move |request: Request<Incoming>| {
            let (layered, callbacks) = (layered.clone(), callbacks.clone());
            async move {
                match callbacks.filter(|callbacks| request.uri().path().starts_with(callbacks.path_prefix())) {
                    Some(callbacks) => {
                        let answered = callbacks.service().oneshot(request).await;
                        Ok(answered.unwrap_or_else(|never| match never {}).map(GuardedBody::from))
                    }
                    None => layered.oneshot(request).await.map_err(std::io::Error::other),
                }
            }
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let service = TowerToHyperService::new(service.clone());
                connections.spawn(async move {
                    let builder = Builder::new(TokioExecutor::new());
                    // An error is a client that has gone away, which scenarios do on purpose.
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Ok(LayerHost { url, task })
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }
}

impl Drop for LayerHost {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn forward(
    client: Client<HttpConnector, Body>,
    authority: Authority,
    mut request: Request<Body>,
) -> Result<Response<Incoming>, BoxError> {
    let path = request.uri().path_and_query().cloned().ok_or("a request without a path")?;
    *request.uri_mut() = Uri::builder().scheme(Scheme::HTTP).authority(authority).path_and_query(path).build()?;
    request.headers_mut().remove("host");
    Ok(client.request(request).await?)
}
