//! The built-in gate.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, request};
use tokio::time::Instant;

use super::answer::{LOGIN, LOGOUT, broken, is_navigation, problem, to_login, too_many};
use super::book::Book;
use super::cookie;
use super::file::{Readers, Watched};
use super::limiter::Limiter;
use super::origin::is_foreign;
use super::password::Checker;
use super::sessions::{Login, Sessions, Who};
use super::token::TOKEN_NAME;
use super::users::{self, UserEntry};
use super::{Access, AuthGate, Caller, ClientAddress, GateOptions, PasswordError, Token, TokenSource};
use crate::body::Body;
use crate::id::Digest;

/// Tries that may go wrong at once, of one address (for IPv6: one /64 network).
const ADDRESS_TRIES: u32 = 20;
/// And then one more after each of these.
const ADDRESS_PAUSE: Duration = Duration::from_secs(3);
/// Logins of one user that may go wrong at once, whatever the addresses.
const USER_TRIES: u32 = 10;
/// And then one more after each of these.
const USER_PAUSE: Duration = Duration::from_secs(6);

/// The gate of the control surface: a token, users, or both. Clones are one gate.
///
/// 1. `/healthz`, `/readyz` and the login page pass without login, `/metrics` when
///    [`metrics_open`](GateOptions::metrics_open) says so. These are compared with the path's bytes.
/// 2. The token passes as `authorization: Bearer …`. Whoever shows a wrong one is refused, whatever cookie comes with it.
/// 3. A login passes by its cookie. It ends after [`session_ttl`](GateOptions::session_ttl), by logout, when the user is disabled,
///    removed or gets another password, when the token changes, and with the process.
/// 4. With a cookie, requests that change something are refused when a page of another origin made them.
/// 5. Everything else is refused: with a redirect to the login page for a browser that follows a link, with problem+json
///    and 401 for others.
/// 6. While the users file or the token file cannot be used, or neither is configured, everything but the first rule's paths is refused
///    with 503.
/// 7. Failed tries are limited for each address and each user, with 429. A right bearer token passes all the same: it is
///    too long to be found by trying, and behind a proxy all clients share one address.
#[derive(Clone)]
pub struct Gate(pub(super) Arc<Inner>);

pub(super) struct Inner {
    token: Option<Secret>,
    users: Option<Watched<Book<UserEntry>>>,
    pub(super) sessions: Sessions,
    pub(super) passwords: Checker,
    addresses: Limiter<IpAddr>,
    names: Limiter<Digest>,
    pub(super) cookie_name: String,
    pub(super) cookie_secure: bool,
    metrics_open: bool,
}

enum Secret {
    Known(Arc<Token>),
    File(Watched<Token>),
}

/// What can be shown at present.
pub(super) struct Standing {
    pub(super) token: Option<Arc<Token>>,
    pub(super) users: Option<Arc<Book<UserEntry>>>,
}

/// Nobody can pass: see the sixth rule of [`Gate`].
pub(super) struct Shut;

impl Gate {
    /// A gate with these settings. Files are read when they are needed.
    ///
    /// # Errors
    /// The system gave no memory or no randomness for a first hash.
    pub fn new(options: GateOptions) -> Result<Self, PasswordError> {
        let token = options.token.map(|source| match source {
            TokenSource::Known(token) => Secret::Known(Arc::new(token)),
            TokenSource::File(path) => {
                let parse = |text: &str| Token::new(text).map_err(|error| error.to_string());
                Secret::File(Watched::new(path, Readers::Any, parse))
            }
        });
        Ok(Gate(Arc::new(Inner {
            token,
            users: options.users_file.map(users::watch),
            sessions: Sessions::new(options.session_ttl),
            passwords: Checker::new()?,
            addresses: Limiter::new(ADDRESS_TRIES, ADDRESS_PAUSE),
            names: Limiter::new(USER_TRIES, USER_PAUSE),
            cookie_name: options.cookie_name,
            cookie_secure: options.cookie_secure,
            metrics_open: options.metrics_open,
        })))
    }

    /// The `cookie` header without the login's cookie, for hosts that send requests on: it is nobody else's business.
    /// `None` when it is not there.
    ///
    /// ```
    /// use hookgate::auth::{Gate, GateOptions};
    /// let gate = Gate::new(GateOptions::default()).unwrap();
    /// let mut headers = http::HeaderMap::new();
    /// headers.insert("cookie", "a=1; hookgate_auth=x.y; b=2".parse().unwrap());
    /// assert_eq!(gate.foreign_cookies(&headers).unwrap(), "a=1; b=2");
    /// ```
    pub fn foreign_cookies(&self, headers: &HeaderMap) -> Option<String> {
        cookie::without(headers, &self.0.cookie_name)
    }

    fn decide(&self, head: &request::Parts) -> Access {
        let gate = &self.0;
        let path = head.uri.path();
        if matches!(path, "/healthz" | "/readyz" | LOGIN | LOGOUT) || path == "/metrics" && gate.metrics_open {
            return Access::Granted(Caller::anonymous());
        }
        let Ok(standing) = gate.standing() else { return Access::Refused(broken()) };
        if let (Some(token), Some(shown)) = (&standing.token, bearer(&head.headers)) {
            return if token.is(shown) {
                Access::Granted(Caller::named(TOKEN_NAME))
            } else {
                gate.wrong_bearer(&standing, head)
            };
        }
        match gate.login(&head.headers, &standing) {
            Some(_) if !is_safe(&head.method) && is_foreign(&head.headers) => Access::Refused(foreign()),
            Some(login) => Access::Granted(login.caller()),
            None if is_navigation(head) => Access::Refused(to_login(head)),
            None => {
                let detail = gate.ways(&standing);
                Access::Refused(gate.unauthorized(&standing, &format!("This needs a login. {detail}")))
            }
        }
    }
}

