//! A service with hookgate in its stack: axum in front, a model API behind, policy in between.
//!
//! ```text
//! cargo run --example server_layer --features control -- 127.0.0.1:8080 https://api.anthropic.com hooks.json
//! ANTHROPIC_BASE_URL=http://127.0.0.1:8080/anthropic claude
//! curl http://127.0.0.1:8080/hookgate/v1/audit
//! ```
//!
//! Nothing here asks who a client is: a service on another address than loopback puts its own authentication in front.

use std::sync::Arc;

use axum::Router;
use axum::error_handling::HandleError;
use hookgate::callback::{Settings, TmpHooks, TokenKey};
use hookgate::control::{ControlState, Metrics, Readiness, router};
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::{HookErrors, HookSet};
use hookgate::store::MemoryStore;
use hookgate::{Body, BoxError, HookLayer, Hookgate, Route};
use http::uri::Parts;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Uri, header};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tower::{Layer, service_fn};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, upstream, document] = arguments.as_slice() else {
        return Err("usage: server_layer LISTEN UPSTREAM HOOK_DOCUMENT".into());
    };
    let gate = Hookgate::builder()
        .hooks(hooks(document, &std::fs::read(document)?)?)
        .transport(Arc::new(HyperTransport::new()))
        .build();
    let app = app(gate, callbacks(&format!("http://{listen}"))?, upstream.parse()?)?;
    axum::serve(TcpListener::bind(listen).await?, app).await?;
    Ok(())
}

/// The handlers of one document, which may be on this machine only.
pub fn hooks(source: &str, document: &[u8]) -> Result<HookSet, HookErrors> {
    HookSet::builder().allowed_hosts(["127.0.0.1"]).allow_insecure_loopback(true).document(source, document).build()
}

/// One-time callbacks, of which a restart knows nothing. `base_url` is what workers reach this service by.
pub fn callbacks(base_url: &str) -> Result<TmpHooks, BoxError> {
    let settings = Settings::default().base_url(base_url)?;
    Ok(TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None))
}

/// The service: the model API below `/anthropic`, with hooks; callbacks, sessions, the audit, health and metrics beside it.
pub fn app(gate: Hookgate, callbacks: TmpHooks, upstream: Uri) -> Result<Router, BoxError> {
    // It ends with the last handle.
    tokio::spawn(callbacks.sweeping());
    let control = ControlState {
        core: gate.clone(),
        tmp_hooks: callbacks.clone(),
        readiness: Readiness::new(),
        metrics: Metrics::detached(), // Metrics::install() in a service that has no recorder of its own
    };
    control.readiness.set(true);

    let client = client()?;
    let forward = service_fn(move |request| forward(client.clone(), upstream.clone(), request));
    let model = HookLayer::new(gate, Route::model("anthropic")).layer(forward);
    // A refusal of a policy is a response; an error is what `forward` itself could not do.
    let model = HandleError::new(model, |error: BoxError| async move { (StatusCode::BAD_GATEWAY, error.to_string()) });

    // `nest_service` takes the prefix off, so the layer sees the model API's own paths; callbacks keep theirs.
    Ok(Router::new()
        .nest_service("/anthropic", model)
        .route_service(&format!("{}/{{*token}}", callbacks.path_prefix()), callbacks.service())
        .fallback_service(router(control)))
}

type HttpsClient = Client<HttpsConnector<HttpConnector>, Body>;

fn client() -> Result<HttpsClient, BoxError> {
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
        .https_or_http()
        .enable_all_versions()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// What a service that proxies does anyway: the upstream's address, and no headers that concern one connection only.
async fn forward(
    client: HttpsClient,
    upstream: Uri,
    mut request: Request<Body>,
) -> Result<Response<Incoming>, BoxError> {
    let mut target = Parts::default();
    target.scheme = upstream.scheme().cloned();
    target.authority = upstream.authority().cloned();
    target.path_and_query = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from_parts(target)?;
    request.headers_mut().remove(header::HOST);
    strip_hop_by_hop(request.headers_mut());
    let mut response = client.request(request).await?;
    strip_hop_by_hop(response.headers_mut());
    Ok(response)
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let listed = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> =
        listed.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    for name in named {
        headers.remove(name);
    }
    for name in ["connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"] {
        headers.remove(name);
    }
}
