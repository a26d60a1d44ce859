//! Every request's way: checked, routed, planned, then driven by the core or passed on.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use http::uri::{Authority, Scheme};
use http::{Method, StatusCode, Uri, header};
use pingora::http::RequestHeader;
use pingora::protocols::http::ServerSession;
use pingora::{Error, ErrorSource, ErrorType, Result};
use tokio::sync::mpsc;

use super::callbacks::Callbacks;
use super::counts::Counts;
use super::guard::Guard;
use super::public::{Public, metadata_of};
use super::rebinding::Names;
use super::routes::{Found, Table};
use super::upstream::RouteUpstream;
use super::upstream::headers::{HeaderCase, Place};
use super::{control, driven, framing, passthrough, respond, upgrade};
use crate::body::Body;
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

/// What the log says of a request.
struct Told {
    /// What it calls the request: its route's name. Never its path, which may hold secrets.
    label: Arc<str>,
    /// Why it did not end well.
    trouble: Option<String>,
}

impl Gateway {
    /// Answers a request, and tells the log of it. `false`: the connection must not be used any more.
    pub(super) async fn answer(&self, session: &mut ServerSession) -> bool {
        let started = Instant::now();
        // A client that sends its next request early would otherwise look like one that went away.
        session.set_pipelining_enabled(true);
        session.set_write_timeout(Some(CLIENT_WRITE_TIME));
        let mut told = Told { label: "-".into(), trouble: None };
        let handled = self.handle(session, &mut told).await;
        let is_whole = handled.is_ok();
        if let Err(error) = handled {
            self.report(session, &error, &mut told).await;
        }
        let status = respond::answered(session).map_or(0, |status| status.as_u16());
        self.counts.count(&told.label, status);
        let (route, millis) = (&*told.label, started.elapsed().as_millis() as u64);
        let method = session.req_header().method.as_str();
        let trouble = told.trouble.as_deref();
        tracing::info!(target: "hookgate::access", route, method, status, millis, trouble);
        is_whole
    }

    async fn handle(&self, session: &mut ServerSession, told: &mut Told) -> Result<()> {
        let request = session.req_header();
        if let Some(objection) = framing::objection(request.version, &request.headers, || session.to_h1_raw()) {
            session.set_keepalive(None);
            return respond::answer(session, problem(StatusCode::BAD_REQUEST, objection)).await;
        }
        let (path, query) = split_target(request);
        // Before any route, and in whatever way the path is written: what is meant for a callback reaches nothing else.
        if let Some(callbacks) = self.callbacks.as_ref().filter(|callbacks| callbacks.concern(&path)) {
            told.label = "callback".into();
            return Box::pin(self.call_back(session, callbacks, &path)).await;
        }
        let found = match self.table.find(authority(request), &path) {
            Ok(found) => found,
            Err(ambiguous) => return refuse(session, problem(StatusCode::BAD_REQUEST, ambiguous.0)).await,
        };
        if let Some(Found::Own) = found {
            told.label = "control".into();
            let target = format!("{path}{query}");
            return Box::pin(control::serve(session, &self.control, &self.guard, &target)).await;
        }
        // Before a stranger learns which routes there are.
        let tenant = match self.guard.route(session) {
            Ok(tenant) => tenant,
            Err(refusal) => return refuse(session, refusal).await,
        };
        let authority = authority(session.req_header());
        if let Some((mount, public, rest)) = self.metadata(&session.req_header().method, authority, &path) {
            told.label = mount.route.name.clone();
            if let Some(objection) = objection(session, mount, tenant.is_some()) {
                return refuse(session, objection).await;
            }
            let mut head = session.req_header().as_owned_parts();
            self.core.strip(&mut head.headers);
            let response = Box::pin(public.serve(&mount.upstream, &head, rest)).await;
            return refuse(session, response).await;
        }
        let Some(Found::Route { route: mount, rest }) = found else {
            let known = self.table.describe(Mount::purpose);
            let detail = format!("no route takes this path; this hookgate serves {known}");
            return refuse(session, problem(StatusCode::NOT_FOUND, &detail)).await;
        };
        told.label = mount.route.name.clone();
        if let Some(objection) = objection(session, mount, tenant.is_some()) {
            return refuse(session, objection).await;
        }
        let seen = if rest.is_empty() { "/" } else { rest };
        let inspection = match self.core.plan(&mount.route, session.req_header(), seen) {
            Plan::Refuse(response) => return refuse(session, response).await,
            Plan::Pass => None,
            Plan::Inspect(inspection) => Some(inspection),
        };
        let Some(mut head) = head(session, &format!("{seen}{query}")) else {
            return refuse(session, problem(StatusCode::BAD_REQUEST, NO_URI)).await;
        };
        if rest.is_empty() {
            head.extensions.insert(Place::Own);
        }
        let Some(inspection) = inspection else {
            self.core.strip(&mut head.headers);
            return Box::pin(pass(session, mount, head, rest, told)).await;
        };
        if let Some(tenant) = tenant {
            head.extensions.insert(tenant);
        }
        if mount.route.kind == RouteKind::A2a {
            say_arrival(session, &mut head);
        }
        let upstream = Arc::new(mount.upstream.clone());
        let public = mount.public.as_ref().map(|public| (public, rest));
        driven::exchange(session, &self.core, inspection, head, upstream, public).await
    }

