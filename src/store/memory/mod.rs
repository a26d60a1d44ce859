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

    /// Changes something, then wakes whoever waits for it.
    fn change<T: Send + 'static>(
        &self,
        topics: impl IntoIterator<Item = Topic>,
        change: impl FnOnce(&mut State) -> T,
    ) -> StoreFuture<'_, T> {
        let result = {
            let mut state = self.state();
            let result = change(&mut state);
            self.waiting.store(state.waiting(), Ordering::Release);
            result
        };
        topics.into_iter().for_each(|topic| self.signals.wake(&topic));
        Box::pin(ready(Ok(result)))
    }
}

impl CallbackStore for MemoryStore {
    fn issue(&self, token: NewToken, now: Timestamp) -> StoreFuture<'_, Issuing> {
        self.change([], |state| state.issue(token, now, &self.limits))
    }

    fn token(&self, hash: TokenHash) -> StoreFuture<'_, Option<TokenRecord>> {
        self.change([], |state| state.token(hash).cloned())
    }

    fn claim(&self, hash: TokenHash, claim: ClaimId, until: Timestamp, now: Timestamp) -> StoreFuture<'_, Claiming> {
        self.change([Topic::Token(hash)], |state| state.claim(hash, claim, until, now))
    }

    fn settle(&self, settlement: Settlement, now: Timestamp) -> StoreFuture<'_, Settling> {
        let session = self.state().token(settlement.hash).map(|token| token.session.clone());
        let topics = [Some(Topic::Token(settlement.hash)), session.map(Topic::Inbox)];
        self.change(topics.into_iter().flatten(), |state| state.settle(settlement, now, &self.limits))
    }

    fn release(&self, hash: TokenHash, claim: ClaimId) -> StoreFuture<'_, bool> {
        self.change([Topic::Token(hash)], |state| state.release(hash, claim))
    }

    fn revoke(&self, session: SessionKey, prefix: String, now: Timestamp) -> StoreFuture<'_, Revoking> {
        let hash = self.state().named(&session, &prefix);
        self.change(hash.map(Topic::Token), |state| state.revoke(&session, &prefix, now))
    }

    fn tokens(&self, session: SessionKey, after: Option<String>, limit: usize) -> StoreFuture<'_, Vec<TokenRecord>> {
        self.change([], |state| state.tokens(&session, after.as_deref(), limit))
    }

    fn sessions_named(&self, id: String) -> StoreFuture<'_, Vec<SessionKey>> {
        self.change([], |state| state.sessions_named(&id))
    }

    fn messages(
        &self,
        session: SessionKey,
        after: Option<MessageId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<InboxMessage>> {
        self.change([], |state| state.messages(&session, after, limit))
    }

    fn take(
        &self,
        session: SessionKey,
        after: Option<MessageId>,
        limit: usize,
        to: InboxState,
    ) -> StoreFuture<'_, Vec<InboxMessage>> {
        self.change([], |state| state.take(&session, after, limit, to))
    }

    fn mark(&self, session: SessionKey, id: MessageId, from: InboxState, to: InboxState) -> StoreFuture<'_, bool> {
        self.change([], |state| state.mark(&session, id, from, to))
    }

    fn sweep(&self, tombstone: Duration, now: Timestamp) -> StoreFuture<'_, usize> {
        self.change([], |state| state.sweep(tombstone, now))
    }

    fn forget(&self, session: SessionKey) -> StoreFuture<'_, ()> {
        let tokens = self.state().hashes(&session).into_iter().map(Topic::Token);
        self.change(tokens, |state| state.forget(&session))
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
