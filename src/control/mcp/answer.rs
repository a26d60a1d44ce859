//! Whether an answer got out. A message that a tool took is put back into the inbox when it did not.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::callback::TmpHooks;
use crate::id::SessionKey;
use crate::store::MessageId;

/// Where a tool says which messages its answer has. It is an extension of the request.
#[derive(Clone)]
pub(super) struct Receipt(Arc<Mutex<State>>);

/// What becomes of an answer.
enum State {
    /// It is under way, with these messages.
    Open(Vec<(SessionKey, MessageId)>),
    /// It got out, or never will.
    Over,
}

impl Receipt {
    /// The answer has this message; `false` when there is nobody any more who would get it.
    pub(super) fn has(&self, session: &SessionKey, id: MessageId) -> bool {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open(messages) => {
                messages.push((session.clone(), id));
                true
            }
            State::Over => false,
        }
    }

    fn is_empty(&self) -> bool {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open(messages) => messages.is_empty(),
            State::Over => true,
        }
    }

    /// Ends it, and gives what it had.
    fn close(&self) -> Vec<(SessionKey, MessageId)> {
        let state = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Over);
        match state {
            State::Open(messages) => messages,
            State::Over => Vec::new(),
        }
    }
}

/// Watches over one answer. Dropped before the answer got out, it puts back what the answer had.
pub(super) struct Delivery {
    hooks: TmpHooks,
    receipt: Receipt,
}

impl Delivery {
    pub(super) fn new(hooks: TmpHooks) -> Self {
        Delivery { hooks, receipt: Receipt(Arc::new(Mutex::new(State::Open(Vec::new())))) }
    }

    pub(super) fn receipt(&self) -> Receipt {
        self.receipt.clone()
    }

    /// The answer's body, watched.
    pub(super) fn of<B>(self, body: B) -> Watched<B> {
        Watched { body, delivery: self, stage: Stage::Before }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        let lost = self.receipt.close();
        if let (false, Ok(runtime)) = (lost.is_empty(), tokio::runtime::Handle::try_current()) {
            let hooks = self.hooks.clone();
            runtime.spawn(async move {
                for (session, id) in lost {
                    hooks.put_back(&session, id).await;
                }
            });
        }
    }
}

/// The body of an answer that may have messages.
///
/// A host that asks for the next frame may not have written the last one yet: it gathers as long as there is something.
/// So the body says once that there is nothing for now, behind the frame that matters; when it is asked again, what it gave
/// is on its way.
pub(super) struct Watched<B> {
    body: B,
    delivery: Delivery,
    stage: Stage,
}

#[derive(PartialEq, Eq)]
enum Stage {
    Before,
    /// The frame that matters was given to the host.
    Given,
    /// And the host was let write it.
    Paused,
    Sent,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.stage {
            Stage::Given => {
                self.stage = Stage::Paused;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Stage::Paused => {
                self.stage = Stage::Sent;
                self.delivery.receipt.close();
            }
            Stage::Before | Stage::Sent => {}
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        if self.stage == Stage::Before && data.is_some_and(|data| !self.delivery.receipt.is_empty() && is_result(data))
        {
            self.stage = Stage::Given;
        }
        Poll::Ready(frame)
    }
}

/// Whether an event of the answer is the tool's result, and not a word on its progress.
fn is_result(event: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Answer {
        #[serde(rename = "result")]
        _result: IgnoredAny,
    }
    let data = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    data.into_iter().any(|json| serde_json::from_slice::<Answer>(json).is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use futures_util::FutureExt as _;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::callback::{Settings, TokenKey};
    use crate::store::MemoryStore;

    const PROGRESS: &[u8] =
        b"data: {\"method\":\"notifications/progress\",\"params\":{\"message\":\"\\\"result\\\":1\"}}\n\n";
    const RESULT: &[u8] = b"id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";

    struct Frames(VecDeque<&'static [u8]>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop_front().map(|data| Ok(Frame::data(Bytes::from_static(data)))))
        }
    }

    fn watched() -> (Watched<Frames>, Receipt) {
        let hooks = TmpHooks::new(Settings::default(), Arc::new(MemoryStore::new()), TokenKey::random(), None);
        let delivery = Delivery::new(hooks);
        let receipt = delivery.receipt();
        (delivery.of(Frames([PROGRESS, RESULT].into())), receipt)
    }

    fn message() -> (SessionKey, MessageId) {
        (SessionKey { tenant: "t".into(), session: "s".into() }, MessageId::from_i64(1))
    }

    #[test]
    fn a_message_is_owed_until_the_host_comes_back_after_the_result() {
        let (mut body, receipt) = watched();
        let (session, id) = message();
        assert!(receipt.has(&session, id));
        assert!(body.frame().now_or_never().is_some(), "progress goes through");
        assert!(body.frame().now_or_never().is_some() && !receipt.is_empty(), "the result is only given");
        assert!(body.frame().now_or_never().is_none() && !receipt.is_empty(), "now it is written");
        assert!(matches!(body.frame().now_or_never(), Some(None)) && receipt.is_empty());
        assert!(!receipt.has(&session, id), "nobody would get another one");
    }

    #[test]
    fn an_answer_that_is_dropped_early_still_owes() {
        for given in 0..3 {
            let (mut body, receipt) = watched();
            let (session, id) = message();
            assert!(receipt.has(&session, id));
            (0..given).for_each(|_| drop(body.frame().now_or_never()));
            assert!(!receipt.is_empty(), "after {given} frames");
            drop(body);
            assert!(!receipt.has(&session, id));
        }
    }
}
