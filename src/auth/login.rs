//! Login and logout: forms in, cookies out.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request};
use tokio::time::Instant;

use super::Gate;
use super::answer::{LOGIN, broken, local_path, problem, seconds, see_other, too_many, wants_page};
use super::built_in::{Standing, address, count, foreign};
use super::cookie;
use super::origin::is_foreign;
use super::page::{self, Page};
use super::sessions::Who;
use crate::body::Body;
use crate::id::Digest;

/// Where a login leads when it was not asked for on the way to something.
const HOME: &str = "/hookgate/";

/// What the form holds.
#[derive(Default)]
struct Form {
    username: String,
    password: String,
    token: String,
    next: String,
}

/// Why nobody was logged in.
enum Failure {
    Nothing,
    Wrong(&'static str),
    Wait(Duration),
    Busy,
}

impl Gate {
    /// Answers the login page's path, `/hookgate/login`: `GET` shows the page, `POST` with `username` and `password` or
    /// `token` as a form logs in, sets the cookie and leads on to `next`, when that is a path of this host.
    ///
    /// The body is all of the request's; a host bounds it. Failures are pages for browsers and problem+json for others: 401 for
    /// a wrong name, password or token (it does not say which), 429 after too many of them, 403 when another site's page
    /// sent the form.
    pub async fn login(&self, request: Request<Bytes>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let Ok(standing) = self.0.standing() else { return shut(&head) };
        match head.method {
            Method::GET | Method::HEAD => self.show(&head, &standing),
            Method::POST if is_foreign(&head.headers) => foreign(),
            Method::POST if is_form(&head) => self.log_in(&head, &body, &standing).await,
            Method::POST => {
                let detail = "Send username and password, or token, as application/x-www-form-urlencoded.";
                problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "This is not a form", detail)
            }
            _ => wrong_method("GET, HEAD, POST"),
        }
    }

    /// Answers the logout's path, `/hookgate/logout`: `POST` ends the login that the request's cookie stands for.
    pub async fn logout(&self, request: Request<Bytes>) -> Response<Body> {
        let (head, _) = request.into_parts();
        if head.method != Method::POST {
            return wrong_method("POST");
        }
        if is_foreign(&head.headers) {
            return foreign();
        }
        for value in cookie::values(&head.headers, &self.0.cookie_name) {
            self.0.sessions.close(value);
        }
        let mut answer = see_other(LOGIN);
        self.set_cookie(&mut answer, "", Duration::ZERO);
        answer
    }

    fn show(&self, head: &request::Parts, standing: &Standing) -> Response<Body> {
        let form = Form::read(head.uri.query().unwrap_or_default().as_bytes());
        let next = local_path(&form.next);
        match (self.0.login(&head.headers, standing), next) {
            (Some(_), Some(next)) => see_other(next),
            (Some(login), None) => page::signed_in(&login.caller().to_string()),
            (None, next) => page::login(StatusCode::OK, &Page { next, ..Page::of(standing) }),
        }
    }

    async fn log_in(&self, head: &request::Parts, body: &[u8], standing: &Standing) -> Response<Body> {
        let form = Form::read(body);
        let address = address(head);
        let (who, proof) = match self.recognise(&form, address, standing).await {
            Ok(who) => who,
            Err(failure) => return self.refuse(head, &form, standing, &failure),
        };
        count("passed");
        match &who {
            Who::Token => tracing::info!(%address, "logged in with the token"),
            Who::User(user) => tracing::info!(%address, %user, "logged in"),
        }
        // A login that the browser had before is over: it gets another number.
        for value in cookie::values(&head.headers, &self.0.cookie_name) {
            self.0.sessions.close(value);
        }
        let value = self.0.sessions.open(who, proof, Instant::now().into_std());
        let mut answer = see_other(local_path(&form.next).unwrap_or(HOME));
        self.set_cookie(&mut answer, &value, self.0.sessions.lifetime());
        answer
    }

