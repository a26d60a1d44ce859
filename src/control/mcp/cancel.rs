//! Calls that wait, so that a client can give one up, and so that they are not too many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::answer::{Given, Receipt};
use crate::limits::MAX_AWAITS;

/// The header by which a client's requests belong together.
pub(super) const SESSION_HEADER: &str = "mcp-session-id";

/// What of a message matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// A client begins.
    Initialize,
    /// A client gave up the request of this id.
    Cancelled(String),
    Other,
}

impl Message {
    pub(super) fn read(body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Read<'a> {
            #[serde(borrow)]
            method: Option<std::borrow::Cow<'a, str>>,
            params: Option<Params>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            request_id: Option<Id>,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Id {
            Number(i64),
            Text(String),
        }
        let Ok(read) = serde_json::from_slice::<Read<'_>>(body) else { return Message::Other };
        match (read.method.as_deref(), read.params.and_then(|params| params.request_id)) {
            (Some("initialize"), _) => Message::Initialize,
            (Some("notifications/cancelled"), Some(Id::Number(id))) => Message::Cancelled(id.to_string()),
            (Some("notifications/cancelled"), Some(Id::Text(id))) => Message::Cancelled(id),
            _ => Message::Other,
        }
    }
}

/// The calls that wait, and those that got their message a moment ago.
///
/// A client that gives a call up says so after it has stopped to listen. What was sent in between it has not read, so that
/// the message is due again.
pub(super) struct Waits {
    places: Arc<Semaphore>,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    waiting: HashMap<Key, CancellationToken>,
    /// The oldest first.
    answered: VecDeque<(Instant, Key, Receipt)>,
}

/// How long after its answer a call can be given up.
const GRACE: Duration = Duration::from_secs(30);

/// A client's session and the id of its request. Ids alone are the same with every client.
type Key = (String, String);

/// The place of one call that waits.
pub(super) struct Place<'a> {
    waits: &'a Waits,
    key: Option<Key>,
    _permit: OwnedSemaphorePermit,
}

impl Default for Waits {
    fn default() -> Self {
        Waits { places: Arc::new(Semaphore::new(MAX_AWAITS)), calls: Mutex::default() }
    }
}

impl Waits {
    /// A place for a call, if there is one; `given_up` is cancelled when the client says so.
    pub(super) fn enter(&self, headers: &HeaderMap, id: &str, given_up: CancellationToken) -> Option<Place<'_>> {
        let permit = self.places.clone().try_acquire_owned().ok()?;
        let key = key(headers, id);
        if let Some(key) = key.clone() {
            self.calls().waiting.insert(key, given_up);
        }
        Some(Place { waits: self, key, _permit: permit })
    }

    /// The client gave a call up. Gives the messages that it got and has not read.
    pub(super) fn cancel(&self, headers: &HeaderMap, id: &str, now: Instant) -> Vec<Given> {
        let Some(key) = key(headers, id) else { return Vec::new() };
        let mut calls = self.calls();
        if let Some(call) = calls.waiting.get(&key) {
            call.cancel();
            return Vec::new();
        }
        let at = calls.answered.iter().rposition(|(_, answered, _)| *answered == key);
        let answered = at.and_then(|at| calls.answered.remove(at));
        let young = answered.filter(|(at, ..)| now.saturating_duration_since(*at) < GRACE);
        young.map_or_else(Vec::new, |(.., receipt)| receipt.unread())
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// The call gets the message of this receipt; `false` when it was given up before.
    pub(super) fn answer(&self, receipt: &Receipt, now: Instant) -> bool {
        let Some(key) = self.key.clone() else { return true };
        let mut calls = self.waits.calls();
        // From here on giving up comes behind the answer.
        if calls.waiting.remove(&key).is_some_and(|call| call.is_cancelled()) {
            return false;
        }
        let old = |(at, ..): &(Instant, Key, Receipt)| now.saturating_duration_since(*at) >= GRACE;
        while calls.answered.front().is_some_and(old) || calls.answered.len() >= MAX_AWAITS {
            calls.answered.pop_front();
        }
        calls.answered.push_back((now, key, receipt.clone()));
        true
    }
}

