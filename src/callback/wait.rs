//! Waiting for one callback's message, to have it instead of its becoming a part of the conversation.

use super::token::Token;
use super::{TmpHooks, render};
use crate::id::SessionKey;
use crate::limits::MAX_SESSION_TOKENS;
use crate::store::{InboxMessage, InboxState, MessageId, StoreError, TokenHash, TokenRecord, TokenState};
use crate::time::Timestamp;

/// The most messages that are looked at in one step.
const PAGE: usize = 100;

/// What a look at the callbacks came to.
#[derive(Debug)]
pub(crate) enum Sight {
    /// A message, which nobody else gets from now on.
    Message(Box<InboxMessage>),
    /// None yet; one may come until then.
    Open(Timestamp),
    /// None, and none will come.
    Nothing(WhyNothing),
}

/// Why a message cannot be waited for. The text is for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WhyNothing {
    #[error(
        "no callback of this session is open, and none has brought a message that waits: call request_tmp_hook first"
    )]
    NoneOpen,
    #[error(
        "this session has no such callback, or it was revoked; give the url exactly as request_tmp_hook returned it"
    )]
    Unknown,
    #[error("the callback has expired without being called; call request_tmp_hook for a new url")]
    Expired,
    #[error("the callback came, and its message was given to the conversation or taken from the inbox already")]
    Gone,
    #[error("messages of callbacks go to a controller here ([delivery] controller_url), so they cannot be waited for")]
    Controller,
}

impl TmpHooks {
    /// The callback of that URL, or of the token in it.
    pub(crate) fn callback_at(&self, url: &str) -> Option<TokenHash> {
        let token = Token::parse(url.trim().rsplit('/').next().unwrap_or_default())?;
        Some(self.inner.key.hash(&token))
    }

    /// Where workers reach this hookgate, if that is known.
    pub(crate) fn origin(&self) -> Option<&str> {
        self.inner.settings.origin().ok()
    }

    /// Resolves when it is closed.
    pub(crate) async fn until_closed(&self) {
        // The sender lives as long as this handle.
        let _ = self.inner.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Takes a message that waits: of that callback, or of any when none is named.
    pub(crate) async fn look_for(&self, session: &SessionKey, of: Option<TokenHash>) -> Result<Sight, StoreError> {
        if self.inner.deliverer.is_some() {
            return Ok(Sight::Nothing(WhyNothing::Controller));
        }
        match of {
            Some(hash) => self.look_for_one(session, hash).await,
            None => self.look_for_any(session).await,
        }
    }

    async fn look_for_any(&self, session: &SessionKey) -> Result<Sight, StoreError> {
        let store = &self.inner.store;
        // The tokens first: what is delivered after this look is open in it.
        let tokens = store.tokens(session.clone(), None, MAX_SESSION_TOKENS).await?;
        if let Some(message) = store.take(session.clone(), None, 1, InboxState::Taken).await?.pop() {
            return Ok(Sight::Message(Box::new(message)));
        }
        let now = Timestamp::now();
        let until = tokens.iter().filter(|token| token.ended(now).is_none()).map(last_moment).max();
        Ok(until.map_or(Sight::Nothing(WhyNothing::NoneOpen), Sight::Open))
    }

    async fn look_for_one(&self, session: &SessionKey, hash: TokenHash) -> Result<Sight, StoreError> {
        let token = self.inner.store.token(hash).await?.filter(|token| token.session == *session);
        let Some(token) = token else { return Ok(Sight::Nothing(WhyNothing::Unknown)) };
        Ok(match token.state {
            TokenState::Delivered { .. } => match self.take_of(session, hash).await? {
                Some(message) => Sight::Message(Box::new(message)),
                None => Sight::Nothing(WhyNothing::Gone),
            },
            TokenState::Revoked { .. } => Sight::Nothing(WhyNothing::Unknown),
            TokenState::Open | TokenState::Claimed { .. } if token.ended(Timestamp::now()).is_some() => {
                Sight::Nothing(WhyNothing::Expired)
            }
            TokenState::Open | TokenState::Claimed { .. } => Sight::Open(last_moment(&token)),
        })
    }

    /// Takes the message of that callback, if it waits.
    async fn take_of(&self, session: &SessionKey, hash: TokenHash) -> Result<Option<InboxMessage>, StoreError> {
        let store = &self.inner.store;
        let mut after = None;
        loop {
            let page = store.messages(session.clone(), after, PAGE).await?;
            let Some(last) = page.last().map(|message| message.id) else { return Ok(None) };
            let prefix = hash.prefix();
            let own = |message: &InboxMessage| render::token_of(&message.masked_text) == Some(&*prefix);
            if let Some(mut message) = page.into_iter().find(own) {
                let taken = store.mark(session.clone(), message.id, InboxState::Waiting, InboxState::Taken).await?;
                message.state = InboxState::Taken;
                return Ok(taken.then_some(message));
            }
            after = Some(last);
        }
    }

    /// Puts a message back that was taken and that nobody got.
    pub(crate) async fn put_back(&self, session: &SessionKey, id: MessageId) {
        let back = self.inner.store.mark(session.clone(), id, InboxState::Taken, InboxState::Waiting).await;
        if let Err(error) = back {
            tracing::error!(%error, "a message that nobody got could not be put back; the inbox still has it as taken");
        }
    }
}

/// From this moment on nothing comes of it any more.
fn last_moment(token: &TokenRecord) -> Timestamp {
    match token.state {
        TokenState::Claimed { until, .. } => until.max(token.expires_at),
        _ => token.expires_at,
    }
}
