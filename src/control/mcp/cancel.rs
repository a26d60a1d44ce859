//! Calls that wait, so that a client can give one up, and so that they are not too many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

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

/// The calls that wait.
pub(super) struct Waits {
    places: Arc<Semaphore>,
    calls: Mutex<HashMap<Key, CancellationToken>>,
}

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
            self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(key, given_up);
        }
        Some(Place { waits: self, key, _permit: permit })
    }

    /// The client gave a call up.
    pub(super) fn cancel(&self, headers: &HeaderMap, id: &str) {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = key(headers, id).and_then(|key| calls.get(&key)) {
            call.cancel();
        }
    }
}

fn key(headers: &HeaderMap, id: &str) -> Option<Key> {
    let session = headers.get(SESSION_HEADER)?.to_str().ok()?;
    Some((session.to_owned(), id.to_owned()))
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            self.waits.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(session: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(SESSION_HEADER), http::HeaderValue::from_static(session))])
    }

    #[test]
    fn a_client_gives_up_its_own_call_alone() {
        let waits = Waits::default();
        let (one, two) = (CancellationToken::new(), CancellationToken::new());
        let _one = waits.enter(&headers("a"), "1", one.clone()).unwrap();
        let place = waits.enter(&headers("b"), "1", two.clone()).unwrap();
        waits.cancel(&headers("b"), "2");
        waits.cancel(&HeaderMap::new(), "1");
        assert!(!one.is_cancelled() && !two.is_cancelled());
        waits.cancel(&headers("b"), "1");
        assert!(!one.is_cancelled() && two.is_cancelled());
        drop(place);
        assert_eq!(waits.calls.lock().unwrap().len(), 1, "what ended is not kept");
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
