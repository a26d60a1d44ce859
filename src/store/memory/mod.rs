//! The store in memory: for tests, for embedding, and for whoever can do without what a restart forgets.

mod state;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::ready;

use self::state::State;
use super::{
    CallbackStore, ClaimId, Claiming, InboxMessage, InboxState, Issuing, Listener, MessageId, NewToken, Revoking,
    Settlement, Settling, Signals, StoreFuture, TokenHash, TokenRecord, Topic,
};
use crate::id::SessionKey;
use crate::limits;
use crate::time::Timestamp;

/// How much the store may hold. What has ended makes room for what is new; what has not is never dropped for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Tokens of one session, ended ones included.
    pub session_tokens: usize,
    /// Tokens in all, ended ones included.
    pub tokens: usize,
    /// Messages of one session.
    pub session_messages: usize,
    /// The text of all messages, in bytes.
    pub bytes: usize,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        MemoryLimits {
            session_tokens: limits::MAX_SESSION_TOKENS,
            tokens: limits::MAX_TOKENS,
            session_messages: limits::MAX_SESSION_MESSAGES,
            bytes: limits::MAX_INBOX_BYTES,
        }
    }
}

/// Tokens and inboxes of this process. A restart forgets them.
#[derive(Debug, Default)]
pub struct MemoryStore {
    limits: MemoryLimits,
    state: Mutex<State>,
    /// Messages that wait, in all sessions: while there is none, nobody has to take the lock to know it.
    waiting: AtomicUsize,
    signals: Signals,
}

impl MemoryStore {
    /// An empty store with the usual limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with other limits.
    pub fn with_limits(limits: MemoryLimits) -> Self {
        MemoryStore { limits, ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code under the lock can leave it half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One step under the lock.
    fn step<T: Send + 'static>(&self, step: impl FnOnce(&mut State) -> T) -> StoreFuture<'_, T> {
        self.waking_step(|state| (step(state), Vec::new()))
    }

    /// One step under the lock, and what has changed by it: whoever waits for that is woken after it. Only a change wakes
    /// anybody, or those who wait for a token would wake each other by looking at it.
    fn waking_step<T: Send + 'static>(&self, step: impl FnOnce(&mut State) -> (T, Vec<Topic>)) -> StoreFuture<'_, T> {
        let (result, changed) = {
            let mut state = self.state();
            let result = step(&mut state);
            self.waiting.store(state.waiting(), Ordering::Release);
            result
        };
        changed.iter().for_each(|topic| self.signals.wake(topic));
        Box::pin(ready(Ok(result)))
    }
}

impl CallbackStore for MemoryStore {
    fn issue(&self, token: NewToken, now: Timestamp) -> StoreFuture<'_, Issuing> {
        self.step(|state| state.issue(token, now, &self.limits))
    }

    fn token(&self, hash: TokenHash) -> StoreFuture<'_, Option<TokenRecord>> {
        self.step(|state| state.token(hash).cloned())
    }

    fn claim(&self, hash: TokenHash, claim: ClaimId, until: Timestamp, now: Timestamp) -> StoreFuture<'_, Claiming> {
        self.step(|state| state.claim(hash, claim, until, now))
    }

    fn settle(&self, settlement: Settlement, now: Timestamp) -> StoreFuture<'_, Settling> {
        self.waking_step(|state| {
            let hash = settlement.hash;
            let settling = state.settle(settlement, now, &self.limits);
            let inbox = state.token(hash).map(|token| Topic::Inbox(token.session.clone()));
            let changed = [Some(Topic::Token(hash)), inbox].into_iter().flatten();
            let changed = changed.filter(|_| matches!(settling, Settling::Settled(_))).collect();
            (settling, changed)
        })
    }

    fn release(&self, hash: TokenHash, claim: ClaimId) -> StoreFuture<'_, bool> {
        self.waking_step(|state| {
            let released = state.release(hash, claim);
            (released, Vec::from_iter(released.then_some(Topic::Token(hash))))
        })
    }

    fn revoke(&self, session: SessionKey, prefix: String, now: Timestamp) -> StoreFuture<'_, Revoking> {
        self.waking_step(|state| {
            let revoking = state.revoke(&session, &prefix, now);
            let hash = state.named(&session, &prefix).filter(|_| revoking == Revoking::Revoked);
            (revoking, hash.map(Topic::Token).into_iter().collect())
        })
    }

    fn tokens(&self, session: SessionKey, after: Option<String>, limit: usize) -> StoreFuture<'_, Vec<TokenRecord>> {
        self.step(|state| state.tokens(&session, after.as_deref(), limit))
    }

    fn sessions_named(&self, id: String) -> StoreFuture<'_, Vec<SessionKey>> {
        self.step(|state| state.sessions_named(&id))
    }

    fn messages(
        &self,
        session: SessionKey,
        after: Option<MessageId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<InboxMessage>> {
        self.step(|state| state.messages(&session, after, limit))
    }

    fn take(
        &self,
        session: SessionKey,
        after: Option<MessageId>,
        limit: usize,
        to: InboxState,
    ) -> StoreFuture<'_, Vec<InboxMessage>> {
        self.step(|state| state.take(&session, after, limit, to))
    }

    fn mark(&self, session: SessionKey, id: MessageId, from: InboxState, to: InboxState) -> StoreFuture<'_, bool> {
        self.step(|state| state.mark(&session, id, from, to))
    }

    fn sweep(&self, tombstone: Duration, now: Timestamp) -> StoreFuture<'_, usize> {
        self.step(|state| state.sweep(tombstone, now))
    }

    fn forget(&self, session: SessionKey) -> StoreFuture<'_, ()> {
        self.waking_step(|state| {
            let tokens = state.hashes(&session);
            state.forget(&session);
            ((), tokens.into_iter().map(Topic::Token).collect())
        })
    }

    fn may_have_messages(&self, session: &SessionKey) -> bool {
        self.waiting.load(Ordering::Acquire) > 0 && self.state().has_waiting(session)
    }

    fn open_tokens(&self, session: &SessionKey, now: Timestamp) -> usize {
        self.state().open_tokens(session, now)
    }

    fn listen(&self, topic: Topic) -> Listener {
        self.signals.listen(topic)
    }
}
