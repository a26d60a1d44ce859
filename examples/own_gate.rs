//! A service with a gate of its own in front of hookgate's control surface, and callbacks that pass it.
//!
//! ```text
//! SERVICE_KEY=0123456789abcdef cargo run --example own_gate --features control -- 127.0.0.1:8080
//! curl -H 'x-service-key: 0123456789abcdef' -d '{}' http://127.0.0.1:8080/hookgate/v1/sessions/s1/tmp-hooks
//! curl -d '{"status": "done"}' THE_URL_THAT_THIS_GAVE
//! curl -H 'x-service-key: 0123456789abcdef' http://127.0.0.1:8080/hookgate/v1/sessions/s1/inbox
//! ```
//!
//! Whoever has the service's key may do everything. A worker that reports back has none: exactly its callback URL passes, and
//! with anything else it is where a stranger is.

use std::sync::Arc;

use axum::extract::Request;
use axum::routing::any;
use axum::{Extension, Router};
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use hookgate::auth::{Access, AuthGate, CallbackBypass, Caller, GateLayer};
use hookgate::callback::{Settings, TmpHooks, TokenKey};
use hookgate::control::{ControlState, Metrics, Readiness, router};
use hookgate::store::MemoryStore;
use hookgate::{Body, BoxError, Hookgate};
use http::{HeaderValue, Response, StatusCode, header, request};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ([listen], Some((_, key))) = (arguments.as_slice(), std::env::vars().find(|(name, _)| name == "SERVICE_KEY"))
    else {
        return Err("usage: SERVICE_KEY=… own_gate LISTEN".into());
    };
    let settings = Settings::default().base_url(&format!("http://{listen}"))?;
    let callbacks = TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None);
    let app = app(&Hookgate::builder().build(), &callbacks, &key);
    axum::serve(TcpListener::bind(listen).await?, app).await?;
    Ok(())
}

/// The gate that the service has anyway: its key, in a header.
struct ServiceKey(blake3::Hash);

impl AuthGate for ServiceKey {
    fn check<'a>(&'a self, request: &'a request::Parts) -> BoxFuture<'a, Access> {
        let key = request.headers.get("x-service-key").map(|key| blake3::hash(key.as_bytes()));
        // Digests are compared in constant time.
        let access = match key {
            Some(key) if key == self.0 => Access::Granted(Caller::named("operator")),
            _ => Access::Refused(refusal()),
        };
        ready(access).boxed()
    }
}

fn refusal() -> Response<Body> {
    let mut refusal = Response::new(Body::from("this service asks for its key\n"));
    *refusal.status_mut() = StatusCode::UNAUTHORIZED;
    let challenge = HeaderValue::from_static("x-service-key realm=\"service\"");
    refusal.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    refusal
}

/// The service: the control surface, callbacks, and something that is nobody else's business; all behind one gate.
pub fn app(gate: &Hookgate, callbacks: &TmpHooks, key: &str) -> Router {
    let control = ControlState {
        core: gate.clone(),
        tmp_hooks: callbacks.clone(),
        readiness: Readiness::new(),
        metrics: Metrics::detached(),
    };
    let service = Router::new()
        .route_service(&format!("{}/{{*token}}", callbacks.path_prefix()), callbacks.service())
        .route("/private/{*rest}", any(private));
    // The layer is outside of all routes, so that the gate and the router see the same path.
    let own = ServiceKey(blake3::hash(key.as_bytes()));
    router(control).merge(service).layer(GateLayer::new(CallbackBypass::new(own, callbacks.path_prefix())))
}

async fn private(Extension(caller): Extension<Caller>, request: Request) -> String {
    format!("{} for {caller}\n", request.uri().path())
}
