use std::io;

use async_compression::tokio::write::GzipEncoder;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::StreamBody;
use tokio::io::AsyncWriteExt;

use super::gate::Gate;
use super::message::Message;
use super::server::{Received, Unfinished};
use crate::Body;

/// One scripted answer of a [`Model`](super::Model).
///
/// A [`Message`] becomes an answer by `into()`; it is then streamed or whole as the request asks. The other constructors
/// give exactly what they are given.
#[derive(Clone, Debug)]
pub struct Answer {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    content: Content,
    before: Option<Gate>,
    bytewise: bool,
    gzip: bool,
}

#[derive(Clone, Debug)]
enum Content {
    Message(Message),
    Steps(&'static str, Vec<Step>),
    Nothing,
}

/// What happens next in the body of an answer.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Send(Bytes),
    Wait(Gate),
    /// The connection breaks.
    Cut,
}

impl From<Message> for Answer {
    fn from(message: Message) -> Self {
        Answer::of(StatusCode::OK, Content::Message(message))
    }
}

impl Answer {
    fn of(status: StatusCode, content: Content) -> Self {
        Answer { status, headers: Vec::new(), content, before: None, bytewise: false, gzip: false }
    }

    /// These bytes as an event stream, each item in a write of its own.
    pub fn events<B: Into<Bytes>>(events: impl IntoIterator<Item = B>) -> Self {
        let steps = events.into_iter().map(|event| Step::Send(event.into())).collect();
        Answer::of(StatusCode::OK, Content::Steps("text/event-stream; charset=utf-8", steps))
    }

    /// These bytes as JSON.
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Answer::of(status, Content::Steps("application/json", vec![Step::Send(body.into())]))
    }

    /// An error as the provider words it.
    ///
    /// ```
    /// let answer = hookgate::testing::Answer::error(529, "overloaded_error", "try later");
    /// ```
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        Answer::json(status, crate::wire::anthropic::error_body(kind, message))
    }

    /// No answer: the connection is closed.
    pub fn nothing() -> Self {
        Answer::of(StatusCode::OK, Content::Nothing)
    }

    /// Breaks off here: what was given so far is sent, then the connection is cut. Not for messages, which have
    /// [`Message::cut`].
    #[must_use]
    pub fn cut(self) -> Self {
        self.step(Step::Cut)
    }

    /// Waits here for the gate. Not for messages, which have [`Message::wait`].
    #[must_use]
    pub fn wait(self, gate: &Gate) -> Self {
        self.step(Step::Wait(gate.clone()))
    }

    /// More bytes. Not for messages.
    #[must_use]
    pub fn then(self, bytes: impl Into<Bytes>) -> Self {
        self.step(Step::Send(bytes.into()))
    }

    fn step(mut self, step: Step) -> Self {
        if let Content::Steps(_, steps) = &mut self.content {
            steps.push(step);
        }
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((HeaderName::from_static(name), HeaderValue::from_static(value)));
        self
    }

    /// Sends not even the head before the gate is open.
    #[must_use]
    pub fn after(mut self, gate: &Gate) -> Self {
        self.before = Some(gate.clone());
        self
    }

    /// Sends each byte in a frame of its own.
    #[must_use]
    pub fn bytewise(mut self) -> Self {
        self.bytewise = true;
        self
    }

    /// Compresses the body, flushed after each event.
    #[must_use]
    pub fn gzip(mut self) -> Self {
        self.gzip = true;
        self
    }

    /// Gives the answer. `unfinished` is kept until the last byte is handed over.
    pub(super) async fn give(self, request: &Received, mut unfinished: Unfinished) -> io::Result<Response<Body>> {
        if let Some(gate) = &self.before {
            gate.passed().await;
        }
        let (status, media_type, steps) = match self.content {
            Content::Message(message) if request.json()["stream"] == true => {
                (self.status, "text/event-stream; charset=utf-8", message.stream_steps())
            }
            Content::Message(message) => {
                let (status, steps) = message.whole_steps();
                (status.unwrap_or(self.status), "application/json", steps)
            }
            Content::Steps(media_type, steps) => (self.status, media_type, steps),
            Content::Nothing => {
                unfinished.finish();
                return Err(io::Error::other("a scripted end of the connection"));
            }
        };
        let steps = if self.gzip { compressed(steps).await? } else { steps };
        let steps = if self.bytewise { split(steps) } else { steps };
        let mut response = Response::new(body(steps, unfinished));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        if self.gzip {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        Ok(response)
    }
}

fn split(steps: Vec<Step>) -> Vec<Step> {
    let bytes = |step| match step {
        Step::Send(bytes) => (0..bytes.len()).map(|at| Step::Send(bytes.slice(at..=at))).collect(),
        other => vec![other],
    };
    steps.into_iter().flat_map(bytes).collect()
}

async fn compressed(steps: Vec<Step>) -> io::Result<Vec<Step>> {
    let mut encoder = GzipEncoder::new(Vec::new());
    let mut out = Vec::new();
    for step in steps {
        match step {
            Step::Send(bytes) => {
                encoder.write_all(&bytes).await?;
                encoder.flush().await?;
                out.push(Step::Send(std::mem::take(encoder.get_mut()).into()));
            }
            other => out.push(other),
        }
    }
    encoder.shutdown().await?;
    out.push(Step::Send(std::mem::take(encoder.get_mut()).into()));
    Ok(out)
}

/// The steps as a body. A body whose length is known is given as such, as servers do for JSON.
fn body(steps: Vec<Step>, mut unfinished: Unfinished) -> Body {
    if let [Step::Send(bytes)] = steps.as_slice() {
        unfinished.finish();
        return Body::from(bytes.clone());
    }
    let stream = stream::unfold((steps.into_iter(), unfinished), |(mut steps, mut unfinished)| async move {
        loop {
            let Some(step) = steps.next() else {
                unfinished.finish();
                return None;
            };
            match step {
                Step::Wait(gate) => gate.passed().await,
                Step::Send(bytes) => {
                    // The server flushes when its body has nothing ready: each step is to leave alone.
                    tokio::task::yield_now().await;
                    if steps.len() == 0 {
                        unfinished.finish();
                    }
                    return Some((Ok(Frame::data(bytes)), (steps, unfinished)));
                }
                Step::Cut => {
                    tokio::task::yield_now().await;
                    unfinished.finish();
                    return Some((Err(io::Error::other("a scripted cut")), (steps, unfinished)));
                }
            }
        }
    });
    Body::wrap(StreamBody::new(Box::pin(stream)))
}
