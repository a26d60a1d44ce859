//! Sessions as a whole: their records, and the tasks in them.

use std::sync::Arc;

use super::session::{Deletion, Session, SessionRecord, Sighting};
use super::store::Ledger;
use super::tasks::{Beginning, Ending, Task, TaskStatus};
use crate::audit::Page;
use crate::id::{Digest, SessionKey, ThreadKey};

/// Which sessions are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionQuery {
    /// How many at most; more than 500, and none, count as 500.
    pub limit: Option<usize>,
    /// Only those after this place of the list: the `next` of a page. One that is no place begins nowhere.
    pub after: Option<u64>,
    /// Only those of this tenant.
    pub tenant: Option<String>,
}

impl SessionQuery {
    /// The most sessions of one page.
    pub const MOST: usize = 500;
}

impl Ledger {
    /// Takes note of a session that something was asked for; one that was never seen begins with it.
    pub(crate) fn note(&self, key: &SessionKey, sighting: &Sighting<'_>) {
        self.with_session(key, sighting, |_| ());
    }

    /// Looks at a session, which begins when there is none.
    fn with_session<T>(&self, key: &SessionKey, sighting: &Sighting<'_>, look: impl FnOnce(&mut Session) -> T) -> T {
        let (mut session, new) = self.session(key, sighting);
        session.see(sighting);
        let seen = look(&mut session);
        drop(session);
        self.make_room(sighting.now, new);
        seen
    }

    /// The record of a session.
    pub(crate) fn record(&self, key: &SessionKey) -> Option<SessionRecord> {
        self.sessions.get(key).map(|session| session.record(key))
    }

    /// A page of the sessions, the newest first: whoever asks for the next page misses none that was there.
    pub(crate) fn records(&self, query: &SessionQuery) -> Page<SessionRecord> {
        let limit = query.limit.unwrap_or(SessionQuery::MOST).clamp(1, SessionQuery::MOST);
        let wanted = |entry: &SessionKey| query.tenant.as_deref().is_none_or(|tenant| *entry.tenant == *tenant);
        let mut found: Vec<(u64, SessionRecord)> = Vec::new();
        let newest = |found: &mut Vec<(u64, SessionRecord)>| {
            found.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
            // One more tells that there is another page.
            found.truncate(limit + 1);
        };
        for session in self.sessions.iter() {
            if query.after.is_none_or(|after| session.number < after) && wanted(session.key()) {
                found.push((session.number, session.record(session.key())));
                if found.len() > 4 * (limit + 1) {
                    newest(&mut found);
                }
            }
        }
        newest(&mut found);
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(number, _)| number.to_string());
        Page { items: found.into_iter().map(|(_, record)| record).collect(), next }
    }

    /// The sessions of that id, one for each tenant that has it.
    pub(crate) fn named(&self, id: &str) -> Vec<SessionKey> {
        self.sessions.iter().map(|session| session.key().clone()).filter(|key| *key.session == *id).collect()
    }

    /// Puts a session away, or takes it out again; `false` when there is none.
    pub(crate) fn archive(&self, key: &SessionKey, archived: bool) -> bool {
        self.sessions.get_mut(key).map(|mut session| session.archived = archived).is_some()
    }

    /// Begins a task of a session; one that was never seen begins with it.
    pub(crate) fn begin_task(&self, key: &SessionKey, task: Task, sighting: &Sighting<'_>) -> Beginning {
        self.with_session(key, sighting, |session| session.tasks.begin(task))
    }

    /// Ends a task.
    pub(crate) fn end_task(&self, key: &SessionKey, id: &str, status: TaskStatus, sighting: &Sighting<'_>) -> Ending {
        let Some(mut session) = self.sessions.get_mut(key) else { return Ending::Unknown };
        session.see(sighting);
        session.tasks.end(id, status)
    }

    /// The turn of a task, whether it runs or ended.
    pub(crate) fn task_turn(&self, key: &SessionKey, id: &str) -> Option<Digest> {
        self.sessions.get(key)?.tasks.get(id).map(|task| task.turn)
    }

    /// What the model of a session's main conversation is to read next, as it is to read it. Of a session that is gone it is
    /// nothing.
    pub(crate) fn leave_context(&self, key: &SessionKey, texts: Vec<String>, sighting: &Sighting<'_>) {
        if !texts.is_empty() && self.sessions.contains_key(key) {
            self.use_it();
            self.open(&main_thread(key), sighting).0.bring_context(texts);
        }
    }

    /// What all who delete a session share; `None` when there is none.
    pub(crate) fn deletion(&self, key: &SessionKey) -> Option<Arc<Deletion>> {
        self.sessions.get(key).map(|session| session.deletion.clone())
    }

    /// The same for a session that others know of and this may not: it begins to be deleted.
    pub(crate) fn begin_deletion(&self, key: &SessionKey, sighting: &Sighting<'_>) -> Arc<Deletion> {
        self.with_session(key, sighting, |session| session.deletion.clone())
    }

    /// Lets no task begin in a session any more and interrupts those that run; gives these.
    pub(crate) fn close_tasks(&self, key: &SessionKey) -> Vec<Task> {
        self.sessions.get_mut(key).map(|mut session| session.tasks.close()).unwrap_or_default()
    }
}

/// The thread of the agent itself.
fn main_thread(key: &SessionKey) -> ThreadKey {
    ThreadKey { session: key.clone(), agent: None }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::limits::Limits;
    use crate::time::Timestamp;

    fn key(number: u64) -> SessionKey {
        SessionKey { tenant: "default".into(), session: number.to_string().into() }
    }

    /// Sessions that were noted a second after one another.
    fn noted(count: u64, max_sessions: usize) -> Ledger {
        let ledger = Ledger::new(Limits { max_sessions, ..Limits::default() });
        let start = Instant::now();
        for number in 0..count {
            let at = Timestamp::from_unix_millis(i64::try_from(number).unwrap());
            ledger.note(&key(number), &Sighting::at(start + Duration::from_secs(number), at));
        }
        ledger
    }

    #[test]
    fn sessions_that_are_only_noted_are_bounded_too() {
        let ledger = noted(60, 40);
        assert_eq!(ledger.sessions.len(), 40);
        assert!(ledger.record(&key(59)).is_some() && ledger.record(&key(0)).is_none());
    }

    #[test]
    fn pages_are_those_of_the_whole_list() {
        let ledger = noted(100, 1_000);
        for limit in [1, 7, 100, 500] {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let page = ledger.records(&SessionQuery { limit: Some(limit), after, tenant: None });
                assert!(page.items.len() <= limit);
                found.extend(page.items.iter().map(|record| record.id.to_string()));
                match page.next {
                    Some(next) => after = Some(next.parse().unwrap()),
                    None => break,
                }
            }
            let expected: Vec<String> = (0..100).rev().map(|number| number.to_string()).collect();
            assert_eq!(found, expected, "{limit} a page");
        }
    }

    #[test]
    fn context_for_a_session_that_is_gone_is_dropped() {
        let ledger = noted(1, 10);
        let now = Sighting::at(Instant::now(), Timestamp::from_unix_millis(0));
        ledger.leave_context(&key(1), vec!["x".into()], &now);
        assert!(ledger.record(&key(1)).is_none() && ledger.is_blank());
        ledger.leave_context(&key(0), vec!["x".into()], &now);
        assert!(!ledger.is_blank());
    }
}
