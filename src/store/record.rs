//! What is stored, as every store shows it.

use std::fmt;
use std::str::FromStr;

use crate::id::{Digest, SessionKey};
use crate::time::Timestamp;

/// How many hex digits stand for a token wherever it is shown.
const PREFIX_DIGITS: usize = 8;

/// A token as it is stored: a keyed hash, from which nobody gets the token back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of these bytes, as a store reads it back.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        TokenHash(bytes)
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The eight hex digits that stand for the token in lists, logs and records.
    ///
    /// ```
    /// use hookgate::store::TokenHash;
    /// assert_eq!(TokenHash::from_bytes([0xa5; 32]).prefix(), "a5a5a5a5");
    /// ```
    pub fn prefix(&self) -> String {
        self.0.iter().take(PREFIX_DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The prefix.
impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.prefix())
    }
}

/// Names one attempt to deliver: only the attempt that holds a token may settle or release it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimId(u128);

impl ClaimId {
    /// A new one.
    pub fn random() -> Self {
        ClaimId(uuid::Uuid::new_v4().as_u128())
    }

    /// As a store reads it back.
    pub fn from_u128(id: u128) -> Self {
        ClaimId(id)
    }

    /// What to store.
    pub fn as_u128(self) -> u128 {
        self.0
    }
}

/// A token to be issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Its hash.
    pub hash: TokenHash,
    /// Whose session the callback reaches.
    pub session: SessionKey,
    /// What is waited for, in the words of who asked.
    pub purpose: Option<String>,
    /// From this moment on it is expired.
    pub expires_at: Timestamp,
}

/// A token and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its hash.
    pub hash: TokenHash,
    /// Whose session the callback reaches.
    pub session: SessionKey,
    /// What is waited for, in the words of who asked.
    pub purpose: Option<String>,
    /// When it was issued.
    pub created_at: Timestamp,
    /// From this moment on it is expired, unless it was delivered before. Nothing moves it.
    pub expires_at: Timestamp,
    /// What became of it.
    pub state: TokenState,
}

impl TokenRecord {
    /// When it ended; `None` while it can still be delivered. A claim that was made in time outlives the expiry.
    ///
    /// ```
    /// # use hookgate::{id::SessionKey, store::*, time::Timestamp};
    /// let at = Timestamp::from_unix_millis;
    /// let mut token = TokenRecord {
    ///     hash: TokenHash::from_bytes([0; 32]),
    ///     session: SessionKey { tenant: "default".into(), session: "s".into() },
    ///     purpose: None,
    ///     created_at: at(0),
    ///     expires_at: at(1_000),
    ///     state: TokenState::Open,
    /// };
    /// assert_eq!((token.ended(at(999)), token.ended(at(1_000))), (None, Some(at(1_000))));
    /// token.state = TokenState::Claimed { claim: ClaimId::random(), until: at(5_000) };
    /// assert_eq!((token.ended(at(4_999)), token.ended(at(5_000))), (None, Some(at(5_000))));
    /// ```
    pub fn ended(&self, now: Timestamp) -> Option<Timestamp> {
        match self.state {
            TokenState::Open => Some(self.expires_at).filter(|end| *end <= now),
            TokenState::Claimed { until, .. } => Some(self.expires_at.max(until)).filter(|end| *end <= now),
            TokenState::Delivered { at, .. } | TokenState::Revoked { at } => Some(at),
        }
    }

    /// Whether an attempt to deliver may claim it.
    pub fn is_free(&self, now: Timestamp) -> bool {
        let held = match self.state {
            TokenState::Open => false,
            TokenState::Claimed { until, .. } => until > now,
            TokenState::Delivered { .. } | TokenState::Revoked { .. } => true,
        };
        !held && self.expires_at > now
    }
}

/// What became of a token. That it expired is no state: it follows from the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    /// Nothing yet.
    Open,
    /// An attempt to deliver is under way. When it has not ended by `until`, whoever made it is taken for dead.
    Claimed {
        /// Whose attempt it is.
        claim: ClaimId,
        /// When the lease lapses.
        until: Timestamp,
    },
    /// Its message is in the inbox.
    Delivered {
        /// Since when.
        at: Timestamp,
        /// Names the body that was delivered, so that a repetition can be told from another message.
        body: Digest,
    },
    /// It was taken back.
    Revoked {
        /// When.
        at: Timestamp,
    },
}

/// The id of a message: unique within its session, and growing in the order in which messages became visible there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageId(i64);

impl MessageId {
    /// As a store reads it back. Below 2^53, so that every JSON reader keeps it.
    pub fn from_i64(id: i64) -> Self {
        MessageId(id)
    }

    /// What to store.
    pub fn as_i64(self) -> i64 {
        self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for MessageId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(MessageId)
    }
}

impl serde::Serialize for MessageId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A message to be stored.
#[derive(Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// When its callback came.
    pub received_at: Timestamp,
    /// The purpose of its token.
    pub purpose: Option<String>,
    /// The callback's media type, as the worker gave it.
    pub content_type: Option<String>,
    /// The message as the session gets it; it shows the token, which is spent by then.
    pub text: String,
    /// The same with the token's prefix in its place.
    pub masked_text: String,
    /// [`InboxState::Waiting`], or [`InboxState::Taken`] when something else took it over already.
    pub state: InboxState,
}

/// Without the text.
impl fmt::Debug for NewMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewMessage").field("received_at", &self.received_at).finish_non_exhaustive()
    }
}

/// A message of an inbox.
#[derive(Clone, PartialEq, Eq)]
pub struct InboxMessage {
    /// Its id.
    pub id: MessageId,
    /// When its callback came.
    pub received_at: Timestamp,
    /// The purpose of its token.
    pub purpose: Option<String>,
    /// The callback's media type, as the worker gave it.
    pub content_type: Option<String>,
    /// The message as the session gets it. It shows the token, which is spent.
    pub text: String,
    /// The same with the token's prefix in its place: for handlers, and for whatever else is not the session.
    pub masked_text: String,
    /// What became of it.
    pub state: InboxState,
}

/// Without the text.
impl fmt::Debug for InboxMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("InboxMessage");
        shown.field("id", &self.id).field("received_at", &self.received_at).field("state", &self.state);
        shown.finish_non_exhaustive()
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum InboxState {
    /// Nobody has it yet.
    Waiting,
    /// It is part of the conversation with the model.
    Injected,
    /// A client of the inbox, or the controller, has it.
    Taken,
    /// A policy kept it from the model, which got a notice instead.
    Withheld,
}

impl InboxState {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            InboxState::Waiting => "waiting",
            InboxState::Injected => "injected",
            InboxState::Taken => "taken",
            InboxState::Withheld => "withheld",
        }
    }

    /// The state of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [InboxState::Waiting, InboxState::Injected, InboxState::Taken, InboxState::Withheld]
            .into_iter()
            .find(|state| state.name() == name)
    }
}
