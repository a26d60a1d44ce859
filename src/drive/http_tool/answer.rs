//! Telling what came of a call, from an answer that passes as it comes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::{Frame, SizeHint};
use tokio::runtime::Handle;

use crate::drive::decode;
use crate::drive::tool::{Outcome, ToolCall, ToolPlane};
use crate::wire::json::{Cursor, quote};
use crate::{Body, BoxError};

/// How much of an answer is kept to be told. Handlers get less of it (64 KiB), but what must be hidden from them is found in
/// whole JSON only.
const MOST: usize = 1 << 20;

/// The body of an answer, with a copy of what passed.
pub(super) struct Telling {
    body: Body,
    told: Option<Told>,
}

/// What is told when the answer is over.
struct Told {
    plane: ToolPlane,
    call: ToolCall,
    status: StatusCode,
    headers: HeaderMap,
    read: Vec<Bytes>,
    len: usize,
}

impl Telling {
    /// The same answer, whose end is told.
    pub(super) fn watch(plane: ToolPlane, call: ToolCall, response: Response<Body>) -> Response<Body> {
        let (head, body) = response.into_parts();
        let told = Told { plane, call, status: head.status, headers: head.headers.clone(), read: Vec::new(), len: 0 };
        if http_body::Body::is_end_stream(&body) {
            told.end();
            return Response::from_parts(head, body);
        }
        Response::from_parts(head, Body::wrap(Telling { body, told: Some(told) }))
    }
}

impl http_body::Body for Telling {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(http_body::Body::poll_frame(Pin::new(&mut self.body), cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(told)) = (frame.data_ref(), &mut self.told) {
                    told.add(data);
                }
            }
            Some(Err(_)) => self.told.take().into_iter().for_each(|told| told.fail("the tool's answer broke off")),
            None => self.told.take().into_iter().for_each(Told::end),
        }
        // Who knows that nothing follows does not ask once more.
        if self.body.is_end_stream() {
            self.told.take().into_iter().for_each(Told::end);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Telling {
    fn drop(&mut self) {
        if let Some(told) = self.told.take() {
            told.fail("the client left before the tool's answer ended");
        }
    }
}

impl Told {
    fn add(&mut self, data: &Bytes) {
        if self.len <= MOST {
            self.read.push(data.clone());
        }
        self.len += data.len();
    }

    fn fail(self, why: &str) {
        self.plane.tell(&self.call, Outcome::failed(why), true);
    }

    fn end(self) {
        match Handle::try_current().ok().filter(|_| decode::is_encoded(&self.headers)) {
            None => self.tell_of(self.read.concat().into()),
            Some(runtime) => drop(runtime.spawn(async move {
                match decode::whole(&self.headers, self.read.concat().into(), MOST).await {
                    Ok(text) => self.tell_of(text),
                    Err(why) => self.fail(&format!("the tool's answer could not be read: {why}")),
                }
            })),
        }
    }

    fn tell_of(&self, text: Bytes) {
        let failed = self.status.is_client_error() || self.status.is_server_error();
        let outcome = if failed { Outcome::Failed } else { Outcome::Done };
        self.plane.tell(&self.call, outcome(self.json(text)), true);
    }

    /// The answer as JSON: as it came when it is that, else as a string. An empty one says its status.
    fn json(&self, text: Bytes) -> Bytes {
        if text.is_empty() {
            return format!("{{\"message\":{}}}", quote(&format!("the tool answered {}", self.status))).into();
        }
        let whole = self.len <= MOST;
        if whole && Cursor::document(&text, |cursor| cursor.skip()).is_ok() {
            return text;
        }
        quote(&String::from_utf8_lossy(text.get(..MOST).unwrap_or(&text))).into()
    }
}
