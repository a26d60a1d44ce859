//! Forgetting one session, as if it had never been.

use super::rewrite::PromptDecision;
use super::store::{Ledger, Owned};
use crate::id::SessionKey;

/// What a prompt's refusal says once the session is gone in which it was refused: the policy's own words may repeat it.
const REFUSED_BEFORE: &str = "this prompt was refused earlier, in a conversation that was deleted since";

impl Ledger {
    /// Forgets everything about a session. A request that is under way leaves nothing behind either.
    ///
    /// One thing stays, without a word and without the session's name: that a prompt was refused, by the digest of the
    /// history that leads to it. Only who has the whole conversation can find it, and it says what he knows. Without it a
    /// client that goes on with the old history could bring a refused prompt before the model after all: whoever deletes a
    /// session wants it forgotten, and not to overrule a policy.
    pub(crate) fn forget(&self, key: &SessionKey) {
        if let Some((_, session)) = self.sessions.remove(key) {
            self.idle.remove(session.idle_key());
            // The threads before what they left, see `Ledger::share_prompt`.
            session.threads.leave();
        }
        self.prompts.retain(|place, decision| !is_of(&place.0, decision, key) || decision.outlive());
        self.answers.retain(|place, answer| !is_of(&place.0, answer, key));
        self.messages.retain(|place, messages| *place.0 != *key.tenant || !without(messages, key));
        self.lineage.retain(|_, lineage| lineage.thread.session != *key);
    }
}

fn is_of<T>(tenant: &str, owned: &Owned<T>, key: &SessionKey) -> bool {
    *tenant == *key.tenant && owned.session.as_ref() == Some(&key.session)
}

/// Takes a session's messages out of those of its tenant in one place; tells whether none is left.
pub(super) fn without(messages: &mut Vec<Owned<String>>, key: &SessionKey) -> bool {
    messages.retain(|message| message.session.as_ref() != Some(&key.session));
    messages.is_empty()
}

impl Owned<PromptDecision> {
    /// Leaves of a decision what has to stay when its session is gone; tells whether that is anything. What was refused
    /// because a handler failed was never judged.
    pub(super) fn outlive(&mut self) -> bool {
        let refused = self.value.denied.is_some() && !self.value.failed;
        self.session = None;
        let denied = refused.then(|| REFUSED_BEFORE.to_owned());
        self.value = PromptDecision { denied, ..PromptDecision::default() };
        refused
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::id::{Digest, ThreadKey};
    use crate::ledger::record::AnswerRecord;
    use crate::ledger::{Lineage, Sighting, Thread};
    use crate::limits::{Limits, MAX_SESSION_AGENTS};
    use crate::time::Timestamp;

    fn key(session: &str) -> SessionKey {
        SessionKey { tenant: "default".into(), session: session.into() }
    }

    fn open(ledger: &Ledger, session: &str) -> std::sync::Arc<Thread> {
        let sighting = Sighting::at(Instant::now(), Timestamp::from_unix_millis(0));
        ledger.open(&ThreadKey { session: key(session), agent: None }, &sighting).0
    }

    fn open_agent(ledger: &Ledger, session: &str, agent: &str) -> std::sync::Arc<Thread> {
        let sighting = Sighting::at(Instant::now(), Timestamp::from_unix_millis(0));
        ledger.open(&ThreadKey { session: key(session), agent: Some(agent.into()) }, &sighting).0
    }

    fn denied(reason: &str, failed: bool) -> PromptDecision {
        PromptDecision { denied: Some(reason.into()), failed, ..PromptDecision::default() }
    }

    fn fill(ledger: &Ledger, thread: &Thread) {
        let own = |what: &str| Digest::of(format!("{what} of {}", thread.key.session.session).as_bytes());
        ledger.share_prompt(thread, own("denied"), denied("your secret", false));
        ledger.share_prompt(thread, own("failed"), denied("down", true));
        let replaced = PromptDecision { replacement: Some("words".into()), ..PromptDecision::default() };
        ledger.share_prompt(thread, own("replaced"), replaced);
        ledger.commit_answer(thread, own("answer"), AnswerRecord::default());
        ledger.commit_message(thread, Digest::of(b"shared place"), "a message".into());
        let lineage = Lineage {
            thread: thread.key.clone(),
            real: None,
            missing: Vec::new(),
            turn: Digest::EMPTY,
            tools: std::sync::Arc::default(),
        };
        ledger.commit_lineage(thread, format!("resp of {}", thread.key.session.session), lineage);
    }

    /// Sessions, threads, answers, messages, lineage.
    fn sizes(ledger: &Ledger) -> [usize; 5] {
        let messages = ledger.messages.iter().map(|place| place.len()).sum();
        let threads = ledger.sessions.iter().map(|session| session.threads.len()).sum();
        [ledger.sessions.len(), threads, ledger.answers.len(), messages, ledger.lineage.len()]
    }

    fn assert_only_refusals_are_left_of_one(ledger: &Ledger) {
        assert_eq!(sizes(ledger), [1, 1, 1, 1, 1]);
        let left: Vec<_> = ledger.prompts.iter().filter(|decision| decision.session.is_none()).collect();
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].value, denied(REFUSED_BEFORE, false));
        assert_eq!(left[0].key().1, Digest::of(b"denied of one"));
        assert_eq!(ledger.prompts.len(), 4, "those of the other session are there");
    }

    #[test]
    fn what_is_left_of_a_session_is_that_prompts_were_refused() {
        let ledger = Ledger::new(Limits::default());
        fill(&ledger, &open(&ledger, "one"));
        fill(&ledger, &open(&ledger, "two"));
        assert_eq!(sizes(&ledger), [2, 2, 2, 2, 2]);
        ledger.forget(&key("one"));
        assert_only_refusals_are_left_of_one(&ledger);
    }

    #[test]
    fn what_was_under_way_leaves_nothing() {
        let ledger = Ledger::new(Limits::default());
        fill(&ledger, &open(&ledger, "two"));
        let late = open(&ledger, "one");
        ledger.forget(&key("one"));
        fill(&ledger, &late);
        assert_only_refusals_are_left_of_one(&ledger);
    }

    #[test]
    fn what_was_under_way_in_a_thread_that_made_room_leaves_nothing() {
        let ledger = Ledger::new(Limits::default());
        fill(&ledger, &open(&ledger, "two"));
        let late = open_agent(&ledger, "one", "late");
        for other in 0..MAX_SESSION_AGENTS {
            open_agent(&ledger, "one", &other.to_string());
        }
        assert!(!std::sync::Arc::ptr_eq(&late, &open_agent(&ledger, "one", "late")), "it made room");
        ledger.forget(&key("one"));
        fill(&ledger, &late);
        assert_only_refusals_are_left_of_one(&ledger);
    }
}
