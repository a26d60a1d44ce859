//! The store in memory: the rules of every store, and its own bounds.

use hookgate::id::{Digest, SessionKey};
use hookgate::store::{
    CallbackStore, InboxState, Issuing, MemoryLimits, MemoryStore, NewMessage, NewToken, Settlement, Settling,
    TokenHash, conformance,
};
use hookgate::time::Timestamp;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn session(name: &str) -> SessionKey {
    SessionKey { tenant: "default".into(), session: name.into() }
}

fn hash(number: u8) -> TokenHash {
    TokenHash::from_bytes([number; 32])
}

/// Issues at that time a token that lives 1000 ms.
async fn issue(store: &MemoryStore, number: u8, name: &str, now: i64) -> Issuing {
    let token = NewToken { hash: hash(number), session: session(name), purpose: None, expires_at: at(now + 1000) };
    store.issue(token, at(now)).await.unwrap()
}

async fn settle(store: &MemoryStore, number: u8, bytes: usize) -> Settling {
    let message = NewMessage {
        received_at: at(1),
        purpose: None,
        content_type: None,
        text: "x".repeat(bytes),
        masked_text: String::new(),
        state: InboxState::Waiting,
    };
    store.settle(Settlement { hash: hash(number), claim: None, body: Digest::EMPTY, message }, at(1)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_keeps_the_rules_of_every_store() {
    conformance::callbacks(|| async { MemoryStore::new() }).await;
}

#[tokio::test]
async fn a_sessions_tokens_are_bounded_and_ended_ones_make_room() {
    let store = MemoryStore::with_limits(MemoryLimits { session_tokens: 2, ..MemoryLimits::default() });
    assert_eq!(issue(&store, 1, "s", 0).await, Issuing::Issued);
    assert_eq!(issue(&store, 2, "s", 500).await, Issuing::Issued);
    assert_eq!(issue(&store, 3, "s", 999).await, Issuing::Full);
    assert_eq!(issue(&store, 3, "other", 999).await, Issuing::Issued);
    assert_eq!(issue(&store, 4, "s", 1000).await, Issuing::Issued);
    assert_eq!(store.token(hash(1)).await.unwrap(), None, "the one that ended");
    assert!(store.token(hash(2)).await.unwrap().is_some());
}

#[tokio::test]
async fn all_tokens_are_bounded_and_those_that_ended_first_make_room() {
    let store = MemoryStore::with_limits(MemoryLimits { tokens: 2, ..MemoryLimits::default() });
    assert_eq!(issue(&store, 1, "a", 0).await, Issuing::Issued);
    assert_eq!(issue(&store, 2, "b", 10).await, Issuing::Issued);
    assert_eq!(issue(&store, 3, "c", 999).await, Issuing::Full);
    assert_eq!(issue(&store, 3, "c", 1010).await, Issuing::Issued);
    assert_eq!(store.token(hash(1)).await.unwrap(), None);
    assert!(store.token(hash(2)).await.unwrap().is_some());
}

#[tokio::test]
async fn messages_that_wait_are_never_dropped_for_new_ones() {
    let store = MemoryStore::with_limits(MemoryLimits { session_messages: 2, bytes: 100, ..MemoryLimits::default() });
    for number in 1..=5 {
        issue(&store, number, "s", 0).await;
    }
    assert!(matches!(settle(&store, 1, 40).await, Settling::Settled(_)));
    assert_eq!(settle(&store, 2, 61).await, Settling::Full, "by bytes");
    assert!(matches!(settle(&store, 2, 60).await, Settling::Settled(_)));
    assert_eq!(settle(&store, 3, 0).await, Settling::Full, "by number");
    assert!(store.token(hash(3)).await.unwrap().unwrap().is_free(at(1)), "it can be delivered later");
    store.take(session("s"), None, 1, InboxState::Taken).await.unwrap();
    assert!(matches!(settle(&store, 3, 40).await, Settling::Settled(_)), "in the place of the one that was taken");
    store.take(session("s"), None, 10, InboxState::Taken).await.unwrap();
    assert!(matches!(settle(&store, 4, 100).await, Settling::Settled(_)), "all that were taken make room");
    assert_eq!(store.messages(session("s"), None, 10).await.unwrap().len(), 1);
}
