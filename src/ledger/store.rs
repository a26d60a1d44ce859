//! All threads, and how one thread finds what another one decided.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dashmap::DashMap;
use dashmap::mapref::one::RefMut;

use super::anchor::link;
use super::idle::IdleQueue;
use super::record::{AnswerRecord, SuppliedResult};
use super::rewrite::{Known, PromptDecision};
use super::session::{Session, Sighting};
use super::thread::{Once, Thread};
use crate::id::{Digest, SessionKey, ThreadKey};
use crate::limits::Limits;

/// How many anchors and answer ids there may be for each session of the limit.
const PLACES_PER_SESSION: usize = 16;

/// Everything that is remembered, in memory.
///
/// Decisions are kept by thread. Since a client can go on with an old history under a new session id, they are also found
/// within the tenant by their anchors, which no other history shares.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(super) sessions: DashMap<SessionKey, Session>,
    pub(super) idle: IdleQueue,
    pub(super) prompts: DashMap<Place, Owned<PromptDecision>>,
    pub(super) answers: DashMap<Place, Owned<Arc<AnswerRecord>>>,
    /// What stands behind a user's message, from callbacks and of what was added at the start of tasks.
    pub(super) messages: DashMap<Place, Vec<Owned<String>>>,
    pub(super) lineage: DashMap<(Arc<str>, String), Lineage>,
    /// Set with the first entry: before that no history needs to be looked at.
    used: AtomicBool,
    /// The number of the next session.
    next: AtomicU64,
    pub(super) limits: Limits,
}

/// A tenant and an anchor.
pub(super) type Place = (Arc<str>, Digest);

/// Something that all of a tenant can find, and whose it is.
#[derive(Debug)]
pub(super) struct Owned<T> {
    /// The session that it goes with; `None` when that is gone and this has to stay.
    pub(super) session: Option<Arc<str>>,
    pub(super) value: T,
}

impl<T> Owned<T> {
    fn by(thread: &Thread, value: T) -> Self {
        Owned { session: Some(thread.key.session.session.clone()), value }
    }
}

/// What an answer's id leads to, with server-side history.
#[derive(Clone, Debug)]
pub(crate) struct Lineage {
    /// The thread that the answer belongs to.
    pub(crate) thread: ThreadKey,
    /// The id under which the provider knows the answer's end, when it is another one.
    pub(crate) real: Option<String>,
    /// Results that the provider still misses.
    pub(crate) missing: Vec<SuppliedResult>,
    /// The turn that the answer belongs to.
    pub(crate) turn: Digest,
    /// The body members that declare the tools, which later requests of the thread leave out.
    pub(crate) tools: Arc<[DeclaredTool]>,
}

/// A tool as an earlier request declared it.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredTool {
    /// The tool's name.
    pub(crate) name: String,
    /// The JSON Schema of its arguments.
    pub(crate) schema: Option<bytes::Bytes>,
}

impl Ledger {
    /// An empty ledger.
    pub(crate) fn new(limits: Limits) -> Self {
        Ledger {
            sessions: DashMap::new(),
            idle: IdleQueue::default(),
            prompts: DashMap::new(),
            answers: DashMap::new(),
            messages: DashMap::new(),
            lineage: DashMap::new(),
            used: AtomicBool::new(false),
            next: AtomicU64::new(0),
            limits,
        }
    }

    /// Whether nothing was ever decided, so that no history needs to be looked at.
    pub(crate) fn is_blank(&self) -> bool {
        !self.used.load(Ordering::Acquire)
    }

    /// The thread, and whether its session is new to this process.
    pub(crate) fn open(&self, key: &ThreadKey, sighting: &Sighting<'_>) -> (Arc<Thread>, bool) {
        let (mut session, new) = self.session(&key.session, sighting);
        session.see(sighting);
        let thread = session.threads.open(key);
        drop(session);
        self.make_room(sighting.now, new);
        (thread, new)
    }

