//! The route that workers call.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header, request};
use tower_service::Service;

use super::admit::Admission;
use super::machine::{self, Answer};
use super::token::Token;
use super::{TmpHooks, body};
use crate::linger::linger;
use crate::store::TokenHash;
use crate::time::Timestamp;
use crate::{Body, BoxError};

/// The longest media type that is repeated to the session, in bytes.
const MAX_CONTENT_TYPE: usize = 256;

/// `POST <path_prefix>/<token>`, as a Tower service for any server that speaks HTTP. It answers every request.
///
/// 1. It looks at the whole path: mount it so that the prefix stays. What is not the prefix and one segment is 404.
/// 2. Nothing of a body is read before the token is known to be good, so that a client which asks first
///    (`expect: 100-continue`) sends nothing in vain.
/// 3. What it says of a token it says to whoever has it; there is no other authentication.
/// 4. It needs a tokio runtime. Once a body is there, its delivery goes on when the client leaves.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), hookgate::BoxError> {
/// use std::sync::Arc;
/// use hookgate::callback::{InboxQuery, Settings, TmpHooks, TokenKey};
/// use hookgate::{Body, id::SessionKey, store::MemoryStore};
/// use http::Request;
/// use tower::ServiceExt as _;
///
/// let settings = Settings::default().base_url("https://agents.example.com")?;
/// let hooks = TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None);
/// let session = SessionKey { tenant: "default".into(), session: "s1".into() };
/// let hook = hooks.issue(&session, Some("the build"), None).await?;
///
/// let call = || Request::post(&hook.url).body(Body::from("all green"));
/// assert_eq!(hooks.service().oneshot(call()?).await?.status(), 200);
/// assert_eq!(hooks.service().oneshot(call()?).await?.status(), 410);
///
/// let inbox = hooks.inbox(&session, InboxQuery::default(), Default::default()).await?;
/// assert!(inbox[0].text.ends_with("Purpose: the build\n\nPayload:\nall green"));
/// # Ok(()) }
/// ```
///
/// With axum it goes beside the layer:
///
/// ```
/// # fn app(hooks: hookgate::callback::TmpHooks) -> axum::Router {
/// let path = format!("{}/{{*token}}", hooks.path_prefix());
/// axum::Router::new().route_service(&path, hooks.service())
/// # }
/// ```
#[derive(Clone)]
pub struct CallbackService {
    hooks: TmpHooks,
}

impl CallbackService {
    pub(super) fn new(hooks: TmpHooks) -> Self {
        CallbackService { hooks }
    }

    async fn run<B>(self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let mut body = Some(Box::pin(body));
        let mut known = None;
        let answer = self.answer(&head, &mut body, &mut known).await.unwrap_or_else(|refusal| refusal);
        let (status, error) = answer.status();
        metrics::counter!("hookgate_callbacks_total", "status" => status.as_u16().to_string()).increment(1);
        let token = known.map(|hash| hash.prefix());
        tracing::info!(target: "hookgate::callback", token, status = status.as_u16(), error);
        // A client that asks first has sent nothing yet, and reading would tell it to begin.
        let unread = body.filter(|body| !body.is_end_stream() && !head.headers.contains_key(header::EXPECT));
        if let Some(body) = unread {
            tokio::spawn(linger(body));
        }
        response(answer, head.version)
    }

    /// One check after the other. The body is taken when it is read; `known` is the token's hash as soon as there is a
    /// token of that hash.
    async fn answer<B>(
        &self,
        head: &request::Parts,
        body: &mut Option<Pin<Box<B>>>,
        known: &mut Option<TokenHash>,
    ) -> Result<Answer, Answer>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
    {
        let inner = &self.hooks.inner;
        let settings = &inner.settings;
        let segment = machine::segment(head.uri.path(), settings.prefix())?;
        machine::method(&head.method)?;
        let token = Token::parse(segment).ok_or(Answer::Unknown)?;
        let hash = inner.key.hash(&token);
        let record = inner.store.token(hash).await.map_err(|error| {
            tracing::error!(%error, "a callback could not be looked up");
            Answer::Undelivered
        })?;
        *known = record.is_some().then_some(hash);
        let now = Timestamp::now();
        let standing = machine::standing(record.as_ref(), settings.tombstone, now);
        machine::worth_reading(standing, settings.replay_grace, now)?;
        let coding = machine::coding(&head.headers)?;
        machine::declared(&head.headers, settings.max_body_bytes)?;
        let body = body.take().ok_or(Answer::Aborted)?;
        let body = body::read(body, coding, settings.max_body_bytes, settings.body_read_timeout).await?;

        let content_type = content_type(&head.headers);
        let admission = Admission::new(self.hooks.clone(), hash, token, content_type, body, Timestamp::now());
        // On its own: a worker that leaves now must not leave a claim or an unanswered controller behind.
        tokio::spawn(admission.run()).await.map_err(|error| {
            tracing::error!(%error, "the delivery of a callback failed");
            Answer::Undelivered
        })
    }
}

/// The media type as text; letters that it cannot have are shown as the replacement character.
fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get(header::CONTENT_TYPE)?.as_bytes()).into_owned();
    Some(value.get(..value.floor_char_boundary(MAX_CONTENT_TYPE)).unwrap_or_default().to_owned())
}

fn response(answer: Answer, version: Version) -> Response<Body> {
    let (status, error) = answer.status();
    let body = match error {
        None => r#"{"received":true}"#.to_owned(),
        Some(error) => format!(r#"{{"received":false,"error":"{error}"}}"#),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    match status {
        StatusCode::METHOD_NOT_ALLOWED => drop(headers.insert(header::ALLOW, HeaderValue::from_static("POST"))),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, identity"));
        }
        StatusCode::BAD_GATEWAY => drop(headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"))),
        _ => {}
    }
    // HTTP/2 knows no such header; there the stream ends alone.
    if answer.closes() && version < Version::HTTP_2 {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

impl<B> Service<Request<B>> for CallbackService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.run(request).await) })
    }
}

impl fmt::Debug for CallbackService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackService").field("path_prefix", &self.hooks.path_prefix()).finish_non_exhaustive()
    }
}
