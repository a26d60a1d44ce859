//! The login page: no script, nothing from elsewhere, light and dark.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::answer::{LOGIN, LOGOUT};
use crate::body::Body;
use crate::id::random_id;

const STYLE: &str = include_str!("page.css");

/// What the page shows.
#[derive(Default)]
pub(super) struct Page<'a> {
    /// Users can log in.
    pub(super) users: bool,
    /// The token can be shown.
    pub(super) token: bool,
    /// Where the login leads.
    pub(super) next: Option<&'a str>,
    /// The user name that was typed already.
    pub(super) username: &'a str,
    /// What went wrong.
    pub(super) message: Option<&'a str>,
}

/// The page to log in on.
pub(super) fn login(status: StatusCode, page: &Page<'_>) -> Response<Body> {
    // After a failure the name is known and the password is not.
    let typed = !page.username.is_empty();
    let content = html! {
        @if let Some(message) = page.message { p.message role="alert" { (message) } }
        @if page.users {
            form method="post" action=(LOGIN) {
                (next(page))
                label for="username" { "User name" }
                input #username name="username" value=(page.username) autocomplete="username" autocapitalize="none"
                    spellcheck="false" required autofocus[!typed];
                label for="password" { "Password" }
                input #password name="password" type="password" autocomplete="current-password" required autofocus[typed];
                button { "Log in" }
            }
        }
        @if page.users && page.token { p.or { span { "or" } } }
        @if page.token {
            form method="post" action=(LOGIN) {
                (next(page))
                label for="token" { "Token" }
                input #token name="token" type="password" autocomplete="off" required autofocus[!page.users];
                button.second[page.users] { "Log in with the token" }
            }
        }
    };
    document(status, "Log in", &content)
}

/// The page for somebody who is logged in.
pub(super) fn signed_in(name: &str) -> Response<Body> {
    let content = html! {
        p { "You are logged in as " strong { (name) } "." }
        a.button href="/hookgate/" { "Go to the sessions" }
        form method="post" action=(LOGOUT) { button.second { "Log out" } }
    };
    document(StatusCode::OK, "Logged in", &content)
}

fn next(page: &Page<'_>) -> Markup {
    html! { @if let Some(next) = page.next { input type="hidden" name="next" value=(next); } }
}

fn document(status: StatusCode, title: &str, content: &Markup) -> Response<Body> {
    let nonce = random_id();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · hookgate" }
                link rel="icon" href="data:,";
                style nonce=(nonce) { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { span.mark aria-hidden="true" {} "hookgate" }
                    (content)
                }
            }
        }
    };
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    let mut answer = Response::new(Body::from(page.into_string()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Without a referrer at all browsers would send `origin: null` with the form.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    answer
}
