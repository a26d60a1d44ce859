//! Looking at an upstream's answer while it passes.
//!
//! An answer that is only looked at leaves as it comes, byte for byte and at once: what looks at it reads along. An answer of
//! which something may be replaced is held until each of its messages is whole, one event at a time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use crate::drive::answer::media_type;
use crate::drive::decode;
use crate::drive::rebodied;
use crate::wire::sse::Splitter;
use crate::{Body, BoxError};

/// How long an answer is read on after its client has left.
const DETACHED_TIME: Duration = Duration::from_secs(600);

/// Who looks at an answer.
pub(in crate::drive) trait Watch: Send + Unpin + 'static {
    /// Whether [`Watch::message`] may replace something. It is asked once, before anything is read.
    fn may_replace(&self) -> bool {
        false
    }

    /// A whole message: a JSON body, or the data of one event. Gives the JSON text to put in its place, if any.
    fn message(&mut self, message: &[u8]) -> Option<Bytes>;

    /// The answer cannot be looked at any further. It passes, unless something may have had to be replaced.
    fn blind(&mut self, why: &str);

    /// The answer is over; `whole`: it ended by itself and did not break off.
    fn ended(&mut self, whole: bool);

    /// Whether the answer is read to its end although its client has left, which this allows.
    fn outlives_client(&mut self) -> Option<OwnedSemaphorePermit> {
        None
    }
}

/// An answer of which something may have to be replaced cannot be looked at, or broke off. Says why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::drive) struct Unwatchable(pub(in crate::drive) String);

/// Has an answer watched. One message may have `limit` bytes.
///
/// # Errors
/// [`Unwatchable`], and never when nothing may be replaced.
pub(in crate::drive) async fn watch<W: Watch>(
    response: Response<Body>,
    mut watch: W,
    limit: usize,
) -> Result<Response<Body>, Unwatchable> {
    let (mut head, mut body) = response.into_parts();
    let replaces = watch.may_replace();
    let media = media_type(&head.headers);
    let streamed = media == "text/event-stream";
    if !streamed && !is_json(&media) {
        if http_body::Body::is_end_stream(&body) {
            watch.ended(true);
        } else {
            watch.blind(&format!("its media type is {media:?}"));
            if replaces {
                return Err(Unwatchable(format!("its media type is {media:?}")));
            }
        }
        return Ok(Response::from_parts(head, body));
    }
    if decode::is_encoded(&head.headers) {
        body = match decode::stream(&head.headers, body) {
            Ok(body) => body,
            Err(decode::Unknown { body, why }) => {
                watch.blind(&why);
                return if replaces { Err(Unwatchable(why)) } else { Ok(Response::from_parts(head, body)) };
            }
        };
        rebodied::strip_of_body(&mut head.headers);
    }
    let sight = match (streamed, replaces) {
        (true, _) => Sight::Events { splitter: Splitter::new(limit), replaces },
        (false, false) => Sight::Whole { read: Vec::new(), len: 0 },
        (false, true) => {
            let text = match Limited::new(body, limit).collect().await {
                Ok(body) => body.to_bytes(),
                Err(error) => {
                    watch.ended(false);
                    return Err(Unwatchable(format!("it broke off, or is larger than {limit} bytes: {error}")));
                }
            };
            let replaced = watch.message(&text);
            watch.ended(true);
            if replaced.is_some() {
                rebodied::strip_of_body(&mut head.headers);
            }
            return Ok(rebodied::whole(head, replaced.unwrap_or(text)));
        }
    };
    if replaces {
        rebodied::strip_of_body(&mut head.headers);
    }
    let tap = Tap(Some(Inner { body, watch, sight, limit, ready: None, over: false }));
    Ok(Response::from_parts(head, Body::wrap(tap)))
}

/// `application/json`, and what names itself as JSON of a certain kind.
fn is_json(media: &str) -> bool {
    media == "application/json" || media.starts_with("application/") && media.ends_with("+json")
}

/// The body of a watched answer.
struct Tap<W: Watch>(Option<Inner<W>>);

struct Inner<W> {
    body: Body,
    watch: W,
    sight: Sight,
    limit: usize,
    /// What is to leave before more is read.
    ready: Option<Bytes>,
    over: bool,
}

/// How the answer is read.
enum Sight {
    /// Event by event; `replaces`: an event leaves when it was looked at.
    Events { splitter: Splitter, replaces: bool },
    /// As one message at its end. What was read leaves at once, and is kept.
    Whole { read: Vec<Bytes>, len: usize },
    /// Not any more.
    Blind,
}

