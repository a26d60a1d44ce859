use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::BoxError;
use crate::wire::sse::Splitter;

/// The longest event that is read, in bytes.
const MAX_EVENT: usize = 16 << 20;

/// A plain HTTP client that shows answers as they come.
///
/// Dropping a call or an [`Incoming`] before its end closes the connection: that is how a client goes away.
#[derive(Clone, Debug)]
pub struct Client {
    hyper: Hyper<HttpConnector, Full<Bytes>>,
    base: String,
}

/// An answer while it comes.
#[derive(Debug)]
pub struct Incoming {
    /// The status.
    pub status: StatusCode,
    /// The header.
    pub headers: HeaderMap,
    body: hyper::body::Incoming,
    splitter: Splitter,
    raw: BytesMut,
}

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// Its name; empty when it has none.
    pub name: String,
    /// Its data.
    pub data: String,
}

impl SseEvent {
    /// The data as JSON; `null` when it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.data).unwrap_or_default()
    }
}

impl Client {
    /// A client for paths below a base URL.
    pub fn new(base: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Client { hyper: Hyper::builder(TokioExecutor::new()).build(connector), base: base.to_owned() }
    }

    /// Posts a body; `content-type` is JSON unless it is given.
    ///
    /// # Errors
    /// When there is no answer, or a header is not one.
    pub async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Incoming, BoxError> {
        self.send(Method::POST, path, headers, body.into()).await
    }

    /// Gets a path.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn get(&self, path: &str) -> Result<Incoming, BoxError> {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    /// Sends any request.
    ///
    /// # Errors
    /// When there is no answer, or a header is not one.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Incoming, BoxError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = format!("{}{path}", self.base).parse()?;
        if *request.method() == Method::POST {
            request.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
        }
        for (name, value) in headers {
            request.headers_mut().insert(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        Ok(Incoming::of(self.hyper.request(request).await?))
    }
}

impl Incoming {
    fn of(response: Response<hyper::body::Incoming>) -> Self {
        let (head, body) = response.into_parts();
        Incoming {
            status: head.status,
            headers: head.headers,
            body,
            splitter: Splitter::new(MAX_EVENT),
            raw: BytesMut::new(),
        }
    }

    /// The next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// When the body breaks off.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, BoxError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(data) = frame?.into_data() {
                self.raw.extend_from_slice(&data);
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// The next event of a streamed body; `None` at its end. Events without data are left out.
    ///
    /// # Errors
    /// When the body breaks off.
    pub async fn event(&mut self) -> Result<Option<SseEvent>, BoxError> {
        loop {
            if let Some(event) = next(&mut self.splitter)? {
                return Ok(Some(event));
            }
            match self.chunk().await? {
                Some(chunk) => self.splitter.push(chunk),
                None => return Ok(None),
            }
        }
    }

    /// Reads events until one satisfies the condition, and gives that one.
    ///
    /// # Errors
    /// When the body breaks off or ends before such an event.
    pub async fn event_where(&mut self, wanted: impl Fn(&SseEvent) -> bool) -> Result<SseEvent, BoxError> {
        while let Some(event) = self.event().await? {
            if wanted(&event) {
                return Ok(event);
            }
        }
        Err("the stream ended before the event that was waited for".into())
    }

    /// The events of all that has been read so far.
    pub(super) fn all_events(&self) -> Result<Vec<SseEvent>, BoxError> {
        let mut splitter = Splitter::new(MAX_EVENT);
        splitter.push(Bytes::copy_from_slice(&self.raw));
        let mut events = Vec::new();
        while let Some(event) = next(&mut splitter)? {
            events.push(event);
        }
        Ok(events)
    }

    /// All bytes that have been read so far.
    pub fn so_far(&self) -> &[u8] {
        &self.raw
    }

    /// Reads to the end and gives the whole body.
    ///
    /// # Errors
    /// When the body breaks off.
    pub async fn bytes(mut self) -> Result<Bytes, BoxError> {
        while self.chunk().await?.is_some() {}
        Ok(self.raw.freeze())
    }
}

/// The next event that has data.
fn next(splitter: &mut Splitter) -> Result<Option<SseEvent>, BoxError> {
    while let Some(event) = splitter.next()? {
        let data = String::from_utf8(splitter.data(&event).into_owned())?;
        let name = String::from_utf8(splitter.name(&event).to_vec())?;
        if !data.is_empty() {
            return Ok(Some(SseEvent { name, data }));
        }
    }
    Ok(None)
}