fn key(headers: &HeaderMap, id: &str) -> Option<Key> {
    let session = headers.get(SESSION_HEADER)?.to_str().ok()?;
    Some((session.to_owned(), id.to_owned()))
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.waits.calls().waiting.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SessionKey;
    use crate::store::MessageId;

    fn headers(session: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(SESSION_HEADER), http::HeaderValue::from_static(session))])
    }

    fn given(id: i64) -> Given {
        (SessionKey { tenant: "t".into(), session: "s".into() }, MessageId::from_i64(id))
    }

    /// A call that got a message.
    fn answer(waits: &Waits, id: &str, message: i64, now: Instant) -> Receipt {
        let place = waits.enter(&headers("a"), id, CancellationToken::new()).unwrap();
        let receipt = Receipt::new();
        let (session, message) = given(message);
        assert!(receipt.has(&session, message) && place.answer(&receipt, now));
        receipt
    }

    #[test]
    fn a_client_gives_up_its_own_call_alone() {
        let (waits, now) = (Waits::default(), Instant::now());
        let (one, two) = (CancellationToken::new(), CancellationToken::new());
        let _one = waits.enter(&headers("a"), "1", one.clone()).unwrap();
        let place = waits.enter(&headers("b"), "1", two.clone()).unwrap();
        assert_eq!(waits.cancel(&headers("b"), "2", now), []);
        assert_eq!(waits.cancel(&HeaderMap::new(), "1", now), []);
        assert!(!one.is_cancelled() && !two.is_cancelled());
        assert_eq!(waits.cancel(&headers("b"), "1", now), []);
        assert!(!one.is_cancelled() && two.is_cancelled());
        assert!(!place.answer(&Receipt::new(), now), "it wants no answer any more");
        drop(place);
        assert_eq!(waits.calls().waiting.len(), 1, "what ended is not kept");
    }

    #[test]
    fn a_call_that_is_given_up_behind_its_answer_gives_the_message_back_once() {
        let (waits, now) = (Waits::default(), Instant::now());
        answer(&waits, "1", 1, now);
        assert_eq!(waits.cancel(&headers("b"), "1", now), []);
        assert_eq!(waits.cancel(&headers("a"), "1", now), [given(1)]);
        assert_eq!(waits.cancel(&headers("a"), "1", now), []);
        answer(&waits, "2", 2, now);
        assert_eq!(waits.cancel(&headers("a"), "2", now + GRACE), [], "it was read long ago");
        assert_eq!(answer(&waits, "3", 3, now).unread(), [given(3)]);
        assert_eq!(waits.cancel(&headers("a"), "3", now), [], "it is put back already");
        for id in 0..MAX_AWAITS + 1 {
            answer(&waits, &id.to_string(), 4, now);
        }
        assert_eq!(waits.calls().answered.len(), MAX_AWAITS);
    }

    #[test]
    fn there_are_only_so_many_places() {
        let waits = Waits::default();
        let places: Vec<_> = (0..MAX_AWAITS)
            .map(|id| waits.enter(&headers("a"), &id.to_string(), CancellationToken::new()).unwrap())
            .collect();
        assert!(waits.enter(&headers("a"), "more", CancellationToken::new()).is_none());
        drop(places);
        assert!(waits.enter(&headers("a"), "more", CancellationToken::new()).is_some());
    }

    #[test]
    fn messages_are_told_apart() {
        let cancelled = |id: &str| Message::Cancelled(id.to_owned());
        for (text, message) in [
            (r#"{"method":"initialize","id":1,"params":{}}"#, Message::Initialize),
            (r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#, cancelled("7")),
            (r#"{"method":"notifications\/cancelled","params":{"requestId":"x","reason":"r"}}"#, cancelled("x")),
            (r#"{"method":"notifications/cancelled","params":{}}"#, Message::Other),
            (r#"{"method":"tools/call","params":{"requestId":7}}"#, Message::Other),
            ("[]", Message::Other),
            ("", Message::Other),
        ] {
            assert_eq!(Message::read(text.as_bytes()), message, "{text}");
        }
    }
}
