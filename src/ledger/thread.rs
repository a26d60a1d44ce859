//! What is remembered of one thread.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use tokio::sync::OnceCell;

use super::anchor;
use super::brought::{Brought, Messages};
use super::record::{AnswerRecord, Round};
use super::rewrite::PromptDecision;
use crate::dispatch::Verdict;
use crate::id::{Digest, ThreadKey};
use crate::store::InboxMessage;
use crate::wire::answer::Call;

/// How many entries of each kind one thread keeps; the least recently used goes first. A prompt that is asked about again
/// because it was forgotten is merely asked about again.
const ENTRIES: NonZeroUsize = NonZeroUsize::new(4096).expect("not zero");
/// How many unfinished answers of one thread can be resumed.
const ATTEMPTS: NonZeroUsize = NonZeroUsize::new(4).expect("not zero");

/// How many turns of one thread are counted in at once: that of the conversation and those of background tasks.
const TURNS: NonZeroUsize = NonZeroUsize::new(8).expect("not zero");

/// How long after its last round an answer is resumed: clients give up their retries within minutes, and the same words
/// asked again later deserve a new answer.
const RETRY_WINDOW: Duration = Duration::from_secs(600);

/// How long the same prompt at the end of the same history is a retry. Clients retry within this time (Claude Code for
/// little more than a minute); later it is a person who asks again, perhaps of another policy.
const SAME_PROMPT_WINDOW: Duration = Duration::from_secs(120);

/// A cache that grows as it is used: most threads need a few entries, and `LruCache::new` reserves room for all.
pub(crate) fn bounded<K: std::hash::Hash + Eq, V>(most: NonZeroUsize) -> LruCache<K, V> {
    let mut cache = LruCache::unbounded();
    cache.resize(most);
    cache
}

/// A decision that is taken once, however many requests wait for it.
pub(crate) type Once<T> = Arc<OnceCell<T>>;

/// One thread.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Whose it is.
    pub(crate) key: ThreadKey,
    /// Whether its session was deleted: whoever still has it leaves nothing behind.
    gone: Arc<AtomicBool>,
    /// Whether there are messages: asked with every request, so without the lock.
    has_messages: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    prompts: LruCache<Digest, Asked>,
    /// What the client got in the place of answers to denied prompts.
    refusals: LruCache<Digest, ()>,
    answers: LruCache<Digest, Arc<AnswerRecord>>,
    /// Answers by the calls that the client got.
    by_calls: LruCache<Digest, Arc<AnswerRecord>>,
    results: LruCache<Digest, ()>,
    contexts: LruCache<String, Vec<String>>,
    attempts: LruCache<Digest, Attempt>,
    declared: LruCache<(Digest, String), Once<Verdict>>,
    /// Calls whose history the provider keeps, so that their results can be told with their names.
    calls: LruCache<String, Call>,
    messages: Messages,
    turns: LruCache<Digest, Turn>,
}

/// A prompt that was asked about.
#[derive(Debug)]
struct Asked {
    at: Instant,
    /// The client wanted an answer to it; otherwise it was in a history that was not seen before.
    current: bool,
    decision: Once<PromptDecision>,
}

impl Asked {
    fn new(at: Instant, current: bool) -> Self {
        Asked { at, current, decision: Once::default() }
    }
}

/// The counters of a turn under way.
#[derive(Debug)]
struct Turn {
    stops: u32,
    denials: LruCache<Digest, u32>,
}

/// The completed rounds of an answer that has not yet been seen in the client's history.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempt {
    /// The rounds.
    pub(crate) rounds: Vec<Round>,
    /// The id and the model that the client was told.
    pub(crate) head: (String, String),
    /// The provider's id of the last round.
    pub(crate) last_id: String,
    /// When the last round was completed.
    pub(crate) at: Option<Instant>,
}

