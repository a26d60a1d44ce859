//! Callbacks come from workers that have no login: their URL is what they show.

use futures_util::future::{BoxFuture, ready};
use http::request;

use super::{Access, AuthGate, Caller};

/// A gate that lets exactly `<prefix>/<one segment>` pass without login. Every other decision is the inner gate's.
///
/// 1. The path is compared as the bytes that it came as, after the query is taken off. It has to begin with the
///    prefix, in the same case, and go on with one slash and one segment.
/// 2. The segment is of letters, digits, `-`, `.`, `_` and `~`, and is neither `.` nor `..`. With anything else in it
///    (an escape, a semicolon, a backslash) some server could read the path as another one, so the inner gate decides.
/// 3. The method does not matter: what is behind the prefix answers all of them.
/// 4. Whoever passes is [anonymous](Caller::anonymous).
/// 5. A prefix that is empty, or `/`, names no place of its own: then nothing passes without the inner gate.
///
/// ```
/// use futures_util::future::{BoxFuture, FutureExt as _, ready};
/// use hookgate::Body;
/// use hookgate::auth::{Access, AuthGate, CallbackBypass};
/// use http::{Request, Response, request};
///
/// struct Nobody;
///
/// impl AuthGate for Nobody {
///     fn check<'a>(&'a self, _: &'a request::Parts) -> BoxFuture<'a, Access> {
///         ready(Access::Refused(Response::new(Body::from("log in first\n")))).boxed()
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let gate = CallbackBypass::new(Nobody, "/api/tmp-hooks");
/// let passes = async |path: &str| {
///     let (head, ()) = Request::post(path).body(()).unwrap().into_parts();
///     matches!(gate.check(&head).await, Access::Granted(_))
/// };
/// assert!(passes("/api/tmp-hooks/523a6527-77f0-44c2-b2fc-db7b9cf36a6a").await);
/// assert!(!passes("/api/tmp-hooks").await && !passes("/api/tmp-hooks/a/b").await && !passes("/api/sessions").await);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct CallbackBypass<G> {
    inner: G,
    prefix: String,
    allow_unauthenticated: bool,
}

impl<G> CallbackBypass<G> {
    /// Composes the two. A slash at the prefix's end makes no difference.
    pub fn new(inner: G, prefix: &str) -> Self {
        CallbackBypass { inner, prefix: prefix.trim_end_matches('/').to_owned(), allow_unauthenticated: true }
    }

    /// With `false` callbacks need a login too: every decision is the inner gate's.
    #[must_use]
    pub fn allow_unauthenticated(mut self, allow: bool) -> Self {
        self.allow_unauthenticated = allow;
        self
    }

    fn passes(&self, path: &str) -> bool {
        let segment = path.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix('/'));
        let is_prefix = self.prefix.len() > 1 && self.prefix.starts_with('/');
        self.allow_unauthenticated && is_prefix && segment.is_some_and(is_plain_segment)
    }
}

/// Whether a segment reads the same for every server: RFC 3986's unreserved letters, and no dot segment.
fn is_plain_segment(segment: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !matches!(segment, "" | "." | "..") && segment.bytes().all(plain)
}

impl<G: AuthGate> AuthGate for CallbackBypass<G> {
    fn check<'a>(&'a self, request: &'a request::Parts) -> BoxFuture<'a, Access> {
        if self.passes(request.uri.path()) {
            return Box::pin(ready(Access::Granted(Caller::anonymous())));
        }
        self.inner.check(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(prefix: &str, path: &str) -> bool {
        CallbackBypass::new((), prefix).passes(path)
    }

    #[test]
    fn one_plain_segment_passes() {
        for (prefix, path) in [
            ("/api/tmp-hooks", "/api/tmp-hooks/523a6527-77f0-44c2-b2fc-db7b9cf36a6a"),
            ("/api/tmp-hooks/", "/api/tmp-hooks/a"),
            ("/cb", "/cb/A.b_c~d-1"),
            ("/cb", "/cb/..."),
        ] {
            assert!(passes(prefix, path), "{prefix} {path}");
        }
        assert!(!CallbackBypass::new((), "/cb").allow_unauthenticated(false).passes("/cb/a"));
    }

    #[test]
    fn nothing_else_passes() {
        for path in [
            "/cb",
            "/cb/",
            "/cb//",
            "/cb//a",
            "/cb/a/",
            "/cb/a/b",
            "/cb/a//",
            "//cb/a",
            "/cb/.",
            "/cb/..",
            "/cb/%2e%2e",
            "/cb/a%2fb",
            "/cb/a%2Fb",
            "/cb/%61",
            "/cb/a;b",
            "/cb/;",
            "/cb;x/a",
            "/cb/a\\b",
            "/cb\\a",
            "/CB/a",
            "/Cb/a",
            "/cba",
            "/cb.a",
            "/x/cb/a",
            "cb/a",
            "/cb/a?",
            "/cb/a#",
            "/cb/ä",
            "/cb/a b",
            "/cb/a\0",
            "/%63b/a",
            "",
            "/",
            "*",
        ] {
            assert!(!passes("/cb", path), "{path}");
        }
    }

    #[test]
    fn a_prefix_that_is_no_place_opens_nothing() {
        for prefix in ["", "/", "//", "cb"] {
            for path in ["/a", "//a", "/cb/a", "cb/a", "/", ""] {
                assert!(!passes(prefix, path), "{prefix} {path}");
            }
        }
    }
}