    /// The session's entry, which is made when there is none, and whether it was made. Whoever asks for it has to
    /// [make room](Ledger::make_room) once the entry is let go.
    pub(super) fn session(&self, key: &SessionKey, sighting: &Sighting<'_>) -> (RefMut<'_, SessionKey, Session>, bool) {
        let mut new = false;
        let mut session = self.sessions.entry(key.clone()).or_insert_with(|| {
            new = true;
            self.begin(key, sighting)
        });
        if !new && sighting.now.saturating_duration_since(session.seen) >= self.limits.session_idle {
            // It comes back when its time is over, and nobody came since to find that out.
            self.idle.remove(session.idle_key());
            *session = self.begin(key, sighting);
            new = true;
        }
        (session, new)
    }

    fn begin(&self, key: &SessionKey, sighting: &Sighting<'_>) -> Session {
        let session = Session::new(self.next.fetch_add(1, Ordering::Relaxed), sighting);
        self.idle.put(session.idle_key(), key.clone());
        session
    }

    /// Makes a place for one thing more. Anchors of a tenant, and answers' ids, are shared by all its threads, so they are
    /// bounded by number and not by owner.
    fn make_place<K: Eq + Hash, V>(&self, places: &DashMap<K, V>) {
        if places.len() >= self.limits.max_sessions.saturating_mul(PLACES_PER_SESSION) {
            places.clear();
        }
    }

    /// The place that says whether the session's start was dispatched.
    pub(crate) fn session_start(&self, key: &SessionKey) -> Once<()> {
        self.sessions.get(key).map(|session| session.started.clone()).unwrap_or_default()
    }

    /// From now on histories are looked at.
    pub(super) fn use_it(&self) {
        self.used.store(true, Ordering::Release);
    }

    // What is recorded for a tenant is taken back when the session was deleted meanwhile: the deletion marks the threads
    // before it looks for what they left, so that either it or the one who records finds it.

    /// Makes the decision about a prompt known to the thread's tenant.
    pub(crate) fn share_prompt(&self, thread: &Thread, prompt: Digest, decision: PromptDecision) {
        if decision != PromptDecision::default() {
            self.use_it();
        }
        let place = (thread.key.session.tenant.clone(), prompt);
        self.make_place(&self.prompts);
        self.prompts.insert(place.clone(), Owned::by(thread, decision));
        if thread.is_gone() {
            self.prompts.remove_if_mut(&place, |_, decision| !decision.outlive());
        }
    }

    /// The decision about a prompt that another thread of the tenant took.
    pub(crate) fn shared_prompt(&self, thread: &Thread, prompt: Digest) -> Option<PromptDecision> {
        self.prompts.get(&(thread.key.session.tenant.clone(), prompt)).map(|decision| decision.value.clone())
    }

    /// Records an answer that the client will send back in another form than the model knows it.
    pub(crate) fn commit_answer(&self, thread: &Thread, before: Digest, record: AnswerRecord) {
        self.use_it();
        let place = link(before, record.shown_digest());
        let record = Arc::new(record);
        thread.keep_answer(place, &record);
        let place = (thread.key.session.tenant.clone(), place);
        self.make_place(&self.answers);
        self.answers.insert(place.clone(), Owned::by(thread, record));
        if thread.is_gone() {
            self.answers.remove(&place);
        }
    }

    /// Records what the model is to read after the result of a call.
    pub(crate) fn commit_context(&self, thread: &Thread, call_id: &str, context: Vec<String>) {
        self.use_it();
        thread.add_context(call_id, context);
    }

    /// Records a message that stands behind a user's from now on.
    pub(crate) fn commit_message(&self, thread: &Thread, behind: Digest, text: String) {
        self.use_it();
        let place = (thread.key.session.tenant.clone(), behind);
        self.make_place(&self.messages);
        self.messages.entry(place.clone()).or_default().push(Owned::by(thread, text));
        if thread.is_gone() {
            self.messages.remove_if_mut(&place, |_, messages| super::forget::without(messages, &thread.key.session));
        }
    }

    /// Records an answer's id.
    pub(crate) fn commit_lineage(&self, thread: &Thread, id: String, lineage: Lineage) {
        self.use_it();
        let place = (thread.key.session.tenant.clone(), id);
        self.make_place(&self.lineage);
        self.lineage.insert(place.clone(), lineage);
        if thread.is_gone() {
            self.lineage.remove(&place);
        }
    }

