//! What the store in memory holds, changed one step at a time.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::MemoryLimits;
use crate::id::SessionKey;
use crate::limits::MAX_MESSAGE_AGE;
use crate::store::{
    ClaimId, Claiming, InboxMessage, InboxState, Issuing, MessageId, NewToken, Revoking, Settlement, Settling,
    TokenHash, TokenRecord, TokenState,
};
use crate::time::Timestamp;

#[derive(Debug, Default)]
pub(super) struct State {
    tokens: HashMap<TokenHash, TokenRecord>,
    sessions: HashMap<SessionKey, Session>,
    waiting: usize,
    bytes: usize,
}

/// There is one as long as it has something.
#[derive(Debug, Default)]
struct Session {
    /// In the order in which they were issued.
    tokens: Vec<TokenHash>,
    /// In the order of their ids.
    inbox: VecDeque<InboxMessage>,
    last_id: i64,
}

/// What a message takes up.
fn size(message: &InboxMessage) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    message.text.len() + message.masked_text.len() + optional(&message.purpose) + optional(&message.content_type)
}

impl State {
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    pub(super) fn token(&self, hash: TokenHash) -> Option<&TokenRecord> {
        self.tokens.get(&hash)
    }

    pub(super) fn issue(&mut self, new: NewToken, now: Timestamp, limits: &MemoryLimits) -> Issuing {
        if self.named(&new.session, &new.hash.prefix()).is_some() || self.tokens.contains_key(&new.hash) {
            return Issuing::Collision;
        }
        if !self.make_room_for_token(&new.session, now, limits) {
            return Issuing::Full;
        }
        let NewToken { hash, session, purpose, expires_at } = new;
        self.sessions.entry(session.clone()).or_default().tokens.push(hash);
        let record = TokenRecord { hash, session, purpose, created_at: now, expires_at, state: TokenState::Open };
        self.tokens.insert(hash, record);
        Issuing::Issued
    }

    /// Ended tokens make room: the session's oldest one, and the twentieth of all that ended first, so that the search
    /// for them is rare.
    fn make_room_for_token(&mut self, session: &SessionKey, now: Timestamp, limits: &MemoryLimits) -> bool {
        let of_session = self.hashes(session);
        if of_session.len() >= limits.session_tokens {
            let ended = |hash: &TokenHash| self.tokens.get(hash).is_none_or(|token| token.ended(now).is_some());
            let Some(hash) = of_session.into_iter().find(ended) else { return false };
            self.tokens.remove(&hash);
            if let Some(session) = self.sessions.get_mut(session) {
                session.tokens.retain(|other| *other != hash);
            }
        }
        if self.tokens.len() >= limits.tokens {
            let mut ended: Vec<Timestamp> = self.tokens.values().filter_map(|token| token.ended(now)).collect();
            ended.sort_unstable();
            let Some(last) = ended.get((limits.tokens / 20).min(ended.len().saturating_sub(1))).copied() else {
                return false;
            };
            self.remove_tokens(|token| token.ended(now).is_some_and(|end| end <= last));
        }
        true
    }

    pub(super) fn claim(&mut self, hash: TokenHash, claim: ClaimId, until: Timestamp, now: Timestamp) -> Claiming {
        match self.tokens.get_mut(&hash) {
            Some(token) if token.is_free(now) => {
                token.state = TokenState::Claimed { claim, until };
                Claiming::Claimed(token.clone())
            }
            other => Claiming::NotFree(other.cloned()),
        }
    }

