//! The calls of hookgate's tools that agents just got, so that the MCP server knows in which session a call was made: what
//! reaches it names no session, but it is the call that the model made a moment before.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::Value;

use super::{TmpHooks, tool};
use crate::id::{Digest, SessionKey};
use crate::limits::{CORRELATION_WINDOW, MAX_CORRELATED_CALLS};
use crate::wire::answer::Call;
use crate::wire::same::same_call;

/// Which session a call belongs to, as far as it can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// It is this one's.
    Session(SessionKey),
    /// Several sessions got such a call.
    Several,
    /// No session did.
    Nobody,
}

/// The calls of the last moments, oldest first.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<VecDeque<Released>>);

#[derive(Debug)]
struct Released {
    at: Instant,
    session: SessionKey,
    id: Digest,
    what: Digest,
}

/// A call as it reached the MCP server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// The tool, by its own name.
    pub(crate) tool: &'a str,
    /// Its arguments.
    pub(crate) arguments: &'a Value,
    /// The only tenant whose sessions count, if there is one.
    pub(crate) tenant: Option<&'a str>,
}

impl TmpHooks {
    /// Remembers that an agent is about to get a call of one of hookgate's tools, with these arguments.
    pub(crate) fn note_call(&self, session: &SessionKey, call: &Call, input: &[u8]) {
        self.inner.calls.note(session, call, input, Instant::now());
    }

    /// Whose call it is that reached the MCP server; `id` is what the model's API called it.
    pub(crate) fn caller(&self, asked: Asked<'_>, id: Option<&str>) -> Caller {
        self.inner.calls.find(asked, id, Instant::now())
    }
}

impl Calls {
    /// Remembers a call that is about to be released. Calls of other tools, and such as no MCP server could get, are not kept.
    pub(super) fn note(&self, session: &SessionKey, call: &Call, input: &[u8], now: Instant) {
        let (Some(tool), Ok(arguments)) = (tool::named(&call.name), serde_json::from_slice(input)) else { return };
        let what = same_call(tool, &arguments);
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while calls.front().is_some_and(|first| first.is_old(now)) || calls.len() >= MAX_CORRELATED_CALLS {
            calls.pop_front();
        }
        calls.push_back(Released { at: now, session: session.clone(), id: Digest::of(call.id.as_bytes()), what });
    }

    /// Forgets the calls of a session.
    pub(super) fn forget(&self, session: &SessionKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|call| call.session != *session);
    }

    /// Whose call it is. With an id it is the one of that id, which has to be of the same tool with the same arguments;
    /// without one it is the one of the tool and the arguments.
    ///
    /// A call stays known after it was found, because clients repeat requests whose answer they did not get.
    pub(super) fn find(&self, asked: Asked<'_>, id: Option<&str>, now: Instant) -> Caller {
        let (what, id) = (same_call(asked.tool, asked.arguments), id.map(|id| Digest::of(id.as_bytes())));
        let calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = calls.iter().filter(|call| {
            let same = call.what == what && id.is_none_or(|id| call.id == id);
            same && !call.is_old(now) && asked.tenant.is_none_or(|tenant| *call.session.tenant == *tenant)
        });
        match found.next() {
            None => Caller::Nobody,
            Some(first) if found.all(|other| other.session == first.session) => Caller::Session(first.session.clone()),
            Some(_) => Caller::Several,
        }
    }
}

impl Released {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) >= CORRELATION_WINDOW
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn session(tenant: &str, session: &str) -> SessionKey {
        SessionKey { tenant: tenant.into(), session: session.into() }
    }

    fn call(id: &str, input: &'static str) -> Call {
        let name = "mcp__hookgate__request_tmp_hook".into();
        Call { id: id.into(), name, input: bytes::Bytes::from_static(input.as_bytes()) }
    }

    fn note(calls: &Calls, key: &SessionKey, call: &Call, now: Instant) {
        calls.note(key, call, &call.input, now);
    }

    fn asked(arguments: &Value) -> Asked<'_> {
        Asked { tool: tool::REQUEST, arguments, tenant: None }
    }

    #[test]
    fn a_call_is_found_by_its_id_and_else_when_nobody_else_made_the_same() {
        let (calls, now) = (Calls::default(), Instant::now());
        let (one, two) = (session("a", "one"), session("b", "two"));
        note(&calls, &one, &call("toolu_1", r#"{"purpose": "x", "ttl_seconds": 600.0}"#), now);
        let arguments = json!({"ttl_seconds": 600, "purpose": "x"});
        assert_eq!(calls.find(asked(&arguments), None, now), Caller::Session(one.clone()));
        assert_eq!(calls.find(asked(&arguments), Some("toolu_1"), now), Caller::Session(one.clone()));

        note(&calls, &two, &call("toolu_2", r#"{"ttl_seconds": 600, "purpose": "\u0078"}"#), now);
        assert_eq!(calls.find(asked(&arguments), None, now), Caller::Several);
        assert_eq!(calls.find(asked(&arguments), Some("toolu_2"), now), Caller::Session(two.clone()));
        assert_eq!(calls.find(Asked { tenant: Some("b"), ..asked(&arguments) }, None, now), Caller::Session(two));
        assert_eq!(calls.find(Asked { tenant: Some("c"), ..asked(&arguments) }, None, now), Caller::Nobody);
    }

    #[test]
    fn another_tool_other_arguments_and_another_id_are_another_call() {
        let (calls, now) = (Calls::default(), Instant::now());
        note(&calls, &session("a", "one"), &call("toolu_1", r#"{"purpose": "x"}"#), now);
        for other in [json!({}), json!({"purpose": "y"}), json!({"purpose": null}), json!({"purpose": ["x"]})] {
            assert_eq!(calls.find(asked(&other), Some("toolu_1"), now), Caller::Nobody, "{other}");
        }
        let same = json!({"purpose": "x"});
        assert_eq!(calls.find(asked(&same), Some("toolu_2"), now), Caller::Nobody);
        assert_eq!(calls.find(Asked { tool: tool::AWAIT, ..asked(&same) }, None, now), Caller::Nobody);
    }

    #[test]
    fn calls_are_forgotten_with_time_and_by_number() {
        let (calls, now) = (Calls::default(), Instant::now());
        let key = session("a", "one");
        note(&calls, &key, &call("toolu_1", "{}"), now);
        let nothing = json!({});
        assert_eq!(calls.find(asked(&nothing), None, now + CORRELATION_WINDOW), Caller::Nobody);
        let last = now + CORRELATION_WINDOW - Duration::from_millis(1);
        assert_eq!(calls.find(asked(&nothing), None, last), Caller::Session(key.clone()));
        for number in 0..MAX_CORRELATED_CALLS {
            note(&calls, &key, &call(&number.to_string(), "{}"), last);
        }
        assert_eq!(calls.find(asked(&nothing), Some("toolu_1"), last), Caller::Nobody, "the oldest makes room");
        assert_eq!(calls.0.lock().unwrap().len(), MAX_CORRELATED_CALLS);
    }

    #[test]
    fn what_no_mcp_server_could_get_is_not_kept() {
        let (calls, now) = (Calls::default(), Instant::now());
        let mut other = call("toolu_1", "{}");
        other.name = "Bash".into();
        note(&calls, &session("a", "one"), &other, now);
        note(&calls, &session("a", "one"), &call("toolu_2", "{"), now);
        assert!(calls.0.lock().unwrap().is_empty());
    }
}
