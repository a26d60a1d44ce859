//! The handle's other half: reading what callbacks brought.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::TmpHooks;
use crate::id::SessionKey;
use crate::store::{InboxMessage, InboxState, Listener, MessageId, StoreError, Topic};

/// The most messages that are read at once.
const PAGE: usize = 500;

/// Which messages are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InboxQuery {
    /// Only those after this one.
    pub after: Option<MessageId>,
    /// How many at most; none asks for as many as there may be, 500.
    pub limit: Option<usize>,
    /// Take those that wait, so that nobody else gets them, instead of reading all.
    pub take: bool,
}

impl TmpHooks {
    /// Whether a message may wait to become part of the conversation. Asks nobody, and is `false` for a session that never
    /// got one, and always when a controller takes them.
    pub fn may_have_messages(&self, session: &SessionKey) -> bool {
        self.inner.deliverer.is_none() && self.inner.store.may_have_messages(session)
    }

    /// The messages that wait, in order; from now on they count as part of the conversation. Of two requests at the same
    /// time exactly one gets each. When the store fails there are none: they wait for the next request.
    pub async fn take_for_injection(&self, session: &SessionKey) -> Vec<InboxMessage> {
        if self.inner.deliverer.is_some() {
            return Vec::new();
        }
        let taken = self.inner.store.take(session.clone(), None, PAGE, InboxState::Injected).await;
        taken.unwrap_or_else(|error| {
            tracing::error!(%error, "the messages of callbacks could not be read; they wait for the next request");
            Vec::new()
        })
    }

    /// Records that a policy kept a message, which was taken, from the model.
    pub async fn withhold(&self, session: &SessionKey, message: &InboxMessage) {
        let withheld = self.inner.store.mark(session.clone(), message.id, message.state, InboxState::Withheld).await;
        if let Err(error) = withheld {
            tracing::error!(%error, "the inbox does not say that a message was withheld");
        }
    }

    /// Resolves when a message is admitted for the session, from the moment of this call on: make it first, look at the
    /// inbox next, then await it.
    pub fn arrival(&self, session: &SessionKey) -> Arrival {
        Arrival(self.inner.store.listen(Topic::Inbox(session.clone())))
    }

    /// Reads or takes messages, in the order of their ids. When there are none it waits for the first that long.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn inbox(
        &self,
        session: &SessionKey,
        query: InboxQuery,
        wait: Duration,
    ) -> Result<Vec<InboxMessage>, StoreError> {
        let deadline = tokio::time::Instant::now() + wait;
        let mut closed = self.inner.closed.subscribe();
        loop {
            let arrival = self.arrival(session);
            let found = self.look(session, query).await?;
            if !found.is_empty() || wait.is_zero() {
                return Ok(found);
            }
            tokio::select! {
                () = arrival => {}
                () = tokio::time::sleep_until(deadline) => return Ok(found),
                _ = closed.wait_for(|closed| *closed) => return Ok(found),
            }
        }
    }

    async fn look(&self, session: &SessionKey, query: InboxQuery) -> Result<Vec<InboxMessage>, StoreError> {
        let InboxQuery { after, limit, take } = query;
        let limit = limit.unwrap_or(PAGE).min(PAGE);
        match take {
            true => self.inner.store.take(session.clone(), after, limit, InboxState::Taken).await,
            false => self.inner.store.messages(session.clone(), after, limit).await,
        }
    }
}

/// Resolves when a message is admitted; made by [`TmpHooks::arrival`].
#[derive(Debug)]
#[must_use = "it does nothing unless it is awaited"]
pub struct Arrival(Listener);

impl Future for Arrival {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}
