//! Every request's way through pingora's phases: checked, routed, planned, then driven by the core or passed on.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use axum::Router;
use http::uri::{Authority, Scheme};
use http::{Method, StatusCode, Uri, header};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::modules::http::HttpModules;
use pingora::proxy::{FailToProxy, ProxyHttp, Session};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorSource, ErrorType, Result};
use tokio::sync::mpsc;

use super::callbacks::Callbacks;
use super::counts::Counts;
use super::guard::Guard;
use super::passthrough::Passing;
use super::public::{Public, metadata_of};
use super::rebinding::Names;
use super::routes::{Found, Table};
use super::upstream::RouteUpstream;
use super::upstream::headers::{HeaderCase, Place};
use super::{control, driven, framing, respond, upgrade};
use crate::problem::problem;
use crate::{Hookgate, Plan, Route, RouteKind};

/// The longest time that a client may take to accept a piece of an answer.
const CLIENT_WRITE_TIME: std::time::Duration = std::time::Duration::from_secs(300);

/// What is said to a client whose path is fit for no URI.
pub(super) const NO_URI: &str = "the request path is not a valid URI";

/// What a listener serves.
pub(super) struct Gateway {
    pub(super) core: Hookgate,
    pub(super) table: Table<Arc<Mount>>,
    /// The one-time callbacks; `None` where only the control surface is served.
    pub(super) callbacks: Option<Callbacks>,
    pub(super) control: Router,
    pub(super) counts: Counts,
    pub(super) guard: Guard,
    /// Tells the server, by being dropped, that no connection is left.
    pub(super) _alive: mpsc::Sender<()>,
}

/// A route with its upstream.
pub(super) struct Mount {
    pub(super) route: Arc<Route>,
    pub(super) upstream: RouteUpstream,
    /// Where the outside reaches it, when its server's own addresses are to be that.
    pub(super) public: Option<Public>,
    /// The names by which browsers may reach it.
    pub(super) names: Names,
}

impl Mount {
    /// What the route is for, for the answer to a path without one.
    fn purpose(self: &Arc<Self>) -> String {
        format!("{} route \"{}\"", self.route.kind.name(), self.route.name)
    }
}

/// One request's state.
pub(super) struct Context {
    started: Instant,
    /// What the log calls the request: its route's name. Never its path, which may hold secrets.
    label: Arc<str>,
    passing: Option<Passing>,
    /// What the log says of a request that did not end well.
    trouble: Option<String>,
}

impl Gateway {
    /// Looks at the request and answers it; `false`: it passes on to the upstream.
    async fn handle(&self, session: &mut Session, context: &mut Context) -> Result<bool> {
        let request = session.req_header();
        let raw = || session.as_downstream().to_h1_raw();
        if let Some(objection) = framing::objection(request.version, &request.headers, raw) {
            session.set_keepalive(None);
            return answered(respond::answer(session, problem(StatusCode::BAD_REQUEST, objection)).await);
        }
        let (path, query) = split_target(request);
        // Before any route, and in whatever way the path is written: what is meant for a callback reaches nothing else.
        if let Some(callbacks) = self.callbacks.as_ref().filter(|callbacks| callbacks.concern(&path)) {
            context.label = "callback".into();
            let Some(mut head) = head(session, &path) else {
                return answered(respond::refuse(session, problem(StatusCode::BAD_REQUEST, NO_URI)).await);
            };
            return answered(match self.guard.control(session, &mut head).await {
                Some(refusal) => respond::refuse(session, refusal).await,
                None => callbacks.serve(session, head).await,
            });
        }
        let found = match self.table.find(authority(request), &path) {
            Ok(found) => found,
            Err(ambiguous) => {
                return answered(respond::refuse(session, problem(StatusCode::BAD_REQUEST, ambiguous.0)).await);
            }
        };
        if let Some(Found::Own) = found {
            context.label = "control".into();
            let target = format!("{path}{query}");
            return answered(control::serve(session, &self.control, &self.guard, &target).await);
        }
        // Before a stranger learns which routes there are.
        let tenant = match self.guard.route(session) {
            Ok(tenant) => tenant,
            Err(refusal) => return answered(respond::refuse(session, refusal).await),
        };
        let authority = authority(session.req_header());
        if let Some((mount, public, rest)) = self.metadata(&session.req_header().method, authority, &path) {
            context.label = mount.route.name.clone();
            if let Some(objection) = objection(session, mount, tenant.is_some()) {
                return answered(respond::refuse(session, objection).await);
            }
            let mut head = session.req_header().as_owned_parts();
            self.core.strip(&mut head.headers);
            let response = public.serve(&mount.upstream, &head, rest).await;
            return answered(respond::refuse(session, response).await);
        }
        let Some(Found::Route { route: mount, rest }) = found else {
            let known = self.table.describe(Mount::purpose);
            let detail = format!("no route takes this path; this hookgate serves {known}");
            return answered(respond::refuse(session, problem(StatusCode::NOT_FOUND, &detail)).await);
        };
        context.label = mount.route.name.clone();
        if let Some(objection) = objection(session, mount, tenant.is_some()) {
            return answered(respond::refuse(session, objection).await);
        }
        let seen = if rest.is_empty() { "/" } else { rest };
        match self.core.plan(&mount.route, session.req_header(), seen) {
            Plan::Pass => {
                let rest = format!("{rest}{query}");
                let passing = context.passing.insert(Passing::new(mount.clone(), rest.clone()));
                let Some(protocols) = upgrade::asked_for(session) else { return Ok(false) };
                let Some(mut head) = head(session, &format!("{seen}{query}")) else {
                    return answered(respond::refuse(session, problem(StatusCode::BAD_REQUEST, NO_URI)).await);
                };
                self.core.strip(&mut head.headers);
                answered(match upgrade::run(session, &mount.upstream, head, rest, protocols).await? {
                    Ok(()) => Ok(()),
                    Err(failure) => {
                        passing.failure = Some(failure);
                        Err(Error::explain(ErrorType::ConnectError, "no answer to an upgrade").into_up())
                    }
                })
            }
            Plan::Refuse(response) => answered(respond::refuse(session, response).await),
            Plan::Inspect(inspection) => {
                let Some(mut head) = head(session, &format!("{seen}{query}")) else {
                    return answered(respond::refuse(session, problem(StatusCode::BAD_REQUEST, NO_URI)).await);
                };
                if let Some(tenant) = tenant {
                    head.extensions.insert(tenant);
                }
                if rest.is_empty() {
                    head.extensions.insert(Place::Own);
                }
                if mount.route.kind == RouteKind::A2a {
                    say_arrival(session, &mut head);
                }
                let upstream = Arc::new(mount.upstream.clone());
                let public = mount.public.as_ref().map(|public| (public, rest));
                answered(driven::exchange(session, &self.core, inspection, head, upstream, public).await)
            }
        }
    }

