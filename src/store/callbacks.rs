//! The trait that stores implement.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::{
    ClaimId, InboxMessage, InboxState, Listener, MessageId, NewMessage, NewToken, TokenHash, TokenRecord, Topic,
};
use crate::id::{Digest, SessionKey};
use crate::time::Timestamp;

/// What a store's methods return.
pub type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StoreError>>;

/// Keeps tokens and inboxes.
///
/// The rules:
/// 1. Every method is one step: of two that run at the same time, one sees all or nothing of what the other did, and a
///    crash leaves it done or not done. A store that keeps things returns when they are kept.
/// 2. The time is what the caller says; a store has no clock.
/// 3. A message is stored together with the end of its token ([`CallbackStore::settle`]) and never without.
/// 4. A message that waits is not dropped to make room; what cannot be stored is refused.
/// 5. When a token is released, ended or gone its listeners are woken, and when a message is stored those of its inbox: on
///    this node at once, on others as soon as the store can tell them. What changes nothing wakes nobody.
///
/// `hookgate::store::conformance` tests the rules of any implementation.
pub trait CallbackStore: Send + Sync + 'static {
    /// Stores a token.
    fn issue(&self, token: NewToken, now: Timestamp) -> StoreFuture<'_, Issuing>;

    /// The token of that hash.
    fn token(&self, hash: TokenHash) -> StoreFuture<'_, Option<TokenRecord>>;

    /// Claims a token until the lease lapses, if it [is free](TokenRecord::is_free).
    fn claim(&self, hash: TokenHash, claim: ClaimId, until: Timestamp, now: Timestamp) -> StoreFuture<'_, Claiming>;

    /// Ends a token and stores its message, both or neither.
    ///
    /// With a claim, as long as the token is held by that claim, whether or not the lease has lapsed; without one, if the
    /// token is free.
    fn settle(&self, settlement: Settlement, now: Timestamp) -> StoreFuture<'_, Settling>;

    /// Gives a token back that is held by that claim, with its old expiry; `false` when it is not.
    fn release(&self, hash: TokenHash, claim: ClaimId) -> StoreFuture<'_, bool>;

    /// Takes back the session's token whose hash has that prefix. What was delivered or is being delivered stays.
    fn revoke(&self, session: SessionKey, prefix: String, now: Timestamp) -> StoreFuture<'_, Revoking>;

    /// The session's tokens, in the order in which they were issued: at most `limit` after the one with the prefix `after`.
    fn tokens(&self, session: SessionKey, after: Option<String>, limit: usize) -> StoreFuture<'_, Vec<TokenRecord>>;

    /// The sessions of that id that have a token or a message, one for each tenant, in the tenants' order.
    fn sessions_named(&self, id: String) -> StoreFuture<'_, Vec<SessionKey>>;

    /// The session's messages in the order of their ids: at most `limit` after that id.
    fn messages(
        &self,
        session: SessionKey,
        after: Option<MessageId>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<InboxMessage>>;

    /// Moves the session's waiting messages (at most `limit` after that id) to another state, and returns them in that
    /// state, in the order of their ids. Of two callers at the same time exactly one gets each.
    fn take(
        &self,
        session: SessionKey,
        after: Option<MessageId>,
        limit: usize,
        state: InboxState,
    ) -> StoreFuture<'_, Vec<InboxMessage>>;

    /// Moves one message from a state to another; `false` when it is not in the first.
    fn mark(&self, session: SessionKey, id: MessageId, from: InboxState, to: InboxState) -> StoreFuture<'_, bool>;

    /// Forgets tokens that ended longer ago than `tombstone`, messages that somebody has and that came longer ago than
    /// that, and messages that nobody wanted for [`MAX_MESSAGE_AGE`](crate::limits::MAX_MESSAGE_AGE). Returns how many of
    /// both there were.
    fn sweep(&self, tombstone: Duration, now: Timestamp) -> StoreFuture<'_, usize>;

    /// Forgets everything about a session.
    fn forget(&self, session: SessionKey) -> StoreFuture<'_, ()>;

    /// Whether a message may wait for the session, without asking anyone: never `false` when this node knows of one.
    fn may_have_messages(&self, session: &SessionKey) -> bool;

    /// How many of the session's tokens can still be delivered, as far as this node knows, without asking anyone.
    fn open_tokens(&self, session: &SessionKey, now: Timestamp) -> usize;

    /// Resolves at the next change. It listens when this returns.
    fn listen(&self, topic: Topic) -> Listener;
}

/// What became of [`CallbackStore::issue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issuing {
    /// It is stored.
    Issued,
    /// The session has a token with the same prefix: try another one.
    Collision,
    /// The session, or the store, has as many as it may have.
    Full,
}

/// What became of [`CallbackStore::claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claiming {
    /// The caller has it.
    Claimed(TokenRecord),
    /// It is not free; `None`: there is none.
    NotFree(Option<TokenRecord>),
}

/// What [`CallbackStore::settle`] is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// Which token ends.
    pub hash: TokenHash,
    /// The claim that holds it.
    pub claim: Option<ClaimId>,
    /// Names the callback's body.
    pub body: Digest,
    /// The message.
    pub message: NewMessage,
}

/// What became of [`CallbackStore::settle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settling {
    /// The message is stored under this id, and the token is spent.
    Settled(MessageId),
    /// The token is not free, or not held by that claim; `None`: there is none.
    NotFree(Option<TokenRecord>),
    /// The inbox, or the store, has no room. The token is as it was.
    Full,
}

/// What became of [`CallbackStore::revoke`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoking {
    /// It is revoked, now or before.
    Revoked,
    /// The session has no such token.
    Unknown,
    /// It is being delivered at this moment.
    Claimed,
    /// It was delivered.
    Delivered,
}

/// The store could not do it. The message is for the log, and holds neither a token nor a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError(String);

impl StoreError {
    /// With its cause in a few words.
    pub fn new(cause: impl Into<String>) -> Self {
        StoreError(cause.into())
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store failed: {}", self.0)
    }
}

impl std::error::Error for StoreError {}
