//! The threads of one session.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lru::LruCache;

use super::thread::{Thread, bounded};
use crate::id::ThreadKey;
use crate::limits::MAX_SESSION_AGENTS;

const AGENTS: NonZeroUsize = NonZeroUsize::new(MAX_SESSION_AGENTS).expect("not zero");

/// The agent's own thread, which stays as long as the session, and those of its sub-agents. Clients name sub-agents as they
/// like, so of these there are only so many: the one that was used longest ago makes room.
#[derive(Debug)]
pub(super) struct Threads {
    main: Option<Arc<Thread>>,
    agents: LruCache<Arc<str>, Arc<Thread>>,
    /// Shared with every thread that there ever was: a request may still have one that made room.
    gone: Arc<AtomicBool>,
}

impl Default for Threads {
    fn default() -> Self {
        Threads { main: None, agents: bounded(AGENTS), gone: Arc::default() }
    }
}

impl Threads {
    /// The thread of that key, which begins when there is none.
    pub(super) fn open(&mut self, key: &ThreadKey) -> Arc<Thread> {
        let begin = || Arc::new(Thread::new(key.clone(), self.gone.clone()));
        match &key.agent {
            None => self.main.get_or_insert_with(begin).clone(),
            Some(agent) => self.agents.get_or_insert(agent.clone(), begin).clone(),
        }
    }

    /// Marks all of them as those of a session that was deleted.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.main.is_some()) + self.agents.len()
    }
}