    /// What an answer's id leads to.
    pub(crate) fn lineage(&self, tenant: &Arc<str>, id: &str) -> Option<Lineage> {
        self.lineage.get(&(tenant.clone(), id.to_owned())).map(|lineage| lineage.clone())
    }

    /// Remembers that a prompt was handed to a sub-agent by a call whose result will tell its end.
    pub(crate) fn delegate(&self, session: &SessionKey, prompt: &str) {
        if let Some(mut session) = self.sessions.get_mut(session) {
            session.delegated.get_or_insert(Digest::of(prompt.as_bytes()), || None);
        }
    }

    /// Whether a prompt was handed to a sub-agent by a call; `agent` is the one that turned up with it.
    pub(crate) fn is_delegated(&self, session: &SessionKey, prompt: &str, agent: &Arc<str>) -> bool {
        let digest = Digest::of(prompt.as_bytes());
        let mut session = self.sessions.get_mut(session);
        let known = session.as_mut().and_then(|session| session.delegated.get_mut(&digest));
        known.map(|known| *known = Some(agent.clone())).is_some()
    }

    /// The agent that turned up with a prompt that a call handed over.
    pub(crate) fn delegated_agent(&self, session: &SessionKey, prompt: &str) -> Option<Arc<str>> {
        let session = self.sessions.get(session)?;
        session.delegated.peek(&Digest::of(prompt.as_bytes()))?.clone()
    }
}

/// The ledger as one thread sees it.
pub(crate) struct View<'a> {
    /// The ledger.
    pub(crate) ledger: &'a Ledger,
    /// The thread.
    pub(crate) thread: &'a Thread,
}