    pub(super) fn settle(&mut self, settlement: Settlement, now: Timestamp, limits: &MemoryLimits) -> Settling {
        let Settlement { hash, claim, body, message } = settlement;
        let token = self.tokens.get(&hash);
        let held = |token: &&TokenRecord| match claim {
            Some(own) => matches!(token.state, TokenState::Claimed { claim, .. } if claim == own),
            None => token.is_free(now),
        };
        let Some(session) = token.filter(held).map(|token| token.session.clone()) else {
            return Settling::NotFree(token.cloned());
        };
        let mut message = InboxMessage {
            id: MessageId::from_i64(0),
            received_at: message.received_at,
            purpose: message.purpose,
            content_type: message.content_type,
            text: message.text,
            masked_text: message.masked_text,
            state: message.state,
        };
        let size = size(&message);
        if !self.make_room_for_message(&session, size, limits) {
            return Settling::Full;
        }
        let inbox = self.sessions.entry(session).or_default();
        // Ids go on growing when the process, and with it this counter, starts anew: they begin with the time.
        inbox.last_id = (inbox.last_id + 1).max(now.unix_millis().saturating_mul(1 << 10));
        message.id = MessageId::from_i64(inbox.last_id);
        let id = message.id;
        self.waiting += usize::from(message.state == InboxState::Waiting);
        self.bytes += size;
        inbox.inbox.push_back(message);
        if let Some(token) = self.tokens.get_mut(&hash) {
            token.state = TokenState::Delivered { at: now, body };
        }
        Settling::Settled(id)
    }

    /// Messages that somebody has make room: the session's oldest one, and all of them when it is the memory that is full.
    fn make_room_for_message(&mut self, session: &SessionKey, size: usize, limits: &MemoryLimits) -> bool {
        let of_session = self.sessions.get_mut(session).map(|session| &mut session.inbox);
        if let Some(inbox) = of_session.filter(|inbox| inbox.len() >= limits.session_messages) {
            let done = inbox.iter().position(|message| message.state != InboxState::Waiting);
            let Some(done) = done.and_then(|done| inbox.remove(done)) else { return false };
            self.bytes -= self::size(&done);
        }
        if self.bytes + size > limits.bytes {
            self.remove_messages(|_, message| message.state != InboxState::Waiting);
        }
        self.bytes + size <= limits.bytes
    }

    pub(super) fn release(&mut self, hash: TokenHash, claim: ClaimId) -> bool {
        match self.tokens.get_mut(&hash) {
            Some(token) if matches!(token.state, TokenState::Claimed { claim: held, .. } if held == claim) => {
                token.state = TokenState::Open;
                true
            }
            _ => false,
        }
    }

    pub(super) fn revoke(&mut self, session: &SessionKey, prefix: &str, now: Timestamp) -> Revoking {
        let hash = self.named(session, prefix);
        let Some(token) = hash.and_then(|hash| self.tokens.get_mut(&hash)) else { return Revoking::Unknown };
        match token.state {
            TokenState::Revoked { .. } => Revoking::Revoked,
            TokenState::Delivered { .. } => Revoking::Delivered,
            TokenState::Claimed { until, .. } if until > now => Revoking::Claimed,
            TokenState::Open | TokenState::Claimed { .. } => {
                token.state = TokenState::Revoked { at: now };
                Revoking::Revoked
            }
        }
    }

    pub(super) fn hashes(&self, session: &SessionKey) -> Vec<TokenHash> {
        self.sessions.get(session).map(|session| session.tokens.clone()).unwrap_or_default()
    }

    pub(super) fn named(&self, session: &SessionKey, prefix: &str) -> Option<TokenHash> {
        self.sessions.get(session)?.tokens.iter().find(|hash| hash.prefix() == prefix).copied()
    }

    pub(super) fn tokens(&self, session: &SessionKey, after: Option<&str>, limit: usize) -> Vec<TokenRecord> {
        let hashes = self.hashes(session);
        let begin = after.map_or(0, |after| {
            // After one that is gone there is nothing: the reader begins anew.
            hashes.iter().position(|hash| hash.prefix() == after).map_or(hashes.len(), |at| at + 1)
        });
        hashes.iter().skip(begin).take(limit).filter_map(|hash| self.tokens.get(hash).cloned()).collect()
    }

    pub(super) fn sessions_named(&self, id: &str) -> Vec<SessionKey> {
        let mut named: Vec<_> = self.sessions.keys().filter(|key| *key.session == *id).cloned().collect();
        named.sort_by(|left, right| left.tenant.cmp(&right.tenant));
        named
    }

