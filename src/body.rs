//! The request and answer body that both hosts and the core hand to each other.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use crate::wire::json::Rope;

/// Any error, boxed.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A body: pieces that are there already, or a stream that is passed on as it comes.
///
/// ```
/// use http_body::Body as _;
/// let body = hookgate::Body::from("hello");
/// assert_eq!(body.size_hint().exact(), Some(5));
/// ```
#[derive(Default)]
pub struct Body(Inner);

enum Inner {
    Pieces(VecDeque<Bytes>),
    Stream(UnsyncBoxBody<Bytes, BoxError>),
}

impl Default for Inner {
    fn default() -> Self {
        Inner::Pieces(VecDeque::new())
    }
}

impl Body {
    /// A body without bytes.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Passes another body on, frame by frame.
    pub fn wrap<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Body(Inner::Stream(body.map_err(Into::into).boxed_unsync()))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Rope::from(bytes).into()
    }
}

impl From<Rope> for Body {
    fn from(rope: Rope) -> Self {
        Body(Inner::Pieces(rope.into_pieces().into()))
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            Inner::Pieces(pieces) => Poll::Ready(pieces.pop_front().map(|piece| Ok(Frame::data(piece)))),
            Inner::Stream(stream) => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Inner::Pieces(pieces) => pieces.is_empty(),
            Inner::Stream(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Pieces(pieces) => SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum()),
            Inner::Stream(stream) => stream.size_hint(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("size", &http_body::Body::size_hint(self)).finish_non_exhaustive()
    }
}