    /// Who the form shows, and what their login is to rest on.
    async fn recognise(
        &self,
        form: &Form,
        address: IpAddr,
        standing: &Standing,
    ) -> Result<(Who, blake3::Hash), Failure> {
        let gate = &self.0;
        if let Some(token) = standing.token.as_ref().filter(|_| !form.token.is_empty()) {
            gate.try_address(address).map_err(Failure::Wait)?;
            if !token.is(form.token.trim()) {
                tracing::warn!(%address, "a login with a wrong token");
                return Err(Failure::Wrong("This is not the token."));
            }
            gate.give_back(address, None);
            return Ok((Who::Token, token.digest()));
        }
        let Some(users) = standing.users.as_ref().filter(|_| !form.username.is_empty()) else {
            return Err(Failure::Nothing);
        };
        let name = Digest::of(form.username.as_bytes());
        gate.try_address(address).map_err(Failure::Wait)?;
        gate.try_name(name).map_err(Failure::Wait)?;
        let user = users.get(&form.username);
        let right = gate.passwords.check(form.password.clone(), user.map(|user| user.password.clone())).await;
        let who = Who::User(form.username.as_str().into());
        match (right, standing.proof(&who)) {
            (Ok(true), Some(proof)) => {
                gate.give_back(address, Some(name));
                Ok((who, proof))
            }
            (Ok(_), _) => {
                // A name that is not known may be a password in the wrong field.
                let user = user.map_or("unknown", |_| &*form.username);
                tracing::warn!(%address, %user, "a login with a wrong name or password");
                Err(Failure::Wrong("The user name or the password is wrong."))
            }
            (Err(_busy), _) => {
                gate.give_back(address, Some(name));
                Err(Failure::Busy)
            }
        }
    }

    fn refuse(&self, head: &request::Parts, form: &Form, standing: &Standing, failure: &Failure) -> Response<Body> {
        let (status, message) = match failure {
            Failure::Nothing => (StatusCode::BAD_REQUEST, "The form is empty.".to_owned()),
            Failure::Wrong(why) => (StatusCode::UNAUTHORIZED, (*why).to_owned()),
            Failure::Wait(wait) => {
                let message = format!("Too many tries went wrong. Try again in {} s.", seconds(*wait));
                (StatusCode::TOO_MANY_REQUESTS, message)
            }
            Failure::Busy => {
                (StatusCode::SERVICE_UNAVAILABLE, "Too many logins at once. Try again in a moment.".to_owned())
            }
        };
        count(if matches!(failure, Failure::Wait(_)) { "limited" } else { "failed" });
        let mut answer = if wants_page(&head.headers) {
            let username = standing.users.as_ref().map(|_| &*form.username).unwrap_or_default();
            let page = Page { next: local_path(&form.next), username, message: Some(&message), ..Page::of(standing) };
            page::login(status, &page)
        } else {
            match failure {
                Failure::Wait(wait) => too_many(*wait),
                _ => problem(status, "login-failed", "Nobody was logged in", &message),
            }
        };
        if status == StatusCode::UNAUTHORIZED {
            self.0.challenge(standing, answer.headers_mut());
        }
        if let Failure::Wait(wait) = failure {
            answer.headers_mut().insert(header::RETRY_AFTER, seconds(*wait).into());
        }
        answer
    }

    fn set_cookie(&self, answer: &mut Response<Body>, value: &str, lifetime: Duration) {
        let cookie = cookie::set(&self.0.cookie_name, value, lifetime, self.0.cookie_secure);
        if let Ok(mut cookie) = HeaderValue::try_from(cookie) {
            cookie.set_sensitive(true);
            answer.headers_mut().insert(header::SET_COOKIE, cookie);
        }
    }
}

impl Form {
    fn read(text: &[u8]) -> Self {
        let mut form = Form::default();
        for (name, value) in url::form_urlencoded::parse(text) {
            let field = match &*name {
                "username" => &mut form.username,
                "password" => &mut form.password,
                "token" => &mut form.token,
                "next" => &mut form.next,
                _ => continue,
            };
            *field = value.into_owned();
        }
        form
    }
}

fn is_form(head: &request::Parts) -> bool {
    let media_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

fn shut(head: &request::Parts) -> Response<Body> {
    if !wants_page(&head.headers) {
        return broken();
    }
    let message =
        "The auth gate cannot read its configuration, so it lets nobody pass. hookgate\u{2019}s log says why.";
    page::login(StatusCode::SERVICE_UNAVAILABLE, &Page { message: Some(message), ..Page::default() })
}

fn wrong_method(allowed: &'static str) -> Response<Body> {
    let detail = format!("This path takes {allowed}.");
    let mut answer =
        problem(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The method is not allowed", &detail);
    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    answer
}

impl<'a> Page<'a> {
    /// The page with the forms that can lead somewhere.
    fn of(standing: &Standing) -> Self {
        Page { users: standing.users.is_some(), token: standing.token.is_some(), ..Page::default() }
    }
}
