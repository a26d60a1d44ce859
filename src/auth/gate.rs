//! The question that every gate answers.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use http::{Response, request};

use crate::body::Body;

/// Decides from a request's head whether the request may pass.
///
/// A host asks before it reads the request's body, and with the path that it routes by: what is decided about one path
/// must not be used for another. It gives the client's address as a [`ClientAddress`] extension where it knows it.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt as _, ready};
/// use hookgate::auth::{Access, AuthGate, Caller};
/// use hookgate::Body;
/// use http::{Response, StatusCode, request};
///
/// /// Passes whoever a proxy in front has authenticated.
/// struct Forwarded;
///
/// impl AuthGate for Forwarded {
///     fn check<'a>(&'a self, request: &'a request::Parts) -> BoxFuture<'a, Access> {
///         let user = request.headers.get("x-forwarded-user").and_then(|user| user.to_str().ok());
///         let access = match user {
///             Some(user) => Access::Granted(Caller::named(user)),
///             None => {
///                 let mut refusal = Response::new(Body::from("log in first\n"));
///                 *refusal.status_mut() = StatusCode::UNAUTHORIZED;
///                 Access::Refused(refusal)
///             }
///         };
///         ready(access).boxed()
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (head, ()) = http::Request::get("/hookgate/v1/audit").body(()).unwrap().into_parts();
/// assert!(matches!(Forwarded.check(&head).await, Access::Refused(answer) if answer.status() == 401));
/// # });
/// ```
pub trait AuthGate: Send + Sync + 'static {
    /// The decision. A gate that cannot decide refuses.
    fn check<'a>(&'a self, request: &'a request::Parts) -> BoxFuture<'a, Access>;
}

impl<G: AuthGate + ?Sized> AuthGate for Arc<G> {
    fn check<'a>(&'a self, request: &'a request::Parts) -> BoxFuture<'a, Access> {
        (**self).check(request)
    }
}

/// A gate that stands open: everybody passes, without a name. For what only its own machine can reach.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenGate;

impl AuthGate for OpenGate {
    fn check<'a>(&'a self, _: &'a request::Parts) -> BoxFuture<'a, Access> {
        Box::pin(ready(Access::Granted(Caller::anonymous())))
    }
}

/// What a gate decided.
#[derive(Debug)]
pub enum Access {
    /// The request passes. Hosts put the caller into the request's extensions.
    Granted(Caller),
    /// The request is answered with this and goes nowhere.
    Refused(Response<Body>),
}

/// Who passed a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller(Option<Arc<str>>);

impl Caller {
    /// Somebody who did not have to say who they are.
    pub fn anonymous() -> Self {
        Caller(None)
    }

    /// Somebody with a name.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Caller(Some(name.into()))
    }

    /// The name, where there is one.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Shows the name, or `anonymous`.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or("anonymous"))
    }
}

/// The address that a request came from, as a request extension. It is the other end of the connection, never taken from a
/// header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);
