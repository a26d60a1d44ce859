//! The answer's body as the hosts see it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::{Body, BoxError};

/// The body of an inspected exchange. Dropping it cancels what is still under way: pending hooks, the upstream's answer.
///
/// A host that can write several frames at once may poll for more until one is pending: what is ready together was
/// decided together.
#[derive(Debug)]
pub struct GuardedBody {
    body: Body,
}

impl From<Body> for GuardedBody {
    fn from(body: Body) -> Self {
        GuardedBody { body }
    }
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
