//! From a body that is there to the worker's answer: the token's turn, the delivery, and what is undone when it fails.

use std::time::Duration;

use bytes::Bytes;

use super::TmpHooks;
use super::deliver::Deliverer;
use super::machine::{self, Answer, Next};
use super::render::{self, Callback};
use super::token::Token;
use crate::id::Digest;
use crate::limits::CLAIM_GRACE;
use crate::store::{
    ClaimId, Claiming, InboxState, NewMessage, Settlement, Settling, StoreError, TokenHash, TokenRecord, Topic,
};
use crate::time::Timestamp;

/// A callback waits this many leases for its turn, then it is as if its delivery had failed: behind others that fail, it
/// could wait as long as its token lives.
const MAX_LEASES: u32 = 3;

/// One callback whose body was read.
pub(super) struct Admission {
    hooks: TmpHooks,
    hash: TokenHash,
    token: Token,
    content_type: Option<String>,
    body: Bytes,
    digest: Digest,
    received_at: Timestamp,
}

/// What one attempt came to.
enum Attempt {
    Done(Answer),
    /// Somebody else has the token.
    NotFree(Option<TokenRecord>),
}

impl Admission {
    pub(super) fn new(
        hooks: TmpHooks,
        hash: TokenHash,
        token: Token,
        content_type: Option<String>,
        body: Bytes,
        received_at: Timestamp,
    ) -> Self {
        let digest = Digest::of(&body);
        Admission { hooks, hash, token, content_type, body, digest, received_at }
    }

    /// Tries until it is decided what became of this callback.
    pub(super) async fn run(self) -> Answer {
        let settings = &self.hooks.inner.settings;
        // It bounds the waiting alone: an attempt that is under way ends by itself, and gives back what it claimed.
        let patience = self.received_at.after(self.lease() * MAX_LEASES);
        loop {
            // Before the attempt: what becomes of the other callback must not slip between looking and waiting.
            let change = self.hooks.inner.store.listen(Topic::Token(self.hash));
            let record = match self.attempt().await {
                Ok(Attempt::Done(answer)) => return answer,
                Ok(Attempt::NotFree(record)) => record,
                Err(error) => {
                    tracing::error!(token = self.hash.prefix(), %error, "a callback was not admitted");
                    return Answer::Undelivered;
                }
            };
            let now = Timestamp::now();
            let standing = machine::standing(record.as_ref(), settings.tombstone, now);
            match machine::next(standing, self.digest, settings.replay_grace, now) {
                Next::Again => {}
                Next::Answer(answer) => return answer,
                Next::Wait { .. } if patience <= now => return Answer::Undelivered,
                Next::Wait { until } => {
                    // Of a claim of another node, or of one that died, only the lease's end may be noticed.
                    let _ = tokio::time::timeout(now.until(until.min(patience)), change).await;
                }
            }
        }
    }

    async fn attempt(&self) -> Result<Attempt, StoreError> {
        match &self.hooks.inner.deliverer {
            None => self.to_inbox().await,
            Some(deliverer) => self.to_controller(deliverer).await,
        }
    }

    /// Without a controller the message waits in the inbox: one step takes the token and stores it.
    async fn to_inbox(&self) -> Result<Attempt, StoreError> {
        let store = &self.hooks.inner.store;
        let Some(token) = store.token(self.hash).await? else { return Ok(Attempt::NotFree(None)) };
        self.settle(&token, None, InboxState::Waiting).await
    }

    /// The controller is asked while the token is claimed, and the message is kept as one that somebody has.
    async fn to_controller(&self, deliverer: &Deliverer) -> Result<Attempt, StoreError> {
        let now = Timestamp::now();
        let claim = ClaimId::random();
        let claiming = self.hooks.inner.store.claim(self.hash, claim, now.after(self.lease()), now).await?;
        let token = match claiming {
            Claiming::Claimed(token) => token,
            Claiming::NotFree(record) => return Ok(Attempt::NotFree(record)),
        };
        let message = self.message(&token, &self.hash.prefix());
        let time = self.hooks.inner.settings.deliver_timeout;
        if let Err(cause) = deliverer.hand_over(&token, &message, time).await {
            tracing::warn!(token = self.hash.prefix(), cause, "the controller did not take a callback over");
            self.release(claim).await;
            return Ok(Attempt::Done(Answer::Undelivered));
        }
        let settled = self.settle(&token, Some(claim), InboxState::Taken).await;
        match settled {
            Ok(Attempt::Done(Answer::Received)) => {}
            // The worker will call again, and the controller will know the message by its idempotency key.
            _ => self.release(claim).await,
        }
        settled
    }

    async fn settle(
        &self,
        token: &TokenRecord,
        claim: Option<ClaimId>,
        state: InboxState,
    ) -> Result<Attempt, StoreError> {
        let message = NewMessage {
            received_at: self.received_at,
            purpose: token.purpose.clone(),
            content_type: self.content_type.clone(),
            text: self.message(token, self.token.reveal()),
            masked_text: self.message(token, &self.hash.prefix()),
            state,
        };
        let settlement = Settlement { hash: self.hash, claim, body: self.digest, message };
        let settling = self.hooks.inner.store.settle(settlement, Timestamp::now());
        let time = self.hooks.inner.settings.deliver_timeout;
        match tokio::time::timeout(time, settling).await {
            Err(_) => Err(StoreError::new(format!("it took longer than {} ms", time.as_millis()))),
            Ok(Err(error)) => Err(error),
            Ok(Ok(Settling::NotFree(record))) => Ok(Attempt::NotFree(record)),
            Ok(Ok(Settling::Settled(_))) => Ok(Attempt::Done(Answer::Received)),
            Ok(Ok(Settling::Full)) => {
                let session = &*token.session.session;
                tracing::error!(session, "the inbox is full: nobody reads the messages of this session's callbacks");
                Ok(Attempt::Done(Answer::Undelivered))
            }
        }
    }

    async fn release(&self, claim: ClaimId) {
        match self.hooks.inner.store.release(self.hash, claim).await {
            Ok(_) => {}
            Err(error) => {
                let token = self.hash.prefix();
                tracing::error!(token, %error, "a callback was not released; it is free again when its claim lapses");
            }
        }
    }

    /// The message, with `shown` wherever the token stands in it: a worker may send its own URL along.
    fn message(&self, token: &TokenRecord, shown: &str) -> String {
        let text = render::message(&Callback {
            received_at: self.received_at,
            token: shown,
            purpose: token.purpose.as_deref(),
            content_type: self.content_type.as_deref(),
            body: &self.body,
        });
        text.replace(self.token.reveal(), shown)
    }

    /// How long a token is claimed for one delivery.
    fn lease(&self) -> Duration {
        self.hooks.inner.settings.deliver_timeout + CLAIM_GRACE
    }
}