impl AuthGate for Gate {
    fn check<'a>(&'a self, request: &'a request::Parts) -> BoxFuture<'a, Access> {
        Box::pin(ready(self.decide(request)))
    }
}

impl Inner {
    /// What can be shown now; an error when the gate has to stay shut.
    pub(super) fn standing(&self) -> Result<Standing, Shut> {
        let token = match &self.token {
            None => None,
            Some(Secret::Known(token)) => Some(token.clone()),
            Some(Secret::File(file)) => Some(file.current().map_err(|_| Shut)?),
        };
        let users = self.users.as_ref().map(|file| file.current().map_err(|_| Shut)).transpose()?;
        if token.is_none() && users.is_none() { Err(Shut) } else { Ok(Standing { token, users }) }
    }

    /// The login that a request's cookie stands for, as far as what it rests on still holds.
    pub(super) fn login(&self, headers: &HeaderMap, standing: &Standing) -> Option<Login> {
        let now = Instant::now().into_std();
        let mut logins = cookie::values(headers, &self.cookie_name).filter_map(|value| self.sessions.find(value, now));
        logins.find(|login| standing.proof(&login.who) == Some(login.proof))
    }

    /// Takes a try of an address.
    ///
    /// # Errors
    /// There is none: how long to wait.
    pub(super) fn try_address(&self, address: IpAddr) -> Result<(), Duration> {
        self.addresses.take(address, Instant::now().into_std())
    }

    /// Takes a try of a user, known or not.
    pub(super) fn try_name(&self, name: Digest) -> Result<(), Duration> {
        self.names.take(name, Instant::now().into_std())
    }

    /// Tries that turned out well do not count.
    pub(super) fn give_back(&self, address: IpAddr, name: Option<Digest>) {
        self.addresses.give_back(&address);
        if let Some(name) = name {
            self.names.give_back(&name);
        }
    }

    fn wrong_bearer(&self, standing: &Standing, head: &request::Parts) -> Access {
        let address = address(head);
        tracing::warn!(%address, "a wrong token was shown");
        let tried = self.try_address(address);
        count(if tried.is_ok() { "failed" } else { "limited" });
        Access::Refused(match tried {
            Ok(()) => self.unauthorized(standing, "The bearer token is not the right one."),
            Err(wait) => too_many(wait),
        })
    }

    /// How a client can show who it is.
    fn ways(&self, standing: &Standing) -> String {
        let token = standing.token.as_ref().map(|_| "Send `authorization: Bearer TOKEN`".to_owned());
        let users = standing
            .users
            .as_ref()
            .map(|_| format!("POST username and password as a form to {LOGIN} and send its cookie"));
        let ways: Vec<String> = token.into_iter().chain(users).collect();
        format!("{}.", ways.join(", or "))
    }

    /// 401 with the challenges that fit.
    pub(super) fn unauthorized(&self, standing: &Standing, detail: &str) -> http::Response<Body> {
        let mut answer = problem(StatusCode::UNAUTHORIZED, "login-needed", "A login is needed", detail);
        self.challenge(standing, answer.headers_mut());
        answer
    }

    /// Adds the challenges that a 401 has to have.
    pub(super) fn challenge(&self, standing: &Standing, headers: &mut HeaderMap) {
        if standing.token.is_some() {
            headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"hookgate\""));
        }
        if standing.users.is_some() {
            let form =
                format!("Cookie realm=\"hookgate\", form-action=\"{LOGIN}\", cookie-name=\"{}\"", self.cookie_name);
            if let Ok(challenge) = HeaderValue::try_from(form) {
                headers.append(header::WWW_AUTHENTICATE, challenge);
            }
        }
    }
}

impl Standing {
    /// What a login of that name has to rest on; `None` when it may not log in.
    pub(super) fn proof(&self, who: &Who) -> Option<blake3::Hash> {
        match who {
            Who::Token => self.token.as_ref().map(|token| token.digest()),
            Who::User(name) => {
                let user = self.users.as_ref()?.get(name).filter(|user| !user.disabled)?;
                Some(blake3::hash(user.password.as_bytes()))
            }
        }
    }
}

impl Login {
    pub(super) fn caller(&self) -> Caller {
        match &self.who {
            Who::Token => Caller::named(TOKEN_NAME),
            Who::User(name) => Caller::named(name.clone()),
        }
    }
}

/// The token that a request shows. Two of them are as good as a wrong one.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut shown = headers.get_all(header::AUTHORIZATION).iter().filter_map(|value| {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let first = shown.next()?;
    Some(if shown.next().is_some() { "" } else { first })
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// A request that a page of another origin made with this browser's login.
pub(super) fn foreign() -> http::Response<Body> {
    let detail = "A page of another origin sent this request with your login, so it was not carried out.";
    problem(StatusCode::FORBIDDEN, "foreign-origin", "The request is not from this site", detail)
}

/// The address that tries are counted for. One host may have a whole IPv6 network of 64 bits.
pub(super) fn address(head: &request::Parts) -> IpAddr {
    let address = head.extensions.get::<ClientAddress>().map(|address| address.0.to_canonical());
    match address {
        Some(IpAddr::V6(address)) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        Some(v4) => v4,
        None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

pub(super) fn count(outcome: &'static str) {
    metrics::counter!("hookgate_logins_total", "outcome" => outcome).increment(1);
}

/// Shows nothing of it.
impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gate")
    }
}
