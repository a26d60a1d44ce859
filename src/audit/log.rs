//! The log in memory.

use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::query::PAGE;
use super::{AuditQuery, AuditRecord, Page};
use crate::id::{Digest, Hasher, SessionKey};
use crate::limits::MAX_HANDLER_TIMEOUT;
use crate::time::Timestamp;

/// The newest records of the sessions that were active last. Cheap to clone: all clones are one log.
///
/// It keeps at most `per_session` records of a session and `max_sessions` sessions; the session whose last record is
/// oldest is forgotten first.
#[derive(Clone, Debug)]
pub struct AuditLog {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    per_session: usize,
    max_sessions: usize,
    /// Tells the records of one process from another's made in the same millisecond.
    node: u32,
    state: Mutex<State>,
}

type Records = VecDeque<Arc<AuditRecord>>;

#[derive(Debug, Default)]
struct State {
    sessions: HashMap<SessionKey, Records>,
    /// The id of each session's newest record, so that the one to forget is the first.
    by_newest: BTreeMap<String, SessionKey>,
    last_millis: i64,
    sequence: u32,
    /// Sessions that were forgotten a moment ago, by their digests, and when.
    forgotten: VecDeque<(Digest, Timestamp)>,
}

/// A run of a handler that began before its session was forgotten ends at most this much later.
const LATEST: Duration = MAX_HANDLER_TIMEOUT.saturating_add(Duration::from_secs(10));
/// Sessions that are known to be forgotten at once; the oldest makes room, and late records of it are kept.
const MAX_FORGOTTEN: usize = 10_000;

impl AuditLog {
    /// An empty log; both bounds are at least 1.
    pub fn new(per_session: usize, max_sessions: usize) -> Self {
        let node = uuid::Uuid::new_v4().as_fields().0;
        AuditLog {
            inner: Arc::new(Inner {
                per_session: per_session.max(1),
                max_sessions: max_sessions.max(1),
                node,
                state: Mutex::default(),
            }),
        }
    }

    /// Adds a record and gives it its id.
    pub fn record(&self, record: AuditRecord) {
        self.record_at(record, Timestamp::now());
    }

    fn record_at(&self, mut record: AuditRecord, now: Timestamp) {
        let key = SessionKey { tenant: record.tenant.clone(), session: record.session_id.clone() };
        let mut state = self.state();
        if state.came_too_late(&key, record.started_at, now) {
            return;
        }
        let State { sessions, by_newest, last_millis, sequence, .. } = &mut *state;
        // Ids must sort as the records were made, whatever the wall clock does.
        if now.unix_millis() > *last_millis {
            (*last_millis, *sequence) = (now.unix_millis(), 0);
        } else {
            match sequence.checked_add(1) {
                Some(next) => *sequence = next,
                None => (*last_millis, *sequence) = (*last_millis + 1, 0),
            }
        }
        record.id = format!("{:012x}-{:08x}-{:08x}", *last_millis, *sequence, self.inner.node);
        let records = sessions.entry(key.clone()).or_default();
        if let Some(newest) = records.back() {
            by_newest.remove(&newest.id);
        }
        by_newest.insert(record.id.clone(), key);
        records.push_back(Arc::new(record));
        if records.len() > self.inner.per_session {
            records.pop_front();
        }
        if sessions.len() > self.inner.max_sessions
            && let Some((_, forgotten)) = by_newest.pop_first()
        {
            sessions.remove(&forgotten);
        }
    }

    /// A page of one session's records; empty when the session is not known.
    pub fn session(&self, key: &SessionKey, query: &AuditQuery) -> Page<AuditRecord> {
        let limit = query.limit.clamp(1, PAGE);
        let found = {
            let state = self.state();
            let records = state.sessions.get(key).into_iter().flat_map(|records| records.iter().rev());
            records.filter(|record| query.accepts(record)).take(limit + 1).cloned().collect()
        };
        Page::from_newest_first(found, limit)
    }

    /// A page of the records of all sessions.
    pub fn all(&self, query: &AuditQuery) -> Page<AuditRecord> {
        let limit = query.limit.clamp(1, PAGE);
        let state = self.state();
        let mut found = Vec::new();
        // Sessions are taken in by their newest record as the merge reaches it: a page touches few of many.
        let mut waiting = state.by_newest.iter().rev().peekable();
        let mut merging: BinaryHeap<Tail<'_>> = BinaryHeap::new();
        while found.len() <= limit {
            while let Some((newest, key)) = waiting.peek()
                && merging.peek().is_none_or(|top| top.id() < newest.as_str())
            {
                if let Some(records) = state.sessions.get(*key)
                    && let Some(last) = records.len().checked_sub(1)
                {
                    merging.push(Tail { records, at: last });
                }
                waiting.next();
            }
            let Some(mut top) = merging.peek_mut() else { break };
            let record = &top.records[top.at];
            if query.accepts(record) {
                found.push(record.clone());
            }
            match top.at.checked_sub(1) {
                Some(older) => top.at = older,
                None => drop(PeekMut::pop(top)),
            }
        }
        drop(merging);
        drop(state);
        Page::from_newest_first(found, limit)
    }

    /// The sessions of that id, one for each tenant that has it, in the tenants' order.
    pub fn sessions_named(&self, id: &str) -> Vec<SessionKey> {
        let mut named: Vec<_> = self.state().sessions.keys().filter(|key| *key.session == *id).cloned().collect();
        named.sort_by(|a, b| a.tenant.cmp(&b.tenant));
        named
    }

    /// Removes everything about a session. Records of what began before are not kept either, when they come later.
    pub fn forget(&self, key: &SessionKey) {
        self.forget_at(key, Timestamp::now());
    }

    fn forget_at(&self, key: &SessionKey, now: Timestamp) {
        let mut state = self.state();
        if state.forgotten.len() >= MAX_FORGOTTEN {
            state.forgotten.pop_front();
        }
        state.forgotten.push_back((digest(key), now));
        if let Some(records) = state.sessions.remove(key)
            && let Some(newest) = records.back()
        {
            state.by_newest.remove(&newest.id);
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // No code under the lock can leave it half changed in a way that matters to a reader.
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a record is of a session as it was before it was forgotten.
    fn came_too_late(&mut self, key: &SessionKey, began: Timestamp, now: Timestamp) -> bool {
        while self.forgotten.front().is_some_and(|(_, at)| at.after(LATEST) <= now) {
            self.forgotten.pop_front();
        }
        if self.forgotten.is_empty() {
            return false;
        }
        let key = digest(key);
        self.forgotten.iter().any(|(forgotten, at)| *forgotten == key && began <= *at)
    }
}

fn digest(key: &SessionKey) -> Digest {
    Hasher::new().with(key.tenant.as_bytes()).with(key.session.as_bytes()).finish()
}

/// What is left to merge of one session: its records up to `at`.
struct Tail<'a> {
    records: &'a Records,
    at: usize,
}

impl Tail<'_> {
    fn id(&self) -> &str {
        &self.records[self.at].id
    }
}

impl PartialEq for Tail<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Tail<'_> {}

impl PartialOrd for Tail<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Tail<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.id().cmp(other.id())
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