impl Known for View<'_> {
    fn has_prompts(&self) -> bool {
        self.thread.has_prompts() || !self.ledger.prompts.is_empty()
    }

    fn prompt(&self, prompt: Digest) -> Option<PromptDecision> {
        self.thread.known_prompt(prompt).or_else(|| self.ledger.shared_prompt(self.thread, prompt))
    }

    fn answer(&self, before: Digest, own: Digest) -> Option<Arc<AnswerRecord>> {
        let place = link(before, own);
        self.thread.known_answer(place).or_else(|| {
            let shared = self.ledger.answers.get(&(self.thread.key.session.tenant.clone(), place));
            shared.map(|record| record.value.clone())
        })
    }

    fn answer_by_calls(&self, calls: Digest) -> Option<Arc<AnswerRecord>> {
        self.thread.answer_by_calls(calls)
    }

    fn is_moved_refusal(&self, message: Digest, behind: Digest) -> bool {
        self.thread.is_moved_refusal(message, behind)
    }

    fn call_context(&self, call_id: &str) -> Vec<String> {
        self.thread.context(call_id)
    }

    fn messages(&self, behind: Digest) -> Vec<String> {
        let known = self.ledger.messages.get(&(self.thread.key.session.tenant.clone(), behind));
        known.map(|messages| messages.iter().map(|message| message.value.clone()).collect()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::limits::MAX_SESSION_AGENTS;
    use crate::time::Timestamp;

    fn at(now: Instant) -> Sighting<'static> {
        Sighting::at(now, Timestamp::from_unix_millis(0))
    }

    fn key(session: &str) -> ThreadKey {
        let session = SessionKey { tenant: "default".into(), session: session.into() };
        ThreadKey { session, agent: None }
    }

    #[test]
    fn the_longest_idle_sessions_are_forgotten_at_the_limit() {
        let limits = Limits { max_sessions: 40, ..Limits::default() };
        let ledger = Ledger::new(limits);
        let start = Instant::now();
        for index in 0..60 {
            let (_, new) = ledger.open(&key(&index.to_string()), &at(start + Duration::from_secs(index)));
            assert!(new);
        }
        assert_eq!(ledger.sessions.len(), 40);
        assert!(!ledger.open(&key("59"), &at(start + Duration::from_secs(60))).1, "the newest is kept");
        assert!(ledger.open(&key("0"), &at(start + Duration::from_secs(60))).1, "the oldest is forgotten");
    }

    #[test]
    fn the_sub_agent_used_longest_ago_makes_room_and_what_it_was_refused_stays_so() {
        let ledger = Ledger::new(Limits::default());
        let now = Instant::now();
        let open = |agent: Option<String>| {
            let agent = agent.map(Into::into);
            ledger.open(&ThreadKey { agent, ..key("one") }, &at(now)).0
        };
        let main = open(None);
        let agents: Vec<_> = (0..MAX_SESSION_AGENTS).map(|agent| open(Some(agent.to_string()))).collect();
        let denied = PromptDecision { denied: Some("no".into()), ..PromptDecision::default() };
        ledger.share_prompt(&agents[1], Digest::of(b"p"), denied.clone());
        assert!(Arc::ptr_eq(&agents[0], &open(Some("0".into()))), "there is room for as many");
        open(Some("one more".into()));
        assert_eq!(ledger.sessions.get(&key("one").session).unwrap().threads.len(), MAX_SESSION_AGENTS + 1);
        assert!(Arc::ptr_eq(&main, &open(None)), "the main thread stays");
        assert!(Arc::ptr_eq(&agents[0], &open(Some("0".into()))), "it was used since");
        let again = open(Some("1".into()));
        assert!(!Arc::ptr_eq(&agents[1], &again), "the one that was used longest ago made room");
        assert_eq!(View { ledger: &ledger, thread: &again }.prompt(Digest::of(b"p")), Some(denied));
    }

    #[test]
    fn another_session_of_the_tenant_finds_decisions_by_their_anchors() {
        let ledger = Ledger::new(Limits::default());
        let now = Instant::now();
        assert!(ledger.is_blank());
        let (one, _) = ledger.open(&key("one"), &at(now));
        let denied = PromptDecision { denied: Some("no".into()), ..PromptDecision::default() };
        ledger.share_prompt(&one, Digest::of(b"p"), denied.clone());
        let (two, _) = ledger.open(&key("two"), &at(now));
        assert_eq!(View { ledger: &ledger, thread: &two }.prompt(Digest::of(b"p")), Some(denied));
        assert!(!ledger.is_blank());
    }

    #[test]
    fn what_one_session_shares_is_bounded() {
        let ledger = Ledger::new(Limits { max_sessions: 2, ..Limits::default() });
        let (thread, _) = ledger.open(&key("one"), &at(Instant::now()));
        for place in (0..100_u8).map(|place| Digest::of(&[place])) {
            ledger.share_prompt(&thread, place, PromptDecision::default());
            ledger.commit_answer(&thread, place, AnswerRecord::default());
            ledger.commit_message(&thread, place, "a message".into());
            assert_eq!(ledger.shared_prompt(&thread, place), Some(PromptDecision::default()), "the newest is there");
            let sizes = [ledger.prompts.len(), ledger.answers.len(), ledger.messages.len()];
            assert!(sizes.iter().all(|size| *size <= 2 * PLACES_PER_SESSION), "{sizes:?}");
        }
    }

    #[test]
    fn counters_belong_to_a_turn() {
        let ledger = Ledger::new(Limits::default());
        let (thread, _) = ledger.open(&key("one"), &at(Instant::now()));
        let (turn, call) = (Digest::of(b"turn"), Digest::of(b"call"));
        assert_eq!((thread.count_denial(turn, call), thread.count_denial(turn, call)), (1, 2));
        assert_eq!((thread.count_stop(turn), thread.count_stop(turn), thread.stops(turn)), (0, 1, 2));
        assert_eq!(thread.count_denial(Digest::of(b"next"), call), 1);
        assert_eq!(thread.stops(Digest::of(b"next")), 0);
        assert_eq!(thread.stops(turn), 2, "a turn beside it goes on");
        for other in 0..8 {
            thread.count_stop(Digest::of(&[other]));
        }
        assert_eq!(thread.stops(turn), 0, "only so many are counted in at once");
    }
}
