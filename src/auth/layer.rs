//! A gate in front of a Tower service.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use tower::ServiceExt as _;
use tower_layer::Layer;
use tower_service::Service;

use super::{Access, AuthGate};
use crate::body::{Body, BoxError};

/// Asks a gate about every request, before its body is read.
///
/// 1. What the gate refuses is answered with its refusal and never reaches the inner service.
/// 2. What passes carries the [`Caller`](super::Caller) in its extensions.
/// 3. The gate sees the path that the layer sees. It belongs outside of everything that routes and inside of everything
///    that changes paths, so that both see the same.
///
/// `examples/own_gate.rs` is a whole service.
#[derive(Debug)]
pub struct GateLayer<G>(Arc<G>);

impl<G: AuthGate> GateLayer<G> {
    /// A layer that asks this gate.
    pub fn new(gate: G) -> Self {
        GateLayer(Arc::new(gate))
    }
}

/// A derived one would ask the gate to be `Clone`.
impl<G> Clone for GateLayer<G> {
    fn clone(&self) -> Self {
        GateLayer(self.0.clone())
    }
}

impl<G, S> Layer<S> for GateLayer<G> {
    type Service = GateService<G, S>;

    fn layer(&self, inner: S) -> GateService<G, S> {
        GateService { gate: self.0.clone(), inner }
    }
}

/// A service with a gate in front of it; made by [`GateLayer`].
#[derive(Debug)]
pub struct GateService<G, S> {
    gate: Arc<G>,
    inner: S,
}

/// As for [`GateLayer`].
impl<G, S: Clone> Clone for GateService<G, S> {
    fn clone(&self) -> Self {
        GateService { gate: self.gate.clone(), inner: self.inner.clone() }
    }
}

impl<G, S, B, R> Service<Request<B>> for GateService<G, S>
where
    G: AuthGate,
    S: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = GateFuture<S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was polled ready is the one to call; the clone takes its place.
        let spare = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, spare);
        let gate = self.gate.clone();
        GateFuture(Box::pin(async move {
            let (mut head, body) = request.into_parts();
            match gate.check(&head).await {
                Access::Refused(refusal) => Ok(refusal),
                Access::Granted(caller) => {
                    head.extensions.insert(caller);
                    Ok(ready.oneshot(Request::from_parts(head, body)).await?.map(Body::wrap))
                }
            }
        }))
    }
}

/// The answer of a [`GateService`] under way.
#[must_use = "futures do nothing unless polled"]
pub struct GateFuture<E>(BoxFuture<'static, Result<Response<Body>, E>>);

impl<E> Future for GateFuture<E> {
    type Output = Result<Response<Body>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<E> fmt::Debug for GateFuture<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GateFuture")
    }
}