    pub(super) fn messages(&self, session: &SessionKey, after: Option<MessageId>, limit: usize) -> Vec<InboxMessage> {
        let inbox = self.sessions.get(session).into_iter().flat_map(|session| &session.inbox);
        inbox.filter(|message| Some(message.id) > after).take(limit).cloned().collect()
    }

    pub(super) fn take(
        &mut self,
        session: &SessionKey,
        after: Option<MessageId>,
        limit: usize,
        to: InboxState,
    ) -> Vec<InboxMessage> {
        let inbox = self.sessions.get_mut(session).into_iter().flat_map(|session| &mut session.inbox);
        let waiting = inbox.filter(|message| message.state == InboxState::Waiting && Some(message.id) > after);
        let taken: Vec<_> = waiting
            .take(limit)
            .map(|message| {
                message.state = to;
                message.clone()
            })
            .collect();
        self.waiting -= taken.len();
        taken
    }

    pub(super) fn mark(&mut self, session: &SessionKey, id: MessageId, from: InboxState, to: InboxState) -> bool {
        let mut inbox = self.sessions.get_mut(session).into_iter().flat_map(|session| &mut session.inbox);
        let Some(message) = inbox.find(|message| message.id == id && message.state == from) else { return false };
        message.state = to;
        self.waiting -= usize::from(from == InboxState::Waiting);
        self.waiting += usize::from(to == InboxState::Waiting);
        true
    }

    pub(super) fn sweep(&mut self, tombstone: Duration, now: Timestamp) -> usize {
        let passed = |since: Timestamp, time: Duration| since.after(time) <= now;
        let tokens = self.remove_tokens(|token| token.ended(now).is_some_and(|end| passed(end, tombstone)));
        let messages = self.remove_messages(|_, message| match message.state {
            InboxState::Waiting => passed(message.received_at, MAX_MESSAGE_AGE),
            _ => passed(message.received_at, tombstone),
        });
        tokens + messages
    }

    pub(super) fn forget(&mut self, session: &SessionKey) {
        self.remove_tokens(|token| token.session == *session);
        self.remove_messages(|of, _| of == session);
    }

    pub(super) fn has_waiting(&self, session: &SessionKey) -> bool {
        let inbox = self.sessions.get(session).map(|session| &session.inbox);
        inbox.is_some_and(|inbox| inbox.iter().any(|message| message.state == InboxState::Waiting))
    }

    pub(super) fn open_tokens(&self, session: &SessionKey, now: Timestamp) -> usize {
        let hashes = self.sessions.get(session).into_iter().flat_map(|session| &session.tokens);
        hashes.filter_map(|hash| self.tokens.get(hash)).filter(|token| token.ended(now).is_none()).count()
    }

    fn remove_tokens(&mut self, gone: impl Fn(&TokenRecord) -> bool) -> usize {
        let before = self.tokens.len();
        self.tokens.retain(|_, token| !gone(token));
        let tokens = &self.tokens;
        if tokens.len() < before {
            self.sessions.values_mut().for_each(|session| session.tokens.retain(|hash| tokens.contains_key(hash)));
            self.drop_empty();
        }
        before - self.tokens.len()
    }

    fn remove_messages(&mut self, gone: impl Fn(&SessionKey, &InboxMessage) -> bool) -> usize {
        let (mut removed, mut waiting, mut bytes) = (0, 0, 0);
        for (key, session) in &mut self.sessions {
            session.inbox.retain(|message| {
                let gone = gone(key, message);
                if gone {
                    removed += 1;
                    waiting += usize::from(message.state == InboxState::Waiting);
                    bytes += size(message);
                }
                !gone
            });
        }
        self.waiting -= waiting;
        self.bytes -= bytes;
        if removed > 0 {
            self.drop_empty();
        }
        removed
    }

    fn drop_empty(&mut self) {
        self.sessions.retain(|_, session| !session.tokens.is_empty() || !session.inbox.is_empty());
    }
}
