use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, header, request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tower::ServiceExt;
use tower_service::Service;

use super::HookFuture;
use crate::drive::NoAnswer;
use crate::linger::linger;
use crate::{
    Body, BoxError, GuardedBody, Hookgate, Inspection, Plan, Route, Upstream, UpstreamError, UpstreamErrorKind,
};

/// A service with hookgate in front of it; made by [`HookLayer`](super::HookLayer).
#[derive(Clone)]
pub struct HookService<S> {
    inner: S,
    gate: Hookgate,
    route: Arc<Route>,
    prefix: Arc<str>,
}

impl<S> HookService<S> {
    pub(super) fn new(inner: S, gate: Hookgate, route: Arc<Route>, prefix: Arc<str>) -> Self {
        HookService { inner, gate, route, prefix }
    }
}

impl<S, B, R> Service<Request<B>> for HookService<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<GuardedBody>;
    type Error = S::Error;
    type Future = HookFuture<S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that was polled ready is the one to call; the clone takes its place.
        let spare = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, spare.clone());
        let (gate, route, prefix) = (self.gate.clone(), self.route.clone(), self.prefix.clone());
        HookFuture::new(async move {
            let (mut head, body) = request.into_parts();
            match gate.plan(&route, &head, &without_prefix(head.uri.path(), &prefix)) {
                Plan::Pass => {
                    gate.strip(&mut head.headers);
                    let response = ready.oneshot(Request::from_parts(head, Body::wrap(body))).await?;
                    Ok(response.map(|body| GuardedBody::from(Body::wrap(body))))
                }
                Plan::Refuse(response) => Ok(response.map(GuardedBody::from)),
                Plan::Inspect(inspection) => {
                    let body = match read(&inspection, &head, body).await {
                        Ok(body) => body,
                        Err(refusal) => return Ok(refusal.map(GuardedBody::from)),
                    };
                    let failure = Arc::new(Mutex::new(None));
                    let upstream = Inner { ready: Mutex::new(Some(ready)), spare, failure: failure.clone() };
                    let response = gate.exchange(inspection, Request::from_parts(head, body), Arc::new(upstream)).await;
                    // The caller knows its own errors better than a 502 made of them.
                    let failure = failure.lock().unwrap_or_else(PoisonError::into_inner).take();
                    match failure {
                        Some(error) if response.extensions().get::<NoAnswer>().is_some() => Err(error),
                        _ => Ok(response),
                    }
                }
            }
        })
    }
}

/// The path as the model API knows it.
fn without_prefix<'a>(path: &'a str, prefix: &str) -> Cow<'a, str> {
    match path.strip_prefix(prefix) {
        Some("") => "/".into(),
        Some(rest) if rest.starts_with('/') => rest.into(),
        _ => path.into(),
    }
}

/// Reads a request that is to be inspected.
async fn read<B>(inspection: &Inspection, head: &request::Parts, body: B) -> Result<Bytes, Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let limit = inspection.body_limit();
    let declared = head.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let mut body = Box::pin(body);
    if declared.is_some_and(|declared| declared > limit as u64) {
        // A client that asks first has sent nothing yet, and reading would tell it to begin.
        if !head.headers.contains_key(header::EXPECT) {
            tokio::spawn(linger(body));
        }
        return Err(inspection.too_large(declared));
    }
    match Limited::new(body.as_mut(), limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            tokio::spawn(linger(body));
            Err(inspection.too_large(None))
        }
        Err(error) => Err(inspection.unreadable(&error.to_string())),
    }
}

/// The inner service as the core's way upstream.
struct Inner<S, E> {
    ready: Mutex<Option<S>>,
    spare: S,
    /// The error of the last call that failed.
    failure: Arc<Mutex<Option<E>>>,
}

impl<S, R, E> Upstream for Inner<S, E>
where
    S: Service<Request<Body>, Response = Response<R>, Error = E> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    E: Into<BoxError> + Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    fn call(&self, request: Request<Body>) -> BoxFuture<'static, Result<Response<Body>, UpstreamError>> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        let service = ready.unwrap_or_else(|| self.spare.clone());
        let failure = self.failure.clone();
        Box::pin(async move {
            match service.oneshot(request).await {
                Ok(response) => Ok(response.map(Body::wrap)),
                Err(error) => {
                    *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    Err(UpstreamError::new(UpstreamErrorKind::Other, "the inner service failed"))
                }
            }
        })
    }
}
