use std::sync::Arc;

use tower_layer::Layer;

use super::HookService;
use crate::{Hookgate, Route};

/// Puts hookgate in front of a service that speaks HTTP: on the server side of a service that proxies to a model API, or
/// on the client side around the HTTP client of an agent.
///
/// The rules:
/// 1. The inner service gets requests with a [`Body`](crate::Body), one for what the client asked and more for
///    continuations; it must be `Clone`, and its clones must reach the same upstream.
/// 2. Requests that need no inspection are passed on as they come, bodies of any size included.
/// 3. A refusal is a response, never an error; errors are the inner service's own.
/// 4. The request's address is not changed. The layer does not route.
/// 5. Whose request it is, is said by a [`Tenant`](crate::Tenant) in its extensions, which a service in front sets once it has
///    authenticated its client. Without one all requests are of one tenant, and whoever names a session's id is in it.
/// 6. How a client reaches the service is told by the request's `host` and its version's own scheme, or by extensions of the
///    types [`Scheme`](http::uri::Scheme) and [`Authority`](http::uri::Authority) that a service in front sets: the addresses in
///    an agent's card are made of it, unless the route has a [`public_origin`](Route::public_origin).
/// 7. Which hosts and origins a request may name is left to the service: it knows its own names. An MCP server on somebody's machine
///    needs that check, or any web page can use it (DNS rebinding).
///
/// ```
/// use hookgate::{Body, HookLayer, Hookgate, Route};
/// use http::{Request, Response};
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let upstream = service_fn(|_: Request<Body>| async { Ok::<_, std::convert::Infallible>(Response::new(Body::from("hi"))) });
/// let service = HookLayer::new(Hookgate::builder().build(), Route::model("anthropic")).layer(upstream);
/// let response = service.oneshot(Request::new(Body::empty())).await.unwrap();
/// assert_eq!(response.status(), 200);
/// # });
/// ```
#[derive(Clone)]
pub struct HookLayer {
    gate: Hookgate,
    route: Arc<Route>,
    prefix: Arc<str>,
}

impl HookLayer {
    /// A layer that inspects one route.
    pub fn new(gate: Hookgate, route: Route) -> Self {
        HookLayer { gate, route: Arc::new(route), prefix: "".into() }
    }

    /// The path under which the route is served: what follows it is the model API's own path. Without it, the whole path
    /// is.
    #[must_use]
    pub fn path_prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.trim_end_matches('/').into();
        Arc::make_mut(&mut self.route).path_prefix = self.prefix.clone();
        self
    }
}

impl<S> Layer<S> for HookLayer {
    type Service = HookService<S>;

    fn layer(&self, inner: S) -> HookService<S> {
        HookService::new(inner, self.gate.clone(), self.route.clone(), self.prefix.clone())
    }
}
