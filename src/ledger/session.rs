//! What is remembered of a session as a whole.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use lru::LruCache;
use serde::Serialize;
use tokio::sync::OnceCell;

use super::idle::IdleKey;
use super::tasks::Tasks;
use super::thread::{Once, bounded};
use super::threads::Threads;
use crate::id::{Digest, SessionKey};
use crate::time::Timestamp;

/// How many delegated prompts of one session are remembered.
const DELEGATIONS: NonZeroUsize = NonZeroUsize::new(1024).expect("not zero");

/// One session.
#[derive(Debug)]
pub(super) struct Session {
    /// Grows from session to session: lists are in its order.
    pub(super) number: u64,
    pub(super) seen: Instant,
    /// When it had been seen when it was queued to be forgotten.
    pub(super) queued: Instant,
    created_at: Timestamp,
    seen_at: Timestamp,
    pub(super) archived: bool,
    client: Option<&'static str>,
    model: Option<Arc<str>>,
    turns: u64,
    last_turn: Option<TurnMark>,
    /// Whether its start was dispatched.
    pub(super) started: Once<()>,
    pub(super) deletion: Arc<Deletion>,
    pub(super) tasks: Tasks,
    pub(super) threads: Threads,
    /// Digests of the prompts that calls handed to sub-agents, with the agent that was seen to have it.
    pub(super) delegated: LruCache<Digest, Option<Arc<str>>>,
}

/// What happens once in a session's deletion, however many ask for it at the same time.
#[derive(Debug, Default)]
pub(crate) struct Deletion {
    /// Handlers were told of its end.
    pub(crate) told: OnceCell<()>,
    /// Nothing of it is left.
    pub(crate) done: OnceCell<()>,
}

/// Tells the turn that a request begins from the one before, without looking at the whole history.
pub(crate) type TurnMark = u64;

/// What is seen of a session at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting<'a> {
    /// When, to tell how long it is idle.
    pub(crate) now: Instant,
    /// When, to be shown.
    pub(crate) at: Timestamp,
    /// The agent's program, when it is known.
    pub(crate) client: Option<&'static str>,
    /// The model that the agent itself asks.
    pub(crate) model: Option<&'a Arc<str>>,
    /// The turn that begins with it.
    pub(crate) turn: Option<TurnMark>,
}

impl Sighting<'_> {
    /// One that tells nothing but the time.
    pub(crate) fn at(now: Instant, at: Timestamp) -> Self {
        Sighting { now, at, client: None, model: None, turn: None }
    }
}

/// A session as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SessionRecord {
    /// Its id, unique within its tenant.
    pub id: Arc<str>,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// When it was first seen: its first request, or the first callback or task that was asked for it.
    pub created_at: Timestamp,
    /// When it was last seen in one of these ways.
    pub last_seen_at: Timestamp,
    /// Whether it was put away. That changes nothing but how it is shown.
    pub archived: bool,
    /// The agent's program, when hookgate knows it by its `user-agent`: `claude-code`, `codex` or `opencode`.
    pub agent: Option<&'static str>,
    /// The model that the agent asked last; not those of its sub-agents, titles and summaries.
    pub model: Option<Arc<str>>,
    /// How many turns of the agent's own conversation were seen: prompts that wanted an answer, repetitions of a request
    /// not counted.
    pub turns: u64,
}

impl Session {
    pub(super) fn new(number: u64, sighting: &Sighting<'_>) -> Self {
        Session {
            number,
            seen: sighting.now,
            queued: sighting.now,
            created_at: sighting.at,
            seen_at: sighting.at,
            archived: false,
            client: None,
            model: None,
            turns: 0,
            last_turn: None,
            started: Once::default(),
            deletion: Arc::default(),
            tasks: Tasks::default(),
            threads: Threads::default(),
            delegated: bounded(DELEGATIONS),
        }
    }

    pub(super) fn see(&mut self, sighting: &Sighting<'_>) {
        // Of two requests the later one may be here first.
        self.seen = self.seen.max(sighting.now);
        self.seen_at = self.seen_at.max(sighting.at);
        self.client = sighting.client.or(self.client);
        if let Some(model) = sighting.model
            && self.model.as_ref() != Some(model)
        {
            self.model = Some(model.clone());
        }
        if sighting.turn.is_some() && self.last_turn != sighting.turn {
            self.last_turn = sighting.turn;
            self.turns += 1;
        }
    }

    /// Where it is among those to be forgotten.
    pub(super) fn idle_key(&self) -> IdleKey {
        (self.queued, self.number)
    }

    pub(super) fn record(&self, key: &SessionKey) -> SessionRecord {
        SessionRecord {
            id: key.session.clone(),
            tenant: key.tenant.clone(),
            created_at: self.created_at,
            last_seen_at: self.seen_at,
            archived: self.archived,
            agent: self.client,
            model: self.model.clone(),
            turns: self.turns,
        }
    }
}
