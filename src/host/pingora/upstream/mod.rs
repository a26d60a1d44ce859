//! A route's upstream over connections that are kept: the [`Upstream`] of inspected exchanges, and what those need that pass.

mod balance;
mod body;
pub(super) mod connector;
pub(super) mod exchange;
pub(super) mod failure;
pub(super) mod headers;
pub(super) mod idle;
mod lease;
mod outgoing;
mod resolve;
pub(super) mod target;
pub(super) mod trust;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header, request};
use pingora::http::ResponseHeader;
use tokio::sync::watch;

use self::balance::{Targets, Tried};
use self::body::AnswerBody;
use self::connector::Connector;
use self::exchange::Times;
use self::headers::Outline;
pub(super) use self::lease::Lease;
use self::outgoing::Outgoing;
pub(super) use self::target::Target;
use self::trust::Trust;
use super::ServeError;
use crate::body::Body;
use crate::config::RouteConfig;
use crate::upstream::{Upstream, UpstreamError, UpstreamErrorKind};

/// How often a request is sent again after a kept connection turned out to be closed.
pub(super) const MAX_RETRIES: usize = 2;

/// The servers of one route. Cheap to clone.
#[derive(Clone)]
pub(super) struct RouteUpstream(Arc<Inner>);

struct Inner {
    targets: Targets,
    connector: Arc<Connector>,
    own_headers: Vec<(HeaderName, HeaderValue)>,
    times: Times,
}

impl RouteUpstream {
    /// `group` must differ from route to route: it keeps their connections apart.
    ///
    /// # Errors
    /// A certificate file of the route cannot be used.
    pub(super) fn new(route: &RouteConfig, connector: Arc<Connector>, group: u64) -> Result<Self, ServeError> {
        let trust = Trust::load(route)?;
        let targets = route.upstreams.iter().map(|target| Target::new(target.clone(), route, &trust, group)).collect();
        Ok(RouteUpstream(Arc::new(Inner {
            targets: Targets::new(targets, route.check_interval),
            connector,
            own_headers: route.headers.clone(),
            times: Times { first_byte: route.first_byte_timeout, idle: route.idle_timeout },
        })))
    }

    /// What is sent for a client's request. `length`: of its body, where it is known before it is sent.
    pub(super) fn outline(&self, head: request::Parts, length: Option<u64>) -> Outline {
        Outline::new(head, length, &self.0.own_headers)
    }

    /// A connection for one exchange, where it leads, and whether it was used before.
    ///
    /// # Errors
    /// There is nothing left to try.
    pub(super) async fn connect(&self) -> Result<(Lease, &Target, bool), UpstreamError> {
        self.0.connect(false).await
    }

    /// The route's limits of time.
    pub(super) fn times(&self) -> Times {
        self.0.times
    }

    /// Asks to switch to one of these protocols. `head` is the client's.
    ///
    /// # Errors
    /// There was no answer.
    pub(super) async fn switch(&self, head: request::Parts, protocols: HeaderValue) -> Result<Switched, UpstreamError> {
        let outline = self.outline(head, Some(0)).switching_to(protocols);
        self.0.switch(&outline).await
    }

    /// The longest silence of a connection that was switched.
    pub(super) fn silence(&self) -> Duration {
        self.0.times.first_byte.max(self.0.times.idle)
    }

    /// Looks after the servers and the connections to them until `stop` changes.
    pub(super) async fn look_after(&self, stop: watch::Receiver<bool>) {
        tokio::join!(self.0.targets.check(stop.clone()), self.0.targets.sweep(stop));
    }
}

/// What came of the wish to switch to another protocol.
pub(super) enum Switched {
    /// It is done: this is the head of the answer, and the connection.
    Done(Box<ResponseHeader>, Lease),
    /// The upstream answers as if nothing had been asked for.
    Refused(Response<Body>),
}