    /// The route whose server's metadata a request is for, where that is, and the path behind its prefix. At the root of a host
    /// there is that of its only such route, unless the root is a route's own.
    fn metadata<'a>(
        &'a self,
        method: &Method,
        host: Option<&str>,
        path: &'a str,
    ) -> Option<(&'a Arc<Mount>, &'a Public, &'a str)> {
        let of = metadata_of(method, path)?;
        if let Ok(Some(Found::Route { route, rest })) = self.table.find(host, if of.is_empty() { "/" } else { of })
            && let Some(public) = &route.public
        {
            return Some((route, public, rest));
        }
        if !of.is_empty() || !matches!(self.table.find(host, path), Ok(None)) {
            return None;
        }
        let mut public = self.table.of_host(host).filter_map(|mount| Some((mount, mount.public.as_ref()?, "")));
        public.next().filter(|_| public.next().is_none())
    }
}

/// The answer to a request that a page in somebody's browser may have made. `keyed`: it came with a key.
fn objection(session: &Session, mount: &Mount, keyed: bool) -> Option<http::Response<crate::body::Body>> {
    if mount.route.kind != RouteKind::Mcp {
        return None;
    }
    let request = session.req_header();
    let why = mount.names.objection(&request.headers, authority(request), keyed)?;
    Some(problem(StatusCode::FORBIDDEN, &why))
}

/// The request's head with another target, remembering how the client wrote the names in it; `None` when that is no URI.
fn head(session: &Session, target: &str) -> Option<http::request::Parts> {
    let request = session.req_header();
    let uri = Uri::try_from(target).ok()?;
    let mut head = request.as_owned_parts();
    head.uri = uri;
    if let Some(case) = HeaderCase::of(request) {
        head.extensions.insert(case);
    }
    Some(head)
}

/// Says in a head how the client got here, which the addresses in an agent's card are made of.
fn say_arrival(session: &Session, head: &mut http::request::Parts) {
    let is_tls = session.as_downstream().digest().is_some_and(|digest| digest.ssl_digest.is_some());
    head.extensions.insert(if is_tls { Scheme::HTTPS } else { Scheme::HTTP });
    if let Some(authority) = authority(session.req_header()).and_then(|authority| authority.parse::<Authority>().ok()) {
        head.extensions.insert(authority);
    }
}

fn answered(written: Result<()>) -> Result<bool> {
    written.map(|()| true)
}

/// The target's path, and its query with the question mark in front.
fn split_target(request: &RequestHeader) -> (String, String) {
    // An absolute target has its path in the URI; of other targets the URI would be a guess.
    let target = match request.uri.path_and_query() {
        Some(path) if request.raw_path_is_utf8() && has_path(request.raw_path()) => path.as_str(),
        _ => "",
    };
    let path = target.split('?').next().unwrap_or_default();
    (path.to_owned(), target.get(path.len()..).unwrap_or_default().to_owned())
}

fn has_path(target: &[u8]) -> bool {
    let starts_with =
        |scheme: &str| target.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()));
    starts_with("/") || starts_with("http://") || starts_with("https://")
}