impl<W: Watch> http_body::Body for Tap<W> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.as_mut().map_or(Poll::Ready(None), |inner| inner.poll(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|inner| inner.over && inner.ready.is_none())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Some(Inner { sight: Sight::Events { replaces: true, .. }, .. }) | None => SizeHint::default(),
            Some(inner) => http_body::Body::size_hint(&inner.body),
        }
    }
}

impl<W: Watch> Inner<W> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            if let Some(bytes) = self.ready.take() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if self.over {
                return Poll::Ready(None);
            }
            let frame = ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), cx));
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => {
                    if let Err(error) = self.see(data) {
                        self.over = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                    // A host that knows the length asks for nothing behind the last byte.
                    if http_body::Body::is_end_stream(&self.body) {
                        self.end();
                    }
                }
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => {
                    self.over = true;
                    self.watch.ended(false);
                    return Poll::Ready(Some(Err(error)));
                }
                None => self.end(),
            }
        }
    }

    fn see(&mut self, data: Bytes) -> Result<(), BoxError> {
        match &mut self.sight {
            Sight::Blind => self.ready = Some(data),
            Sight::Whole { read, len } => {
                *len += data.len();
                read.push(data.clone());
                self.ready = Some(data);
                if *len > self.limit {
                    self.watch.blind(&format!("it is larger than {} bytes", self.limit));
                    self.sight = Sight::Blind;
                }
            }
            Sight::Events { splitter, replaces } => {
                splitter.push(data.clone());
                let mut out = BytesMut::new();
                loop {
                    match splitter.next() {
                        Ok(None) => break,
                        Ok(Some(event)) => {
                            let message = splitter.data(&event);
                            let replaced = if message.is_empty() { None } else { self.watch.message(&message) };
                            if *replaces {
                                let raw = splitter.slice(event.raw.clone());
                                match replaced {
                                    Some(text) => put_data(&mut out, &raw, &text),
                                    None => out.extend_from_slice(&raw),
                                }
                            }
                        }
                        Err(error) => {
                            self.watch.blind(&error.to_string());
                            if *replaces {
                                self.watch.ended(false);
                                return Err(error.into());
                            }
                            self.sight = Sight::Blind;
                            self.ready = Some(data);
                            return Ok(());
                        }
                    }
                }
                let out = if *replaces { out.freeze() } else { data };
                self.ready = Some(out).filter(|out| !out.is_empty());
            }
        }
        Ok(())
    }

    fn end(&mut self) {
        self.over = true;
        if let Sight::Whole { read, .. } = &self.sight {
            match read.as_slice() {
                [] => {}
                [one] => drop(self.watch.message(one)),
                pieces => drop(self.watch.message(&pieces.concat())),
            }
        }
        self.watch.ended(true);
    }
}

/// The event with other data. Its other fields stay; the data stands where its first line was.
fn put_data(out: &mut BytesMut, raw: &[u8], text: &[u8]) {
    let lines = |text| <[u8]>::split(text, |byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty());
    let mut put = |start: &[u8], line: &[u8]| {
        out.extend_from_slice(start);
        out.extend_from_slice(line);
        out.extend_from_slice(b"\n");
    };
    let mut is_put = false;
    for line in lines(raw) {
        let is_data = line.strip_prefix(b"data").is_some_and(|rest| matches!(rest.first(), None | Some(b':')));
        if !is_data {
            put(b"", line);
        } else if !std::mem::replace(&mut is_put, true) {
            lines(text).for_each(|line| put(b"data: ", line));
        }
    }
    put(b"", b"");
}

impl<W: Watch> Drop for Tap<W> {
    fn drop(&mut self) {
        let Some(mut inner) = self.0.take().filter(|inner| !inner.over) else { return };
        let detached = inner.watch.outlives_client().zip(Handle::try_current().ok());
        let Some((permit, runtime)) = detached else { return inner.watch.ended(false) };
        runtime.spawn(async move {
            let mut rest = Tap(Some(inner));
            let read = async { while let Some(Ok(_)) = rest.frame().await {} };
            let in_time = tokio::time::timeout(DETACHED_TIME, read).await.is_ok();
            if let Some(inner) = rest.0.as_mut().filter(|inner| !in_time && !inner.over) {
                inner.watch.ended(false);
                inner.over = true;
            }
            drop(permit);
        });
    }
}