impl Upstream for RouteUpstream {
    fn call(&self, request: Request<Body>) -> BoxFuture<'static, Result<Response<Body>, UpstreamError>> {
        let inner = self.0.clone();
        Box::pin(async move { inner.call(request).await })
    }
}

impl Inner {
    async fn call(&self, request: Request<Body>) -> Result<Response<Body>, UpstreamError> {
        let (parts, body) = request.into_parts();
        let mut body = Outgoing::new(body).map_err(|error| {
            UpstreamError::new(UpstreamErrorKind::Other, format!("the request's body broke off: {error}"))
        })?;
        let outline = Outline::new(parts, body.length(), &self.own_headers);
        let (lease, target) = self.send(&outline, &mut body).await?;
        Ok(self.answer(lease, target, &outline.method).await)
    }

    async fn switch(&self, outline: &Outline) -> Result<Switched, UpstreamError> {
        let (mut lease, target) = self.send(outline, &mut Outgoing::nothing()).await?;
        match lease.session().and_then(|session| session.response_header()) {
            Some(head) if head.status == StatusCode::SWITCHING_PROTOCOLS => {
                Ok(Switched::Done(Box::new(head.clone()), lease))
            }
            _ => Ok(Switched::Refused(self.answer(lease, target, &outline.method).await)),
        }
    }

    /// Sends a request and reads the head of its answer, which the lease then holds.
    async fn send(&self, outline: &Outline, body: &mut Outgoing) -> Result<(Lease, &Target), UpstreamError> {
        let mut retries = 0;
        loop {
            let (mut lease, target, reused) = self.connect(outline.switches).await?;
            match exchange::send(&mut lease, outline, target, body, self.times).await {
                Ok(()) => return Ok((lease, target)),
                Err(error) if retries < MAX_RETRIES && body.can_repeat() && failure::may_retry(&error, reused) => {
                    retries += 1;
                    lease.failed(&error);
                }
                Err(error) => return Err(failure::explain(target.authority(), &error)),
            }
        }
    }

    /// `switches`: the connection is to be switched to another protocol, which HTTP/2 does not know.
    async fn connect(&self, switches: bool) -> Result<(Lease, &Target, bool), UpstreamError> {
        let mut tried = Tried::default();
        let mut failed = None;
        while let Some((target, address)) = self.targets.next(&mut tried).await {
            match target.lease(&self.connector, address, switches).await {
                Ok((lease, reused)) => return Ok((lease, target, reused)),
                Err(error) => {
                    target.unreachable();
                    failed = Some(failure::explain(target.authority(), &error));
                }
            }
        }
        Err(failed.unwrap_or_else(|| self.nothing_left(&tried)))
    }

    fn nothing_left(&self, tried: &Tried) -> UpstreamError {
        let message = match tried.unresolved() {
            Some(name) => format!("the name cannot be resolved: {name}"),
            None => format!("{}: there is no connection to it", self.targets.name()),
        };
        UpstreamError::new(UpstreamErrorKind::Connect, message)
    }

    /// The answer whose head `lease` has read.
    async fn answer(&self, mut lease: Lease, target: &Target, method: &Method) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        let mut over = true;
        if let Some(session) = lease.session() {
            if let Some(head) = session.response_header() {
                let head = head.as_owned_parts();
                *response.status_mut() = head.status;
                *response.headers_mut() = head.headers;
                *response.version_mut() = Version::HTTP_11;
            }
            let http1 = session.as_http1().is_some();
            if http1 {
                // pingora drops the trailers of an HTTP/1.1 answer: none may be promised.
                headers::remove(response.headers_mut(), &[header::TRAILER]);
            }
            over = http1 && session.response_done();
        }
        headers::strip_hop_by_hop(response.headers_mut());
        if over {
            lease.finish().await;
            return response;
        }
        let bodiless =
            method == Method::HEAD || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let length = if bodiless { Some(0) } else { headers::declared_length(response.headers()) };
        let name = target.authority().into();
        *response.body_mut() = Body::wrap(AnswerBody::new(lease, name, length, self.times.idle));
        response
    }
}
