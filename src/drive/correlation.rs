//! One call seen twice: a model made it, and then the agent's runtime called the tool through a route to tools.
//!
//! It is one dispatch. What was decided when the model's answer was released is not asked again at the tool, and what came
//! of the call at the tool is not told again when the model's next request brings it. Nothing is guessed: a call is known
//! again by the same tool with the same arguments, and by the model's id for it where the runtime says that; each match is
//! used once, and where several sessions made the same call there is none.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::hooks::{Occasion, qualified};
use crate::id::{Digest, SessionKey};
use crate::limits::{CORRELATION_WINDOW, MAX_CORRELATED_CALLS};
use crate::wire::answer::Call;
use crate::wire::same::same_call;

/// How long the model's next request may take after a result: other tools of the same answer may still run.
const TOLD_WINDOW: Duration = Duration::from_secs(3600);

/// Calls of the last moments, in the order in which they were seen.
#[derive(Debug, Default)]
pub(super) struct Correlation {
    released: Mutex<VecDeque<Released>>,
    told: Mutex<VecDeque<Told>>,
}

/// A call that a model made and that the agent got.
#[derive(Clone, Debug)]
pub(super) struct Released {
    at: Instant,
    what: Digest,
    /// The call's occasion on the model plane.
    pub(super) occasion: Occasion,
    /// The handlers that were asked about it.
    pub(super) asked: Vec<Arc<str>>,
}

/// A call whose outcome was told at the tool.
#[derive(Debug)]
struct Told {
    at: Instant,
    tenant: Arc<str>,
    whats: [Digest; 2],
    id: Option<Arc<str>>,
}

/// A call as it reached a route to tools.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtTool<'a> {
    pub(super) tenant: &'a Arc<str>,
    pub(super) tool: &'a str,
    pub(super) server: Option<&'a str>,
    pub(super) input: &'a [u8],
}

impl AtTool<'_> {
    /// The digests under which a model may have made the call: by the tool's own name and by that with its server's.
    fn whats(&self) -> Option<[Digest; 2]> {
        let arguments = serde_json::from_slice(self.input).ok()?;
        let full = self.server.map(|server| qualified(server, self.tool));
        let [bare, full] = [self.tool, full.as_deref().unwrap_or(self.tool)];
        Some([same_call(bare, &arguments), same_call(full, &arguments)])
    }
}

impl Correlation {
    /// An agent is about to get a call with these arguments. `occasion` has its name, its id and all that its events say.
    pub(super) fn release(&self, occasion: Occasion, input: &[u8], asked: Vec<Arc<str>>, now: Instant) {
        let (Some(name), Ok(arguments)) = (&occasion.name, serde_json::from_slice(input)) else { return };
        let what = same_call(name, &arguments);
        let mut released = lock(&self.released);
        let old = |first: &Released| now.saturating_duration_since(first.at) >= CORRELATION_WINDOW;
        while released.front().is_some_and(old) || released.len() >= MAX_CORRELATED_CALLS {
            released.pop_front();
        }
        released.push_back(Released { at: now, what, occasion, asked });
    }

    /// The call that a model made, of which this is the one at the tool; nobody else gets it from now on. `ids` are those
    /// that the call carries, of which one may be the model's.
    pub(super) fn take(&self, call: AtTool<'_>, ids: &[String], now: Instant) -> Option<Released> {
        if lock(&self.released).is_empty() {
            return None;
        }
        let whats = call.whats()?;
        let mut released = lock(&self.released);
        let fits = |one: &Released| {
            let recent = now.saturating_duration_since(one.at) < CORRELATION_WINDOW;
            recent && whats.contains(&one.what) && one.occasion.session.tenant == *call.tenant
        };
        let named = |one: &Released| {
            one.occasion.tool_call_id.as_ref().is_some_and(|id| ids.iter().any(|known| **known == **id))
        };
        if let Some(at) = released.iter().position(|one| fits(one) && named(one)) {
            return released.remove(at);
        }
        let mut found = released.iter().enumerate().filter(|(_, one)| fits(one));
        let (at, first) = found.next()?;
        let of_one_agent = |other: &Released| {
            other.occasion.session == first.occasion.session && other.occasion.agent_id == first.occasion.agent_id
        };
        let unique = found.all(|(_, other)| of_one_agent(other));
        if unique { released.remove(at) } else { None }
    }

    /// Forgets the calls of a session.
    pub(super) fn forget(&self, session: &SessionKey) {
        lock(&self.released).retain(|released| released.occasion.session != *session);
    }

    /// What came of a call was told at the tool; `id` is the model's, when it is known.
    pub(super) fn tell(&self, call: AtTool<'_>, id: Option<Arc<str>>, now: Instant) {
        let Some(whats) = call.whats() else { return };
        let mut told = lock(&self.told);
        let old = |first: &Told| now.saturating_duration_since(first.at) >= TOLD_WINDOW;
        while told.front().is_some_and(old) || told.len() >= MAX_CORRELATED_CALLS {
            told.pop_front();
        }
        told.push_back(Told { at: now, tenant: call.tenant.clone(), whats, id });
    }