pub(super) fn authority(request: &RequestHeader) -> Option<&str> {
    let named = request.uri.authority().map(|authority| authority.as_str());
    named.or_else(|| request.headers.get(header::HOST).and_then(|host| host.to_str().ok()))
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = Context;

    fn new_ctx(&self) -> Context {
        Context { started: Instant::now(), label: "-".into(), passing: None, trouble: None }
    }

    /// Answers are not changed on their way: there is no module to run.
    fn init_downstream_modules(&self, _: &mut HttpModules) {}

    async fn request_filter(&self, session: &mut Session, context: &mut Context) -> Result<bool> {
        let client = session.as_downstream_mut();
        // A client that sends its next request early would otherwise look like one that went away.
        client.set_pipelining_enabled(true);
        client.set_write_timeout(Some(CLIENT_WRITE_TIME));
        self.handle(session, context).await
    }

    async fn upstream_peer(&self, _: &mut Session, context: &mut Context) -> Result<Box<HttpPeer>> {
        match &mut context.passing {
            Some(passing) => passing.peer().await,
            None => Error::e_explain(ErrorType::InternalError, "a request without a route"),
        }
    }

    async fn upstream_request_filter(
        &self,
        _: &mut Session,
        request: &mut RequestHeader,
        context: &mut Context,
    ) -> Result<()> {
        context.passing.as_ref().map_or(Ok(()), |passing| passing.request(request))
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        response: &mut ResponseHeader,
        context: &mut Context,
    ) -> Result<()> {
        Passing::response(response, session.as_downstream().is_http2())?;
        context.passing.as_ref().map_or(Ok(()), |passing| passing.challenges(response))
    }

    fn fail_to_connect(&self, _: &mut Session, _: &HttpPeer, context: &mut Context, error: Box<Error>) -> Box<Error> {
        match &mut context.passing {
            Some(passing) => passing.not_connected(error),
            None => error,
        }
    }

    fn error_while_proxy(
        &self,
        _: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        context: &mut Context,
        reused: bool,
    ) -> Box<Error> {
        let repeatable = !session.as_downstream().retry_buffer_truncated() && session.response_written().is_none();
        match &mut context.passing {
            Some(passing) => passing.failed(error, reused, repeatable),
            None => error,
        }
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, context: &mut Context) -> FailToProxy {
        let code = self.report(session, error, context).await;
        FailToProxy { error_code: code, can_reuse_downstream: false }
    }

    async fn logging(&self, session: &mut Session, _: Option<&Error>, context: &mut Context) {
        let status = session.response_written().map_or(0, |head| head.status.as_u16());
        let route = &*context.label;
        self.counts.count(&context.label, status);
        let millis = context.started.elapsed().as_millis() as u64;
        let method = session.req_header().method.as_str();
        let trouble = context.trouble.as_deref();
        tracing::info!(target: "hookgate::access", route, method, status, millis, trouble);
    }

    /// Failures are told by [`ProxyHttp::logging`]: pingora's own line has the path and the query in it.
    fn suppress_error_log(&self, _: &Session, _: &Context, _: &Error) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _: &Session,
        _: &Context,
        _: &Error,
        _: pingora::proxy::ProxyWarnLogContext,
    ) -> bool {
        true
    }

    fn request_summary(&self, session: &Session, context: &Context) -> String {
        format!("{} {}", session.req_header().method, context.label)
    }
}

impl Gateway {
    /// Tells the client and the log what went wrong. Once an answer has begun, all that is left is to break it off.
    async fn report(&self, session: &mut Session, error: &Error, context: &mut Context) -> u16 {
        let failure = context.passing.as_mut().and_then(|passing| passing.failure.take());
        let client_left = *error.esource() == ErrorSource::Downstream
            && matches!(
                error.etype(),
                ErrorType::ConnectionClosed
                    | ErrorType::ReadError
                    | ErrorType::WriteError
                    | ErrorType::WriteTimedout
                    | ErrorType::H2Error
            );
        context.trouble = Some(match &failure {
            _ if client_left => "the client went away".to_owned(),
            Some(failure) => failure.to_string(),
            None => error.etype().as_str().to_owned(),
        });
        if client_left {
            return 0;
        }
        if let Some(status) = session.response_written().map(|head| head.status.as_u16()) {
            if session.as_downstream().is_http2() {
                session.as_downstream_mut().shutdown().await;
            }
            return status;
        }
        let (status, detail) = match (&failure, error.esource()) {
            (Some(failure), _) => (failure.status(), failure.to_string()),
            (None, ErrorSource::Upstream) => {
                (StatusCode::BAD_GATEWAY, "the exchange with the upstream failed".to_owned())
            }
            (None, ErrorSource::Downstream) => (StatusCode::BAD_REQUEST, "the request is not valid HTTP".to_owned()),
            (None, _) => (StatusCode::INTERNAL_SERVER_ERROR, "hookgate failed; its log says why".to_owned()),
        };
        session.set_keepalive(None);
        let known = context.passing.as_ref().zip(failure.as_ref());
        let answer = known.and_then(|(passing, failure)| passing.mount.route.no_answer(failure));
        let _ = respond::refuse(session, answer.unwrap_or_else(|| problem(status, &detail))).await;
        status.as_u16()
    }
}
