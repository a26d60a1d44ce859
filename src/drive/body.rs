//! The answer's body as the hosts see it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::stream::{Driver, NeedsTask};
use crate::{Body, BoxError};

/// The body of an inspected exchange. Dropping it cancels what is still under way: pending hooks, the upstream's answer.
///
/// A host that can write several frames at once may poll for more until one is pending: what is ready together was
/// decided together.
pub struct GuardedBody(State);

enum State {
    /// Passed on.
    Plain(Body),
    /// Read as it is polled: enough while nothing is held, asked or recorded.
    Driven(Option<Box<Driver>>),
    /// Fed by a task that does not wait for the reader.
    Task(mpsc::Receiver<Bytes>),
}

impl GuardedBody {
    pub(super) fn driven(driver: Driver) -> Self {
        GuardedBody(State::Driven(Some(Box::new(driver))))
    }
}

impl From<Body> for GuardedBody {
    fn from(body: Body) -> Self {
        GuardedBody(State::Plain(body))
    }
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            match &mut self.0 {
                State::Plain(body) => return Pin::new(body).poll_frame(cx),
                State::Task(frames) => {
                    return frames.poll_recv(cx).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))));
                }
                State::Driven(driver) => {
                    let Some(running) = driver else { return Poll::Ready(None) };
                    match ready!(running.poll_plain(cx)) {
                        Ok(Some(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                        Ok(None) => *driver = None,
                        Err(NeedsTask) => {
                            let (sender, frames) = mpsc::channel(super::stream::CHANNEL);
                            if let Some(driver) = driver.take() {
                                tokio::spawn(driver.run(sender));
                            }
                            self.0 = State::Task(frames);
                        }
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            State::Plain(body) => body.is_end_stream(),
            State::Driven(driver) => driver.is_none(),
            State::Task(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            State::Plain(body) => body.size_hint(),
            _ => SizeHint::default(),
        }
    }
}

impl fmt::Debug for GuardedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Plain(_) => "plain",
            State::Driven(_) => "driven",
            State::Task(_) => "task",
        };
        f.debug_tuple("GuardedBody").field(&state).finish()
    }
}
