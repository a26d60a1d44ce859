//! The body of a request on its way to the upstream.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::BodyExt as _;

use crate::body::{Body, BoxError};

/// Pieces that are there already are taken up to this many bytes; what is still to come is sent as it comes.
const MAX_READY: usize = 64 << 20;

/// A body, kept so that it can be sent again as long as all of it was there from the start.
pub(super) struct Outgoing {
    ready: Vec<Bytes>,
    rest: Option<Body>,
    length: Option<u64>,
    /// Some of `rest` was taken.
    streamed: bool,
}

impl Outgoing {
    pub(super) fn new(mut body: Body) -> Result<Self, BoxError> {
        let length = body.size_hint().exact();
        let mut ready = Vec::new();
        let mut bytes = 0;
        let mut context = Context::from_waker(Waker::noop());
        let rest = loop {
            if bytes > MAX_READY {
                break Some(body);
            }
            match Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Pending => break Some(body),
                Poll::Ready(None) => break None,
                Poll::Ready(Some(frame)) => {
                    // Trailers of a request have no way through pingora.
                    let Ok(data) = frame?.into_data() else { continue };
                    bytes += data.len();
                    ready.push(data);
                }
            }
        };
        Ok(Outgoing { ready, rest, length, streamed: false })
    }

    /// No body.
    pub(super) fn nothing() -> Self {
        Outgoing { ready: Vec::new(), rest: None, length: Some(0), streamed: false }
    }

    /// The length, where it is known before the body was sent.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_none() && self.ready.iter().all(Bytes::is_empty)
    }

    /// Whether everything can be sent once more.
    pub(super) fn can_repeat(&self) -> bool {
        !self.streamed
    }

    /// The piece at `index`: first what was ready, then what comes. `None` at the end.
    pub(super) async fn piece(&mut self, index: usize) -> Option<Result<Bytes, BoxError>> {
        if let Some(piece) = self.ready.get(index) {
            return Some(Ok(piece.clone()));
        }
        let rest = self.rest.as_mut()?;
        self.streamed = true;
        loop {
            match rest.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    Err(_trailers) => {}
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;

    use super::*;

    #[tokio::test]
    async fn what_is_there_can_be_repeated() {
        let mut outgoing = Outgoing::new(Body::from("abc")).unwrap();
        assert_eq!(outgoing.length(), Some(3));
        for _ in 0..2 {
            assert_eq!(outgoing.piece(0).await.unwrap().unwrap(), "abc");
            assert!(outgoing.piece(1).await.is_none());
            assert!(outgoing.can_repeat());
        }
    }

    #[tokio::test]
    async fn what_comes_later_cannot() {
        let later = futures_util::stream::once(async {
            tokio::task::yield_now().await;
            Ok::<_, BoxError>(http_body::Frame::data(Bytes::from_static(b"late")))
        });
        let mut outgoing = Outgoing::new(Body::wrap(StreamBody::new(later))).unwrap();
        assert!(!outgoing.is_empty() && outgoing.can_repeat());
        assert_eq!(outgoing.piece(0).await.unwrap().unwrap(), "late");
        assert!(outgoing.piece(0).await.is_none());
        assert!(!outgoing.can_repeat());
    }
}
