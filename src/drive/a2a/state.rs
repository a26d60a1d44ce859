//! What is remembered of agents and their tasks.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::hooks::Occasion;
use crate::id::{Digest, Hasher};
use crate::ledger::bounded;

/// Tasks that are remembered, ended ones included, so that their end is told once. The least recently seen goes first.
const TASKS: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");
/// Conversations whose session has another name than their own.
const CONTEXTS: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");
/// Agents whose names were learned from their cards.
const AGENTS: NonZeroUsize = NonZeroUsize::new(1_000).expect("not zero");
/// A longer name of an agent is not learned.
const MAX_NAME_BYTES: usize = 1_024;

/// What is remembered.
pub(in crate::drive) struct State {
    maps: Mutex<Maps>,
}

struct Maps {
    tasks: LruCache<Digest, Progress>,
    contexts: LruCache<Digest, Arc<str>>,
    agents: LruCache<Digest, Arc<str>>,
}

enum Progress {
    /// It goes on; what its events have in common.
    Runs(Arc<Occasion>),
    /// Its end was told.
    Over,
}

/// What is known of a task that ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// It was seen to begin.
    Known(Arc<Occasion>),
    /// It began before it could be seen.
    Unknown,
    /// It has ended before.
    Before,
}

impl Default for State {
    fn default() -> Self {
        State { maps: Mutex::new(Maps { tasks: bounded(TASKS), contexts: bounded(CONTEXTS), agents: bounded(AGENTS) }) }
    }
}

impl State {
    fn maps(&self) -> MutexGuard<'_, Maps> {
        // No code under the lock can leave it half changed.
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task is seen; `true` for the first who sees it.
    pub(super) fn begin(&self, task: Digest, occasion: impl FnOnce() -> Occasion) -> bool {
        let mut maps = self.maps();
        if maps.tasks.get(&task).is_some() {
            return false;
        }
        maps.tasks.put(task, Progress::Runs(Arc::new(occasion())));
        true
    }

    /// Whether a task was seen.
    pub(super) fn knows(&self, task: &Digest) -> bool {
        self.maps().tasks.get(task).is_some()
    }

    /// A task has ended. Of several who see it, one is told what it was.
    pub(super) fn end(&self, task: Digest) -> Ended {
        match self.maps().tasks.put(task, Progress::Over) {
            Some(Progress::Runs(occasion)) => Ended::Known(occasion),
            Some(Progress::Over) => Ended::Before,
            None => Ended::Unknown,
        }
    }

    /// The same for a task that must have been seen to begin.
    pub(super) fn end_known(&self, task: Digest) -> Ended {
        match self.maps().tasks.get_mut(&task) {
            Some(progress) => match std::mem::replace(progress, Progress::Over) {
                Progress::Runs(occasion) => Ended::Known(occasion),
                Progress::Over => Ended::Before,
            },
            None => Ended::Unknown,
        }
    }

    /// A conversation belongs to that session.
    pub(super) fn join(&self, context: Digest, session: Arc<str>) {
        self.maps().contexts.put(context, session);
    }

    /// The session that a conversation belongs to, unless it is the one of its own name.
    pub(super) fn session(&self, context: &Digest) -> Option<Arc<str>> {
        self.maps().contexts.get(context).cloned()
    }

    /// The agent at a path of a route has that name.
    pub(super) fn learn(&self, route: &str, path: &str, name: &str) {
        if name.len() <= MAX_NAME_BYTES {
            self.maps().agents.put(agent_key(route, path), name.into());
        }
    }

    /// The name of the agent that a path of a route leads to, if a card told it: of several agents, one below whose path it is.
    pub(super) fn agent(&self, route: &str, path: &str) -> Option<Arc<str>> {
        let mut maps = self.maps();
        let mut path = path.trim_end_matches('/');
        loop {
            if let Some(name) = maps.agents.get(&agent_key(route, path)) {
                return Some(name.clone());
            }
            path = path.rsplit_once('/')?.0;
        }
    }
}

fn agent_key(route: &str, path: &str) -> Digest {
    Hasher::new().with(b"agent").with(route.as_bytes()).with(path.as_bytes()).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{Event, Plane};
    use crate::id::SessionKey;

    fn occasion() -> Occasion {
        Occasion::new(Event::SubagentStart, SessionKey { tenant: "t".into(), session: "s".into() }, Plane::Tool, "r")
    }

    #[test]
    fn a_task_begins_once_and_ends_once() {
        let state = State::default();
        let task = Digest::of(b"t");
        assert!(!state.knows(&task));
        assert!(state.begin(task, occasion) && !state.begin(task, occasion));
        assert!(state.knows(&task));
        assert_eq!(state.end(task), Ended::Known(Arc::new(occasion())));
        assert_eq!((state.end(task), state.end_known(task)), (Ended::Before, Ended::Before));
        assert!(!state.begin(task, occasion));
        // In a list there may be many that nobody waits for.
        let other = Digest::of(b"u");
        assert_eq!(
            (state.end_known(other), state.end(other), state.end(other)),
            (Ended::Unknown, Ended::Unknown, Ended::Before)
        );
    }

    #[test]
    fn the_oldest_task_is_forgotten() {
        let state = State::default();
        let task = |number: usize| Digest::of(&number.to_le_bytes());
        for number in 0..=TASKS.get() {
            assert!(state.begin(task(number), occasion));
        }
        assert!(!state.begin(task(1), occasion));
        assert!(state.begin(task(0), occasion), "a forgotten task is a new one");
    }

    #[test]
    fn conversations_and_agents_are_bounded() {
        let state = State::default();
        let context = |number: usize| Digest::of(&number.to_le_bytes());
        for number in 0..=CONTEXTS.get() {
            state.join(context(number), "s".into());
        }
        assert!(state.session(&context(0)).is_none() && state.session(&context(1)).is_some());
        for number in 0..=AGENTS.get() {
            state.learn("r", &format!("/{number}"), "name");
        }
        assert!(state.agent("r", "/0").is_none() && state.agent("r", "/1").is_some());
        state.learn("r", "/long", &"n".repeat(MAX_NAME_BYTES + 1));
        assert!(state.agent("r", "/long").is_none());
    }

    #[test]
    fn an_agent_is_known_below_its_path() {
        let state = State::default();
        state.learn("r", "", "all");
        state.learn("r", "/billing", "billing");
        for (path, name) in
            [("/", "all"), ("/rpc", "all"), ("/billing", "billing"), ("/billing/v1/", "billing"), ("/billings", "all")]
        {
            assert_eq!(state.agent("r", path).as_deref(), Some(name), "{path}");
        }
        assert!(state.agent("other", "/billing").is_none());
    }
}
