//! A request body that is read only when somebody asks for it.
//!
//! The session that the body comes from is also the one that the answer is written to, so the body itself cannot own it.
//! It asks instead, and whoever holds the session feeds it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::body::BoxError;

/// A piece of the body; `None`: its end.
pub(super) type Piece = Result<Option<Bytes>, BoxError>;

/// The body's side.
pub(super) struct OnDemand {
    ask: mpsc::Sender<()>,
    pieces: mpsc::Receiver<Piece>,
    asked: bool,
    ended: bool,
}

/// The session's side.
pub(super) struct Feed {
    asked: mpsc::Receiver<()>,
    pieces: mpsc::Sender<Piece>,
}

/// A body and its feed. `empty`: nothing will come.
pub(super) fn body(empty: bool) -> (OnDemand, Feed) {
    let (ask, asked) = mpsc::channel(1);
    let (feed, pieces) = mpsc::channel(1);
    (OnDemand { ask, pieces, asked: false, ended: empty }, Feed { asked, pieces: feed })
}

impl Feed {
    /// Resolves when the next piece is wanted; never when nobody wants any more.
    pub(super) async fn wanted(&mut self) {
        if self.asked.recv().await.is_none() {
            std::future::pending().await
        }
    }

    /// Gives the piece that was wanted.
    pub(super) fn give(&mut self, piece: Piece) {
        // There is room for the one that was asked for; when the body is gone, nobody misses it.
        let _ = self.pieces.try_send(piece);
    }
}

impl http_body::Body for OnDemand {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        if !self.asked {
            self.asked = self.ask.try_send(()).is_ok();
        }
        let piece = ready!(self.pieces.poll_recv(cx));
        self.asked = false;
        // Without an end from the session's side, the body broke off.
        match piece.unwrap_or_else(|| Err("the request ended early".into())) {
            Ok(Some(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Ok(None) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Err(error) => {
                self.ended = true;
                Poll::Ready(Some(Err(error)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        if self.ended { SizeHint::with_exact(0) } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn nothing_is_read_before_it_is_asked_for() {
        let (mut body, mut feed) = body(false);
        assert_eq!(feed.wanted().now_or_never(), None);
        assert!(body.frame().now_or_never().is_none());
        feed.wanted().await;
        assert_eq!(feed.wanted().now_or_never(), None, "once for each piece");
        feed.give(Ok(Some("a".into())));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
        assert!(body.frame().now_or_never().is_none());
        feed.wanted().await;
        feed.give(Ok(None));
        assert!(body.frame().await.is_none() && http_body::Body::is_end_stream(&body));
    }

    #[tokio::test]
    async fn a_body_without_an_end_broke_off() {
        let (mut broken, feed) = body(false);
        drop(feed);
        assert!(broken.frame().await.unwrap().is_err());
        let (mut empty, _feed) = body(true);
        assert!(empty.frame().await.is_none());
    }
}
