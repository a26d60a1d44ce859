//! Who may pass, asked before anything else of a request is looked at.

use std::sync::Arc;

use http::{Response, header, request};
use pingora::protocols::http::ServerSession;

use super::ServeError;
use crate::auth::{Access, AuthGate, CallbackBypass, ClientAddress, Gate, OpenGate, RouteKeys};
use crate::body::Body;
use crate::config::{AuthConfig, Config};
use crate::id::Tenant;

/// The gates of a proxy. Clones are the same gates.
#[derive(Clone)]
pub(super) struct Guard {
    control: Arc<dyn AuthGate>,
    /// The gate with logins, whose cookie is nobody else's business.
    login: Option<Gate>,
    keys: Option<Arc<RouteKeys>>,
}

impl Guard {
    pub(super) fn new(config: &Config) -> std::result::Result<Self, ServeError> {
        let AuthConfig { gate, keys_file, .. } = &config.auth;
        let login = gate.clone().map(Gate::new).transpose().map_err(ServeError::setup)?;
        let gate: Arc<dyn AuthGate> = match &login {
            Some(gate) => Arc::new(gate.clone()),
            None => Arc::new(OpenGate),
        };
        let callbacks = &config.tmp_hooks;
        let bypass = CallbackBypass::new(gate, callbacks.settings.prefix());
        let control = Arc::new(bypass.allow_unauthenticated(callbacks.allow_unauthenticated));
        let keys = keys_file.as_ref().map(|path| Arc::new(RouteKeys::new(path)));
        Ok(Guard { control, login, keys })
    }

    /// The gate that has a login page.
    pub(super) fn login(&self) -> Option<&Gate> {
        self.login.as_ref()
    }

    /// Asks about a request to hookgate itself, callbacks included. `head` has the path that the request is routed by, and gets the caller.
    /// Gives the refusal.
    pub(super) async fn control(&self, session: &ServerSession, head: &mut request::Parts) -> Option<Response<Body>> {
        if let Some(address) = session.client_addr().and_then(|address| address.as_inet()) {
            head.extensions.insert(ClientAddress(address.ip()));
        }
        match self.control.check(head).await {
            Access::Granted(caller) => {
                head.extensions.insert(caller);
                None
            }
            Access::Refused(refusal) => Some(refusal),
        }
    }

    /// Asks whose request on a route it is: `None` where routes have no keys. Takes the login's cookie out of the request: a
    /// browser sends it to every path of this host.
    #[expect(clippy::result_large_err, reason = "the error is the answer, and it is on its way to the client")]
    pub(super) fn route(&self, session: &mut ServerSession) -> std::result::Result<Option<Tenant>, Response<Body>> {
        let headers = &session.req_header().headers;
        let tenant = self.keys.as_ref().map(|keys| keys.tenant(headers)).transpose()?;
        if let Some(cookies) = self.login.as_ref().and_then(|gate| gate.foreign_cookies(headers)) {
            let request = session.req_header_mut();
            request.remove_header(&header::COOKIE);
            if !cookies.is_empty() {
                // It is a part of a value that was one.
                let _ = request.insert_header(header::COOKIE, cookies);
            }
        }
        Ok(tenant)
    }
}

/// Says what an operator may not have meant.
pub(super) fn warn(config: &Config) {
    let reachable = |address: &&std::net::SocketAddr| !address.ip().to_canonical().is_loopback();
    let open = config.listen.iter().find(reachable);
    if let (Some(address), None) = (open, &config.auth.keys_file) {
        tracing::warn!(%address, "routes can be used by everybody who reaches this address; [auth] protect_routes = true asks for a key");
    }
    let plain = config.control_listen.iter().find(reachable).or(open.filter(|_| config.tls.is_none()));
    if let Some(address) = plain {
        tracing::warn!(%address, "without TLS in front, tokens, passwords and keys can be read on their way to this address");
    }
}