    async fn call_back(&self, session: &mut ServerSession, callbacks: &Callbacks, path: &str) -> Result<()> {
        let Some(mut head) = head(session, path) else {
            return refuse(session, problem(StatusCode::BAD_REQUEST, NO_URI)).await;
        };
        match self.guard.control(session, &mut head).await {
            Some(refusal) => refuse(session, refusal).await,
            None => callbacks.serve(session, head).await,
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
fn objection(session: &ServerSession, mount: &Mount, keyed: bool) -> Option<http::Response<Body>> {
    if mount.route.kind != RouteKind::Mcp {
        return None;
    }
    let request = session.req_header();
    let why = mount.names.objection(&request.headers, authority(request), keyed)?;
    Some(problem(StatusCode::FORBIDDEN, &why))
}

/// The request's head with another target, remembering how the client wrote the names in it; `None` when that is no URI.
fn head(session: &ServerSession, target: &str) -> Option<http::request::Parts> {
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
fn say_arrival(session: &ServerSession, head: &mut http::request::Parts) {
    let is_tls = session.digest().is_some_and(|digest| digest.ssl_digest.is_some());
    head.extensions.insert(if is_tls { Scheme::HTTPS } else { Scheme::HTTP });
    if let Some(authority) = authority(session.req_header()).and_then(|authority| authority.parse::<Authority>().ok()) {
        head.extensions.insert(authority);
    }
}

/// Passes a request on as it is.
async fn pass(
    session: &mut ServerSession,
    mount: &Mount,
    head: http::request::Parts,
    rest: &str,
    told: &mut Told,
) -> Result<()> {
    let passed = match upgrade::asked_for(session) {
        Some(protocols) => upgrade::run(session, &mount.upstream, head, protocols).await?,
        None => passthrough::run(session, mount, head, rest).await?,
    };
    let Err(failure) = passed else { return Ok(()) };
    told.trouble = Some(failure.to_string());
    if respond::answered(session).is_some() {
        return Error::e_explain(ErrorType::Custom("the answer broke off"), "").map_err(|error| error.into_up());
    }
    session.set_keepalive(None);
    let answer = mount.route.no_answer(&failure);
    refuse(session, answer.unwrap_or_else(|| problem(failure.status(), &failure.to_string()))).await
}

/// Boxed, since most requests are not refused.
async fn refuse(session: &mut ServerSession, response: http::Response<Body>) -> Result<()> {
    Box::pin(respond::refuse(session, response)).await
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

impl Gateway {
    /// Tells the client and the log what went wrong. Once an answer has begun, all that is left is to break it off.
    async fn report(&self, session: &mut ServerSession, error: &Error, told: &mut Told) {
        let is_clients = *error.esource() == ErrorSource::Downstream;
        let has_left = is_clients
            && matches!(
                error.etype(),
                ErrorType::ConnectionClosed
                    | ErrorType::ReadError
                    | ErrorType::WriteError
                    | ErrorType::WriteTimedout
                    | ErrorType::H2Error
            );
        if has_left {
            told.trouble = Some("the client went away".to_owned());
            return;
        }
        told.trouble.get_or_insert_with(|| error.etype().as_str().to_owned());
        if respond::answered(session).is_some() {
            if session.is_http2() {
                session.shutdown().await;
            }
            return;
        }
        let answer = match error.esource() {
            ErrorSource::Upstream => problem(StatusCode::BAD_GATEWAY, "the exchange with the upstream failed"),
            ErrorSource::Downstream => problem(StatusCode::BAD_REQUEST, "the request is not valid HTTP"),
            _ => problem(StatusCode::INTERNAL_SERVER_ERROR, "hookgate failed; its log says why"),
        };
        session.set_keepalive(None);
        let _ = refuse(session, answer).await;
    }
}
