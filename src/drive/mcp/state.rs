//! What is remembered between the requests of MCP clients.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lru::LruCache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::drive::tool::ToolCall;
use crate::hooks::Occasion;
use crate::id::{Digest, SessionKey};
use crate::ledger::bounded;

/// How many calls, tasks, rounds and sessions are remembered, of each; the least recently used goes first.
const ENTRIES: NonZeroUsize = NonZeroUsize::new(10_000).expect("not zero");
/// How many clients' lists of tools are remembered.
const LISTS: NonZeroUsize = NonZeroUsize::new(1_000).expect("not zero");
/// How many answers are read on at once after their clients have left. One more ends with its client.
const DETACHED: usize = 1_024;

/// A call whose outcome is not known yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) call: ToolCall,
    /// What its events have in common.
    pub(super) occasion: Occasion,
    /// What the model is to read beside the result.
    pub(super) context: Vec<String>,
    /// The arguments as the client gave them.
    pub(super) given: Bytes,
    /// The id that the model's API gave the call, when the model's answer was seen here too.
    pub(super) model_id: Option<Arc<str>>,
    /// What identifies the call when it goes on in another round.
    pub(super) round: Digest,
    /// What the arguments were replaced by.
    pub(super) replacement: Option<Bytes>,
}

/// The schemas of a server's tools, by their names.
pub(super) type Schemas = HashMap<String, Option<Bytes>>;

/// What is remembered.
pub(in crate::drive) struct State {
    maps: Mutex<Maps>,
    detached: Arc<Semaphore>,
}

struct Maps {
    calls: LruCache<Digest, Arc<Pending>>,
    tasks: LruCache<Digest, Arc<Pending>>,
    rounds: LruCache<Digest, Arc<Pending>>,
    sessions: LruCache<Digest, ()>,
    lists: LruCache<Digest, Arc<Schemas>>,
}

impl Default for State {
    fn default() -> Self {
        State {
            maps: Mutex::new(Maps {
                calls: bounded(ENTRIES),
                tasks: bounded(ENTRIES),
                rounds: bounded(ENTRIES),
                sessions: bounded(ENTRIES),
                lists: bounded(LISTS),
            }),
            detached: Arc::new(Semaphore::new(DETACHED)),
        }
    }
}

impl State {
    fn maps(&self) -> MutexGuard<'_, Maps> {
        // No code under the lock can leave it half changed.
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Allows one more answer to be read on without its client.
    pub(super) fn detach(&self) -> Option<OwnedSemaphorePermit> {
        self.detached.clone().try_acquire_owned().ok()
    }

    /// A call of a session is under way: its result may come on any of the session's streams.
    pub(super) fn begin(&self, key: Digest, pending: Arc<Pending>) {
        self.maps().calls.put(key, pending);
    }

    /// Takes a call whose answer is there.
    pub(super) fn end(&self, key: &Digest) -> Option<Arc<Pending>> {
        self.maps().calls.pop(key)
    }

    /// A call goes on as a task.
    pub(super) fn begin_task(&self, key: Digest, pending: Arc<Pending>) {
        self.maps().tasks.put(key, pending);
    }

    /// The call that goes on as that task.
    pub(super) fn task(&self, key: &Digest) -> Option<Arc<Pending>> {
        self.maps().tasks.get(key).cloned()
    }

    /// Takes a task that is over: of several who learn it, one tells.
    pub(super) fn end_task(&self, key: &Digest) -> Option<Arc<Pending>> {
        self.maps().tasks.pop(key)
    }

    /// A call goes on in another round.
    pub(super) fn begin_round(&self, key: Digest, pending: Arc<Pending>) {
        self.maps().rounds.put(key, pending);
    }

    /// Takes the call that this round goes on from.
    pub(super) fn next_round(&self, key: &Digest) -> Option<Arc<Pending>> {
        self.maps().rounds.pop(key)
    }

    /// A session began.
    pub(super) fn open_session(&self, key: Digest) {
        self.maps().sessions.put(key, ());
    }

    /// A session is over; `true` for the first who says it.
    pub(super) fn close_session(&self, key: &Digest) -> bool {
        self.maps().sessions.pop(key).is_some()
    }

    /// Forgets what is under way for a session: what comes of it is told to nobody.
    pub(in crate::drive) fn forget(&self, session: &SessionKey) {
        let mut maps = self.maps();
        let Maps { calls, tasks, rounds, .. } = &mut *maps;
        for kept in [calls, tasks, rounds] {
            let of_it = kept.iter().filter(|(_, pending)| pending.occasion.session == *session);
            let keys: Vec<Digest> = of_it.map(|(key, _)| *key).collect();
            keys.iter().for_each(|key| drop(kept.pop(key)));
        }
    }

    /// The schemas of the tools that this client was told of.
    pub(super) fn list(&self, key: &Digest) -> Option<Arc<Schemas>> {
        self.maps().lists.get(key).cloned()
    }

    /// Learns of tools. A page adds to those before.
    pub(super) fn learn(&self, key: Digest, tools: impl IntoIterator<Item = (String, Option<Bytes>)>) {
        let mut maps = self.maps();
        let known = maps.lists.get_or_insert_mut(key, Arc::default);
        Arc::make_mut(known).extend(tools);
    }

    /// The tools have changed.
    pub(super) fn forget_list(&self, key: &Digest) {
        self.maps().lists.pop(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::origin::Origin;
    use crate::hooks::Event;

    #[test]
    fn what_is_under_way_goes_with_its_session() {
        let state = State::default();
        let session = |id: &str| SessionKey { tenant: "default".into(), session: id.into() };
        for id in ["one", "two"] {
            let pending = Arc::new(Pending {
                call: ToolCall { name: "read".into(), server: None, id: "1".into(), input: Bytes::from_static(b"{}") },
                occasion: Origin::api().occasion(Event::PreToolUse, &session(id), None),
                context: Vec::new(),
                given: Bytes::from_static(b"{}"),
                model_id: None,
                round: Digest::EMPTY,
                replacement: None,
            });
            state.begin(Digest::of(id.as_bytes()), pending.clone());
            state.begin_task(Digest::of(id.as_bytes()), pending.clone());
            state.begin_round(Digest::of(id.as_bytes()), pending);
        }
        state.forget(&session("one"));
        for (id, there) in [("one", false), ("two", true)] {
            let key = Digest::of(id.as_bytes());
            assert_eq!(state.end(&key).is_some(), there);
            assert_eq!(state.end_task(&key).is_some(), there);
            assert_eq!(state.next_round(&key).is_some(), there);
        }
    }
}