impl Thread {
    /// An empty thread; `gone` is what all threads of its session share.
    pub(super) fn new(key: ThreadKey, gone: Arc<AtomicBool>) -> Self {
        Thread {
            key,
            gone,
            has_messages: AtomicBool::new(false),
            state: Mutex::new(State {
                prompts: bounded(ENTRIES),
                refusals: bounded(ENTRIES),
                answers: bounded(ENTRIES),
                by_calls: bounded(ENTRIES),
                results: bounded(ENTRIES),
                contexts: bounded(ENTRIES),
                attempts: bounded(ATTEMPTS),
                declared: bounded(ENTRIES),
                calls: bounded(ENTRIES),
                messages: Messages::default(),
                turns: bounded(TURNS),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave the maps half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether its session was deleted.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    /// The place of the decision about a prompt of the history: it holds for ever.
    pub(crate) fn prompt(&self, prompt: Digest, now: Instant) -> Once<PromptDecision> {
        self.state().prompts.get_or_insert(prompt, || Asked::new(now, false)).decision.clone()
    }

    /// The place of the decision about the prompt that is to be answered. A retry shares it; the same words sent again
    /// later, or after a refusal that was only a handler's failure, are asked about anew.
    pub(crate) fn current_prompt(&self, prompt: Digest, now: Instant) -> Once<PromptDecision> {
        let mut state = self.state();
        if let Some(asked) = state.prompts.get(&prompt) {
            let old = now.saturating_duration_since(asked.at) >= SAME_PROMPT_WINDOW;
            if asked.decision.get().is_some_and(|decision| decision.failed || old) {
                state.prompts.pop(&prompt);
            }
        }
        let asked = state.prompts.get_or_insert_mut(prompt, || Asked::new(now, true));
        asked.current = true;
        asked.decision.clone()
    }

    /// Whether a prompt of this thread was ever asked about.
    pub(super) fn has_prompts(&self) -> bool {
        !self.state().prompts.is_empty()
    }

    /// The decision about a prompt, if it was taken in this thread.
    pub(super) fn known_prompt(&self, prompt: Digest) -> Option<PromptDecision> {
        self.state().prompts.get(&prompt)?.decision.get().cloned()
    }

    /// Remembers what the client gets in the place of an answer.
    pub(crate) fn keep_refusal(&self, reason: &str) {
        self.state().refusals.put(anchor::of_refusal(reason), ());
    }

    /// Whether a message is a refusal that the client moved behind another prompt. Behind a prompt that was answered here
    /// it is the model's own.
    pub(super) fn is_moved_refusal(&self, message: Digest, behind: Digest) -> bool {
        let mut state = self.state();
        state.refusals.contains(&message) && !state.prompts.get(&behind).is_some_and(|asked| asked.current)
    }

    /// An answer by its place and content.
    pub(super) fn known_answer(&self, place: Digest) -> Option<Arc<AnswerRecord>> {
        self.state().answers.get(&place).cloned()
    }

    /// The last answer whose calls that the client got have these ids.
    pub(super) fn answer_by_calls(&self, calls: Digest) -> Option<Arc<AnswerRecord>> {
        self.state().by_calls.get(&calls).cloned()
    }

    pub(super) fn keep_answer(&self, place: Digest, record: &Arc<AnswerRecord>) {
        let mut state = self.state();
        state.answers.put(place, record.clone());
        if let Some(calls) = record.calls_digest() {
            state.by_calls.put(calls, record.clone());
        }
    }

    /// Whether this result is new; it is known from now on.
    pub(crate) fn first_result(&self, result: Digest) -> bool {
        self.state().results.put(result, ()).is_none()
    }

    /// Adds what the model is to read after the result of a call.
    pub(crate) fn add_context(&self, call_id: &str, context: Vec<String>) {
        self.state().contexts.get_or_insert_mut(call_id.to_owned(), Vec::new).extend(context);
    }

    pub(super) fn context(&self, call_id: &str) -> Vec<String> {
        self.state().contexts.get(call_id).cloned().unwrap_or_default()
    }

    /// The place of the decision about a declared tool, once a turn.
    pub(crate) fn declared(&self, turn: Digest, tool: &str) -> Once<Verdict> {
        self.state().declared.get_or_insert((turn, tool.to_owned()), Once::default).clone()
    }

    /// Remembers a call that the client got.
    pub(crate) fn keep_call(&self, call: &Call) {
        self.state().calls.put(call.id.clone(), call.clone());
    }

    /// A call that the client got.
    pub(crate) fn call(&self, id: &str) -> Option<Call> {
        self.state().calls.get(id).cloned()
    }

    /// Whether there are unfinished answers, so that a request must be compared with theirs.
    pub(crate) fn has_attempts(&self) -> bool {
        !self.state().attempts.is_empty()
    }

    /// What is known of an earlier attempt at the same request that a retry may go on from.
    pub(crate) fn attempt(&self, request: Digest, now: Instant) -> Option<Attempt> {
        let fresh = |at: Instant| now.saturating_duration_since(at) < RETRY_WINDOW;
        self.state().attempts.get(&request).filter(|attempt| attempt.at.is_some_and(fresh)).cloned()
    }

    /// Keeps the completed rounds of an answer for a retry of its request.
    pub(crate) fn keep_attempt(&self, request: Digest, attempt: Attempt) {
        self.state().attempts.put(request, attempt);
    }

    /// A retry of this request must start afresh: the client acted on the answer.
    pub(crate) fn forget_attempt(&self, request: Digest) {
        self.state().attempts.pop(&request);
    }

    /// Takes over what callbacks brought.
    pub(crate) fn bring(&self, messages: Vec<InboxMessage>) {
        self.change_messages(|own| messages.into_iter().for_each(|message| own.add(Brought::by_callback(message))));
    }

    /// Takes over what handlers added for the model to read next, as it is to read it.
    pub(super) fn bring_context(&self, texts: Vec<String>) {
        self.change_messages(|own| texts.into_iter().for_each(|text| own.add_context(text)));
    }

    /// Whether there are messages that the model may not have yet.
    pub(crate) fn has_messages(&self) -> bool {
        self.has_messages.load(Ordering::Acquire)
    }

    fn change_messages(&self, change: impl FnOnce(&mut Messages)) {
        let mut state = self.state();
        change(&mut state.messages);
        self.has_messages.store(!state.messages.is_empty(), Ordering::Release);
    }

    /// The messages that stand nowhere in a history.
    pub(crate) fn homeless_messages(&self, is_there: impl Fn(Digest) -> bool) -> Vec<Arc<Brought>> {
        self.state().messages.homeless(is_there)
    }

    /// Gives a message its place; `false` when another request was faster.
    pub(crate) fn place_message(&self, message: &Arc<Brought>, at: Digest) -> bool {
        self.state().messages.place(message, at)
    }

    /// The model got what stands in these places.
    pub(crate) fn messages_arrived(&self, is_there: impl Fn(Digest) -> bool) {
        self.change_messages(|own| own.arrived(is_there));
    }

    /// Counts a Stop continuation of a turn; gives how many there have been before.
    pub(crate) fn count_stop(&self, turn: Digest) -> u32 {
        let mut state = self.state();
        let turn = state.turn(turn);
        turn.stops += 1;
        turn.stops - 1
    }

    /// How many Stop continuations a turn has had.
    pub(crate) fn stops(&self, turn: Digest) -> u32 {
        self.state().turn(turn).stops
    }

    /// Counts a denial of a call in a turn; gives how many there have been, this one included.
    pub(crate) fn count_denial(&self, turn: Digest, call: Digest) -> u32 {
        let mut state = self.state();
        let count = state.turn(turn).denials.get_or_insert_mut(call, || 0);
        *count += 1;
        *count
    }
}

impl State {
    /// The counters of a turn.
    fn turn(&mut self, id: Digest) -> &mut Turn {
        self.turns.get_or_insert_mut(id, || Turn { stops: 0, denials: bounded(ENTRIES) })
    }
}
