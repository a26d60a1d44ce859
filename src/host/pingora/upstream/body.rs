//! The body of an upstream's answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pingora::{Error, ErrorType};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::ReusableBoxFuture;

use super::exchange::{self, Read};
use super::failure;
use super::lease::Lease;
use crate::body::BoxError;

/// Reads the answer from its connection as it is polled. Dropping it gives the exchange up.
pub(super) struct AnswerBody {
    /// The read under way, which owns the connection; `None`: the body is over.
    reading: Option<ReusableBoxFuture<'static, Read>>,
    upstream: Arc<str>,
    left: Option<u64>,
    idle: Duration,
    /// Wakes when the silence may be too long. It is not set anew for each piece: when it wakes too early, it is set again.
    silence: Option<Pin<Box<Sleep>>>,
    /// Since when the read under way has waited.
    waiting_since: Option<Instant>,
}

impl AnswerBody {
    /// `length`: as the answer's head declares it.
    pub(super) fn new(lease: Lease, upstream: Arc<str>, length: Option<u64>, idle: Duration) -> Self {
        AnswerBody {
            reading: Some(ReusableBoxFuture::new(exchange::read(lease))),
            upstream,
            left: length,
            idle,
            silence: None,
            waiting_since: None,
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<Read>> {
        let Some(reading) = &mut self.reading else { return Poll::Ready(None) };
        if let Poll::Ready(read) = reading.poll(cx) {
            self.waiting_since = None;
            return Poll::Ready(Some(read));
        }
        ready!(self.poll_silence(cx));
        Poll::Ready(Some(Read::Failed(Error::explain(ErrorType::ReadTimedout, "within the answer"))))
    }

    /// Ready when the read under way has waited too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.waiting_since.get_or_insert_with(Instant::now);
        let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.idle)));
        loop {
            ready!(silence.as_mut().poll(cx));
            let left = self.idle.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Poll::Ready(());
            }
            silence.set(tokio::time::sleep(left));
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(read) = ready!(self.poll_read(cx)) else { return Poll::Ready(None) };
        match read {
            Read::Data(data, lease) => {
                match (lease, &mut self.reading) {
                    (Some(lease), Some(reading)) => reading.set(exchange::read(lease)),
                    _ => self.reading = None,
                }
                self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Read::Trailers(trailers) => {
                self.reading = None;
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            Read::End => {
                self.reading = None;
                Poll::Ready(None)
            }
            Read::Failed(error) => {
                self.reading = None;
                Poll::Ready(Some(Err(failure::explain(&self.upstream, &error).into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.reading.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
