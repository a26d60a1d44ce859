//! Whether an answer got out. A message that a tool took is put back into the inbox when it did not.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::callback::TmpHooks;
use crate::id::SessionKey;
use crate::store::MessageId;

/// A message that an answer has.
pub(super) type Given = (SessionKey, MessageId);

/// Where a tool says which messages its answer has. It is an extension of the request.
#[derive(Clone)]
pub(super) struct Receipt(Arc<Mutex<State>>);

/// What becomes of an answer.
enum State {
    /// It is under way.
    Open(Vec<Given>),
    /// It got out. As long as nothing else is heard, the client has read it.
    Sent(Vec<Given>),
    /// Nobody has what it had.
    Lost,
}

impl Receipt {
    pub(super) fn new() -> Self {
        Receipt(Arc::new(Mutex::new(State::Open(Vec::new()))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer has this message; `false` when there is nobody any more who would get it.
    pub(super) fn has(&self, session: &SessionKey, id: MessageId) -> bool {
        match &mut *self.state() {
            State::Open(messages) => {
                messages.push((session.clone(), id));
                true
            }
            State::Sent(_) | State::Lost => false,
        }
    }

    /// The client says that it has not read the answer, whether or not that got out. Gives what is due again.
    pub(super) fn unread(&self) -> Vec<Given> {
        match std::mem::replace(&mut *self.state(), State::Lost) {
            State::Open(messages) | State::Sent(messages) => messages,
            State::Lost => Vec::new(),
        }
    }

    fn owes(&self) -> bool {
        matches!(&*self.state(), State::Open(messages) if !messages.is_empty())
    }

    fn sent(&self) {
        let mut state = self.state();
        if let State::Open(messages) = &mut *state {
            *state = State::Sent(std::mem::take(messages));
        }
    }

    /// The answer does not get out, unless it has.
    fn lost(&self) -> Vec<Given> {
        let mut state = self.state();
        let State::Open(messages) = &mut *state else { return Vec::new() };
        let messages = std::mem::take(messages);
        *state = State::Lost;
        messages
    }
}

/// Watches over one answer. Dropped before the answer got out, it puts back what the answer had.
pub(super) struct Delivery {
    hooks: TmpHooks,
    receipt: Receipt,
}

impl Delivery {
    pub(super) fn new(hooks: TmpHooks) -> Self {
        Delivery { hooks, receipt: Receipt::new() }
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
        let lost = self.receipt.lost();
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
/// It says once that there is nothing for now in front of the frame that matters, and once behind it. In front, the host
/// looks whether the client is still there. Behind it, the host writes what it has: it gathers as long as there is something,
/// and when it asks again, the frame is on its way.
pub(super) struct Watched<B> {
    body: B,
    delivery: Delivery,
    stage: Stage,
}

enum Stage {
    Before,
    /// The frame that matters is there.
    Held(Bytes),
    /// It was given to the host.
    Given,
    /// And the host was let write it.
    Written,
    Sent,
}

impl<B: Body<Data = Bytes> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match std::mem::replace(&mut self.stage, Stage::Sent) {
            Stage::Held(frame) => {
                self.stage = Stage::Given;
                return Poll::Ready(Some(Ok(Frame::data(frame))));
            }
            Stage::Given => {
                self.stage = Stage::Written;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Stage::Written => self.delivery.receipt.sent(),
            Stage::Before => self.stage = Stage::Before,
            Stage::Sent => {}
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let data = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref());
        let matters = |data: &&Bytes| self.delivery.receipt.owes() && is_result(data);
        if let (Stage::Before, Some(data)) = (&self.stage, data.filter(matters)) {
            self.stage = Stage::Held(data.clone());
            cx.waker().wake_by_ref();
            return Poll::Pending;
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
        assert!(body.frame().now_or_never().is_none(), "the host looks for the client");
        assert!(body.frame().now_or_never().is_some() && receipt.owes(), "the result is only given");
        assert!(body.frame().now_or_never().is_none() && receipt.owes(), "now it is written");
        assert!(matches!(body.frame().now_or_never(), Some(None)) && !receipt.owes());
        assert!(!receipt.has(&session, id), "nobody would get another one");
        drop(body);
        assert_eq!(receipt.unread(), [(session, id)], "the client can still say that it did not read it");
        assert_eq!(receipt.unread(), []);
    }

    #[test]
    fn an_answer_that_is_dropped_early_is_lost() {
        for given in 0..5 {
            let (mut body, receipt) = watched();
            let (session, id) = message();
            assert!(receipt.has(&session, id));
            (0..given).for_each(|_| drop(body.frame().now_or_never()));
            assert!(receipt.owes(), "after {given} steps");
            drop(body);
            assert!(!receipt.has(&session, id));
            assert_eq!(receipt.unread(), [], "it is put back already");
        }
    }
}