    /// Whether what came of a model's call was told at the tool. Each telling counts for one call.
    pub(super) fn was_told(&self, tenant: &Arc<str>, call: &Call, now: Instant) -> bool {
        if lock(&self.told).is_empty() {
            return false;
        }
        let Ok(arguments) = serde_json::from_slice(&call.input) else { return false };
        let what = same_call(&call.name, &arguments);
        let mut told = lock(&self.told);
        let fits = |one: &Told| {
            let recent = now.saturating_duration_since(one.at) < TOLD_WINDOW;
            recent
                && one.tenant == *tenant
                && one.whats.contains(&what)
                && one.id.as_ref().is_none_or(|id| **id == *call.id)
        };
        let at = told.iter().position(fits);
        at.is_some_and(|at| told.remove(at).is_some())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under the lock can leave it half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::{Event, Plane};

    fn occasion(session: &str, name: &str, id: &str) -> Occasion {
        Occasion {
            tool_call_id: Some(id.into()),
            name: Some(name.into()),
            ..Occasion::new(
                Event::PreToolUse,
                SessionKey { tenant: "default".into(), session: session.into() },
                Plane::Model,
                "r",
            )
        }
    }

    fn at<'a>(tenant: &'a Arc<str>, tool: &'a str, input: &'a str) -> AtTool<'a> {
        AtTool { tenant, tool, server: Some("files"), input: input.as_bytes() }
    }

    fn taken(found: Option<Released>) -> Option<String> {
        found.and_then(|released| released.occasion.tool_call_id).map(|id| id.to_string())
    }

    #[test]
    fn a_call_is_known_again_once() {
        let (calls, now, tenant) = (Correlation::default(), Instant::now(), Arc::from("default"));
        for id in ["t1", "t2"] {
            calls.release(occasion("s", "mcp__files__read", id), br#"{"n": 1}"#, Vec::new(), now);
        }
        let call = at(&tenant, "read", r#"{"n":1.0}"#);
        assert_eq!(taken(calls.take(call, &["t2".into()], now)), Some("t2".into()));
        assert_eq!(taken(calls.take(call, &["t2".into()], now)), Some("t1".into()), "an id that is no longer known");
        assert_eq!(taken(calls.take(call, &[], now)), None);
    }

    #[test]
    fn others_are_not_mistaken_for_it() {
        let (calls, now, tenant) = (Correlation::default(), Instant::now(), Arc::from("default"));
        calls.release(occasion("s", "mcp__files__read", "t1"), b"{}", Vec::new(), now);
        let ids = ["t1".to_owned()];
        assert!(calls.take(at(&tenant, "read", r#"{"a":1}"#), &ids, now).is_none(), "other arguments, whatever its id");
        assert!(calls.take(at(&tenant, "write", "{}"), &ids, now).is_none());
        assert!(calls.take(at(&"other".into(), "read", "{}"), &ids, now).is_none(), "another tenant");
        assert!(calls.take(at(&tenant, "read", "{}"), &ids, now + CORRELATION_WINDOW).is_none(), "too late");
        calls.release(occasion("another", "read", "t2"), b"{}", Vec::new(), now);
        assert!(calls.take(at(&tenant, "read", "{}"), &[], now).is_none(), "of two sessions");
        assert_eq!(taken(calls.take(at(&tenant, "read", "{}"), &ids, now)), Some("t1".into()));
        assert_eq!(taken(calls.take(at(&tenant, "read", "{}"), &[], now)), Some("t2".into()));
    }

    #[test]
    fn an_outcome_is_told_for_one_call() {
        let (calls, now, tenant) = (Correlation::default(), Instant::now(), Arc::from("default"));
        let call =
            |id: &str, name: &str| Call { id: id.into(), name: name.into(), input: bytes::Bytes::from_static(b"{}") };
        calls.tell(at(&tenant, "read", "{}"), Some("t1".into()), now);
        calls.tell(at(&tenant, "read", "{}"), None, now);
        assert!(!calls.was_told(&tenant, &call("t2", "write"), now));
        assert!(!calls.was_told(&"other".into(), &call("t2", "read"), now));
        assert!(calls.was_told(&tenant, &call("t2", "mcp__files__read"), now), "without an id it is anybody's");
        assert!(!calls.was_told(&tenant, &call("t3", "read"), now), "the one that is left is another's");
        assert!(calls.was_told(&tenant, &call("t1", "read"), now));
        assert!(!calls.was_told(&tenant, &call("t1", "read"), now));
    }

    #[test]
    fn a_session_that_is_deleted_made_no_calls() {
        let (calls, now, tenant) = (Correlation::default(), Instant::now(), Arc::from("default"));
        for session in ["s", "another"] {
            calls.release(occasion(session, "read", session), b"{}", Vec::new(), now);
        }
        calls.forget(&occasion("s", "", "").session);
        assert_eq!(taken(calls.take(at(&tenant, "read", "{}"), &[], now)), Some("another".into()));
        assert_eq!(taken(calls.take(at(&tenant, "read", "{}"), &[], now)), None);
    }

    #[test]
    fn the_oldest_make_room() {
        let (calls, now, tenant) = (Correlation::default(), Instant::now(), Arc::from("default"));
        for number in 0..=MAX_CORRELATED_CALLS {
            calls.release(occasion("s", "read", &number.to_string()), b"{}", Vec::new(), now);
            calls.tell(at(&tenant, "read", "{}"), None, now);
        }
        assert_eq!(
            (lock(&calls.released).len(), lock(&calls.told).len()),
            (MAX_CORRELATED_CALLS, MAX_CORRELATED_CALLS)
        );
        assert_eq!(taken(calls.take(at(&tenant, "read", "{}"), &[], now)), Some("1".into()));
    }
}
