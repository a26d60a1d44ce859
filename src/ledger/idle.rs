//! Forgetting the sessions that are idle longest, without a look at all of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::store::Ledger;
use crate::id::SessionKey;

/// How many sessions are looked at each time that one is used: few enough not to be felt, and many enough that what has to
/// go is gone soon.
const LOOKED_AT: usize = 64;

/// When a session was seen when it was queued, and its number, which tells those of the same moment apart.
pub(super) type IdleKey = (Instant, u64);

/// The sessions in the order in which they were seen last, each once. Using a session does not move it: whoever takes the
/// first one finds out whether it was used since, and then puts it back where it belongs.
#[derive(Debug, Default)]
pub(super) struct IdleQueue(Mutex<BTreeMap<IdleKey, SessionKey>>);

impl IdleQueue {
    /// The innermost lock: an entry of the sessions may be held around it, and within it nothing is taken.
    fn queue(&self) -> MutexGuard<'_, BTreeMap<IdleKey, SessionKey>> {
        // No code under the lock can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, at: IdleKey, key: SessionKey) {
        self.queue().insert(at, key);
    }

    pub(super) fn remove(&self, at: IdleKey) {
        self.queue().remove(&at);
    }

    /// Takes the first one, if it is wanted with the moment at which it was seen.
    fn take_first(&self, wanted: impl FnOnce(Instant) -> bool) -> Option<(IdleKey, SessionKey)> {
        let mut queue = self.queue();
        let first = queue.first_entry()?;
        if wanted(first.key().0) { Some(first.remove_entry()) } else { None }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.queue().len()
    }
}

impl Ledger {
    /// Forgets sessions that were idle for too long and, when one came, the longest idle ones of too many. What could not be
    /// looked at now is left to the next time; so there may be a few sessions more than the limit says, since as many are
    /// looked at for each that comes.
    pub(super) fn make_room(&self, now: Instant, new: bool) {
        let idle = |seen| now.saturating_duration_since(seen) >= self.limits.session_idle;
        for _ in 0..LOOKED_AT {
            // Counted each time: others make room, too.
            let over = new && self.sessions.len() > self.limits.max_sessions;
            let Some((at, key)) = self.idle.take_first(|seen| over || idle(seen)) else { return };
            self.sessions.remove_if_mut(&key, |key, session| {
                if session.idle_key() != at {
                    // Another one under the same name, which has its own entry.
                    return false;
                }
                let unused = session.seen == at.0;
                if !unused {
                    session.queued = session.seen;
                    self.idle.put(session.idle_key(), key.clone());
                }
                unused
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ledger::Sighting;
    use crate::limits::Limits;
    use crate::time::Timestamp;

    const IDLE: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    fn key(session: &str) -> SessionKey {
        SessionKey { tenant: "default".into(), session: session.into() }
    }

    fn ledger(max_sessions: usize) -> Ledger {
        Ledger::new(Limits { max_sessions, session_idle: IDLE, ..Limits::default() })
    }

    /// Uses a session as whatever tells its time does.
    fn note(ledger: &Ledger, session: &str, now: Instant) {
        ledger.note(&key(session), &Sighting::at(now, Timestamp::from_unix_millis(0)));
        assert_eq!(ledger.idle.len(), ledger.sessions.len());
    }

    fn known(ledger: &Ledger, session: &str) -> bool {
        ledger.record(&key(session)).is_some()
    }

    #[test]
    fn a_session_that_is_idle_too_long_is_forgotten_when_another_is_used() {
        let (ledger, start) = (ledger(1_000), Instant::now());
        note(&ledger, "idle", start);
        note(&ledger, "used", start);
        note(&ledger, "used", start + IDLE - SECOND);
        note(&ledger, "other", start + IDLE - SECOND);
        assert!(known(&ledger, "idle"), "its time is not over");
        note(&ledger, "other", start + IDLE);
        assert!(!known(&ledger, "idle") && known(&ledger, "used"));
        note(&ledger, "other", start + IDLE * 2 - SECOND);
        assert!(!known(&ledger, "used") && known(&ledger, "other"));
    }

    #[test]
    fn a_few_are_forgotten_at_a_time_and_who_comes_back_before_that_begins_anew() {
        let (ledger, start) = (ledger(1_000), Instant::now());
        let many = 3 * LOOKED_AT;
        for session in 0..many {
            note(&ledger, &session.to_string(), start);
        }
        assert!(ledger.archive(&key("150"), true));
        note(&ledger, "150", start + IDLE);
        assert_eq!(ledger.sessions.len(), many - LOOKED_AT);
        assert!(!ledger.record(&key("150")).unwrap().archived, "it is another session");
        for _ in 0..2 {
            note(&ledger, "150", start + IDLE);
        }
        assert_eq!(ledger.sessions.len(), 1);
    }

    #[test]
    fn of_too_many_those_go_that_were_used_longest_ago() {
        let (ledger, start) = (ledger(2), Instant::now());
        note(&ledger, "one", start);
        note(&ledger, "two", start + SECOND);
        note(&ledger, "one", start + SECOND * 2);
        note(&ledger, "three", start + SECOND * 3);
        assert!(known(&ledger, "one") && !known(&ledger, "two") && known(&ledger, "three"));
    }

    #[test]
    fn sessions_that_are_all_in_use_stay_near_the_limit() {
        let (most, start) = (10 * LOOKED_AT, Instant::now());
        let ledger = ledger(most);
        for second in 0..2 {
            for session in 0..most {
                note(&ledger, &session.to_string(), start + SECOND * second);
            }
        }
        for session in 0..most {
            note(&ledger, &format!("new {session}"), start + SECOND * 2);
            assert!(ledger.sessions.len() <= most + 10, "{}", ledger.sessions.len());
        }
        assert_eq!(ledger.sessions.len(), most);
    }

    #[test]
    fn a_deleted_session_is_not_waited_for() {
        let (ledger, start) = (ledger(1_000), Instant::now());
        note(&ledger, "one", start);
        ledger.forget(&key("one"));
        assert_eq!(ledger.idle.len(), 0);
    }
}
