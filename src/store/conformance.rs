//! The rules of [`CallbackStore`] as a suite: every store passes it.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use hookgate::store::{MemoryStore, conformance};
//! conformance::callbacks(|| async { MemoryStore::new() }).await;
//! # });
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;

use super::{
    CallbackStore, ClaimId, Claiming, InboxState, Issuing, MessageId, NewMessage, NewToken, Revoking, Settlement,
    Settling, TokenHash, TokenState, Topic,
};
use crate::id::{Digest, SessionKey};
use crate::time::Timestamp;

/// How many callers run at the same time where that matters.
const CALLERS: u32 = 50;
const TOMBSTONE: Duration = Duration::from_millis(1_000);

/// Runs every check, each on a store of its own that `make` gives.
///
/// # Panics
/// When a check fails.
pub async fn callbacks<S, F>(make: impl Fn() -> F)
where
    S: CallbackStore,
    F: Future<Output = S>,
{
    let fresh = async || Arc::new(make().await);
    a_token_is_stored_as_it_was_issued(fresh().await).await;
    prefixes_are_unique_within_a_session(fresh().await).await;
    one_claim_wins(fresh().await).await;
    a_claim_holds_until_it_lapses(fresh().await).await;
    a_claim_made_in_time_outlives_the_expiry(fresh().await).await;
    a_released_token_keeps_its_expiry(fresh().await).await;
    settling_is_one_step(fresh().await).await;
    only_the_holder_settles_and_releases(fresh().await).await;
    an_expired_token_is_not_free(fresh().await).await;
    revoking_spares_what_is_delivered(fresh().await).await;
    tokens_are_listed_in_order(fresh().await).await;
    messages_are_read_in_order(fresh().await).await;
    a_message_is_taken_once(fresh().await).await;
    messages_are_marked_from_a_state(fresh().await).await;
    sessions_are_apart(fresh().await).await;
    sweeping_forgets_what_ended(fresh().await).await;
    a_forgotten_session_leaves_nothing(fresh().await).await;
    changes_wake_listeners(fresh().await).await;
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

fn session(name: &str) -> SessionKey {
    SessionKey { tenant: "default".into(), session: name.into() }
}

fn hash(number: u32) -> TokenHash {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    TokenHash::from_bytes(bytes)
}

fn message(text: &str) -> NewMessage {
    NewMessage {
        received_at: at(100),
        purpose: Some("the build".into()),
        content_type: Some("text/plain".into()),
        text: text.into(),
        masked_text: format!("masked {text}"),
        state: InboxState::Waiting,
    }
}

fn settlement(number: u32, claim: Option<ClaimId>, text: &str) -> Settlement {
    Settlement { hash: hash(number), claim, body: Digest::of(text.as_bytes()), message: message(text) }
}

/// Issues at 0 a token that expires at 1000.
async fn issue(store: &impl CallbackStore, number: u32, name: &str) {
    let token = NewToken {
        hash: hash(number),
        session: session(name),
        purpose: Some(format!("purpose {number}")),
        expires_at: at(1_000),
    };
    assert_eq!(store.issue(token, at(0)).await.unwrap(), Issuing::Issued);
}

/// Issues a token and delivers its message at 100.
async fn deliver(store: &impl CallbackStore, number: u32, name: &str, text: &str) -> MessageId {
    issue(store, number, name).await;
    match store.settle(settlement(number, None, text), at(100)).await.unwrap() {
        Settling::Settled(id) => id,
        other => panic!("{other:?}"),
    }
}

async fn texts(store: &impl CallbackStore, name: &str, after: Option<MessageId>) -> Vec<String> {
    let messages = store.messages(session(name), after, 100).await.unwrap();
    messages.into_iter().map(|message| message.text).collect()
}

async fn state(store: &impl CallbackStore, number: u32) -> TokenState {
    store.token(hash(number)).await.unwrap().unwrap().state
}

async fn a_token_is_stored_as_it_was_issued(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    let token = store.token(hash(1)).await.unwrap().unwrap();
    assert_eq!((token.hash, token.session, token.purpose.as_deref()), (hash(1), session("s"), Some("purpose 1")));
    assert_eq!((token.created_at, token.expires_at, token.state), (at(0), at(1_000), TokenState::Open));
    assert_eq!(store.token(hash(2)).await.unwrap(), None);
    assert_eq!((store.open_tokens(&session("s"), at(999)), store.open_tokens(&session("s"), at(1_000))), (1, 0));
    assert_eq!(store.open_tokens(&session("t"), at(0)), 0);
}

async fn prefixes_are_unique_within_a_session(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    let mut bytes = *hash(1).as_bytes();
    bytes[31] = 1;
    let twin = |name| NewToken {
        hash: TokenHash::from_bytes(bytes),
        session: session(name),
        purpose: None,
        expires_at: at(9),
    };
    assert_eq!(store.issue(twin("s"), at(0)).await.unwrap(), Issuing::Collision);
    assert_eq!(store.issue(twin("t"), at(0)).await.unwrap(), Issuing::Issued);
}

async fn one_claim_wins(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    let claims = (0..CALLERS).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { store.claim(hash(1), ClaimId::from_u128(number.into()), at(500), at(1)).await })
    });
    let won = join_all(claims).await.into_iter().map(|claim| claim.unwrap().unwrap());
    assert_eq!(won.filter(|claim| matches!(claim, Claiming::Claimed(_))).count(), 1);
}

async fn a_claim_holds_until_it_lapses(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    let (first, second) = (ClaimId::from_u128(1), ClaimId::from_u128(2));
    assert!(matches!(store.claim(hash(1), first, at(500), at(1)).await.unwrap(), Claiming::Claimed(_)));
    let held = store.claim(hash(1), second, at(900), at(499)).await.unwrap();
    let Claiming::NotFree(Some(token)) = held else { panic!("{held:?}") };
    assert_eq!(token.state, TokenState::Claimed { claim: first, until: at(500) });
    assert!(matches!(store.settle(settlement(1, None, "x"), at(499)).await.unwrap(), Settling::NotFree(Some(_))));
    assert!(matches!(store.claim(hash(1), second, at(900), at(500)).await.unwrap(), Claiming::Claimed(_)));
    assert!(!store.release(hash(1), first).await.unwrap(), "the first claim is over");
    assert!(matches!(
        store.settle(settlement(1, Some(first), "x"), at(501)).await.unwrap(),
        Settling::NotFree(Some(_))
    ));
    assert!(matches!(store.settle(settlement(1, Some(second), "x"), at(501)).await.unwrap(), Settling::Settled(_)));
}

async fn a_claim_made_in_time_outlives_the_expiry(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    let claim = ClaimId::from_u128(1);
    assert!(matches!(store.claim(hash(1), claim, at(1_500), at(999)).await.unwrap(), Claiming::Claimed(_)));
    assert_eq!(store.open_tokens(&session("s"), at(1_400)), 1);
    assert!(matches!(store.settle(settlement(1, Some(claim), "x"), at(1_600)).await.unwrap(), Settling::Settled(_)));
}

async fn a_released_token_keeps_its_expiry(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    let claim = ClaimId::from_u128(1);
    store.claim(hash(1), claim, at(500), at(1)).await.unwrap();
    assert!(store.release(hash(1), claim).await.unwrap());
    assert!(!store.release(hash(1), claim).await.unwrap());
    assert_eq!(state(&*store, 1).await, TokenState::Open);
    assert!(matches!(store.settle(settlement(1, None, "x"), at(999)).await.unwrap(), Settling::Settled(_)));
}

async fn settling_is_one_step(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    assert!(!store.may_have_messages(&session("s")));
    let settles = (0..CALLERS).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { store.settle(settlement(1, None, &number.to_string()), at(100)).await })
    });
    let settled: Vec<_> = join_all(settles).await.into_iter().map(|settled| settled.unwrap().unwrap()).collect();
    assert_eq!(settled.iter().filter(|settled| matches!(settled, Settling::Settled(_))).count(), 1);
    assert!(store.may_have_messages(&session("s")));
    let texts = texts(&*store, "s", None).await;
    assert_eq!(texts.len(), 1, "each settlement stores its message, and no other does");
    let body = Digest::of(texts[0].as_bytes());
    assert_eq!(state(&*store, 1).await, TokenState::Delivered { at: at(100), body });
    assert_eq!(store.open_tokens(&session("s"), at(100)), 0);
    assert_eq!(store.settle(settlement(2, None, "x"), at(100)).await.unwrap(), Settling::NotFree(None));
}

async fn only_the_holder_settles_and_releases(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    let (holder, other) = (ClaimId::from_u128(1), ClaimId::from_u128(2));
    assert!(matches!(store.settle(settlement(1, Some(holder), "x"), at(1)).await.unwrap(), Settling::NotFree(Some(_))));
    store.claim(hash(1), holder, at(500), at(1)).await.unwrap();
    assert!(matches!(store.settle(settlement(1, Some(other), "x"), at(2)).await.unwrap(), Settling::NotFree(Some(_))));
    assert!(!store.release(hash(1), other).await.unwrap());
    // Its lease has lapsed, but nobody else came.
    assert!(matches!(store.settle(settlement(1, Some(holder), "x"), at(600)).await.unwrap(), Settling::Settled(_)));
}

async fn an_expired_token_is_not_free(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    assert!(matches!(store.settle(settlement(1, None, "x"), at(1_000)).await.unwrap(), Settling::NotFree(Some(_))));
    let claiming = store.claim(hash(1), ClaimId::from_u128(1), at(9_000), at(1_000)).await.unwrap();
    assert!(matches!(claiming, Claiming::NotFree(Some(_))));
    assert!(texts(&*store, "s", None).await.is_empty());
}

async fn revoking_spares_what_is_delivered(store: Arc<impl CallbackStore>) {
    let revoke = async |number: u32, now| store.revoke(session("s"), hash(number).prefix(), at(now)).await.unwrap();
    issue(&*store, 1, "s").await;
    assert_eq!((revoke(1, 5).await, revoke(1, 6).await), (Revoking::Revoked, Revoking::Revoked));
    assert_eq!(state(&*store, 1).await, TokenState::Revoked { at: at(5) });
    assert!(matches!(store.settle(settlement(1, None, "x"), at(7)).await.unwrap(), Settling::NotFree(Some(_))));
    deliver(&*store, 2, "s", "x").await;
    assert_eq!(revoke(2, 200).await, Revoking::Delivered);
    issue(&*store, 3, "s").await;
    store.claim(hash(3), ClaimId::from_u128(1), at(500), at(1)).await.unwrap();
    assert_eq!((revoke(3, 499).await, revoke(3, 500).await), (Revoking::Claimed, Revoking::Revoked));
    assert_eq!(revoke(4, 1).await, Revoking::Unknown);
    issue(&*store, 5, "t").await;
    assert_eq!(revoke(5, 1).await, Revoking::Unknown, "another session's token");
}

async fn tokens_are_listed_in_order(store: Arc<impl CallbackStore>) {
    for number in [3, 1, 2] {
        issue(&*store, number, "s").await;
    }
    let list = async |after: Option<u32>, limit| {
        let tokens = store.tokens(session("s"), after.map(|number| hash(number).prefix()), limit).await.unwrap();
        tokens.into_iter().map(|token| token.hash).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 100).await, [hash(3), hash(1), hash(2)]);
    assert_eq!(list(None, 2).await, [hash(3), hash(1)]);
    assert_eq!(list(Some(1), 100).await, [hash(2)]);
    assert!(list(Some(2), 100).await.is_empty());
}

async fn messages_are_read_in_order(store: Arc<impl CallbackStore>) {
    let mut ids = Vec::new();
    for (number, text) in [(1, "a"), (2, "b"), (3, "c")] {
        ids.push(deliver(&*store, number, "s", text).await);
    }
    assert!(ids.is_sorted_by(|left, right| left < right) && ids[2].as_i64() < 1 << 53);
    assert_eq!(texts(&*store, "s", None).await, ["a", "b", "c"]);
    assert_eq!(texts(&*store, "s", Some(ids[0])).await, ["b", "c"]);
    assert!(texts(&*store, "s", Some(ids[2])).await.is_empty());
    let first = store.messages(session("s"), None, 1).await.unwrap().remove(0);
    assert_eq!((first.id, first.received_at, first.state), (ids[0], at(100), InboxState::Waiting));
    assert_eq!((first.purpose.as_deref(), first.content_type.as_deref()), (Some("the build"), Some("text/plain")));
    assert_eq!((first.text.as_str(), first.masked_text.as_str()), ("a", "masked a"));
}

async fn a_message_is_taken_once(store: Arc<impl CallbackStore>) {
    let first = deliver(&*store, 1, "s", "a").await;
    for number in 2..=CALLERS {
        deliver(&*store, number, "s", "x").await;
    }
    let takes = (0..CALLERS).map(|_| {
        let store = store.clone();
        tokio::spawn(async move { store.take(session("s"), None, 7, InboxState::Injected).await })
    });
    let taken: Vec<_> = join_all(takes).await.into_iter().flat_map(|taken| taken.unwrap().unwrap()).collect();
    let mut ids: Vec<_> = taken.iter().map(|message| message.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), taken.len()), (CALLERS as usize, CALLERS as usize));
    assert!(taken.iter().all(|message| message.state == InboxState::Injected));
    assert!(!store.may_have_messages(&session("s")));
    assert!(store.take(session("s"), None, 7, InboxState::Taken).await.unwrap().is_empty());
    assert_eq!(
        store.messages(session("s"), None, 1).await.unwrap()[0].state,
        InboxState::Injected,
        "it can be read on"
    );
    // Only what comes after an id is taken when one is given.
    let last = deliver(&*store, CALLERS + 1, "s", "y").await;
    assert!(store.take(session("s"), Some(last), 7, InboxState::Taken).await.unwrap().is_empty());
    assert_eq!(store.take(session("s"), Some(first), 7, InboxState::Taken).await.unwrap().len(), 1);
}

async fn messages_are_marked_from_a_state(store: Arc<impl CallbackStore>) {
    let id = deliver(&*store, 1, "s", "a").await;
    let mark = async |from, to| store.mark(session("s"), id, from, to).await.unwrap();
    assert!(!mark(InboxState::Injected, InboxState::Withheld).await);
    assert!(mark(InboxState::Waiting, InboxState::Injected).await);
    assert!(!store.may_have_messages(&session("s")));
    assert!(mark(InboxState::Injected, InboxState::Withheld).await);
    assert_eq!(store.messages(session("s"), None, 1).await.unwrap()[0].state, InboxState::Withheld);
    assert!(!store.mark(session("t"), id, InboxState::Withheld, InboxState::Taken).await.unwrap());
}

async fn sessions_are_apart(store: Arc<impl CallbackStore>) {
    deliver(&*store, 1, "s", "a").await;
    issue(&*store, 2, "t").await;
    let other = SessionKey { tenant: "blue".into(), session: "s".into() };
    let token = NewToken { hash: hash(3), session: other.clone(), purpose: None, expires_at: at(1_000) };
    store.issue(token, at(0)).await.unwrap();
    assert_eq!(store.sessions_named("s".into()).await.unwrap(), [other.clone(), session("s")]);
    assert!(store.sessions_named("u".into()).await.unwrap().is_empty());
    assert!(texts(&*store, "t", None).await.is_empty());
    assert!(store.messages(other.clone(), None, 10).await.unwrap().is_empty());
    assert!(store.take(other.clone(), None, 10, InboxState::Taken).await.unwrap().is_empty());
    assert!(!store.may_have_messages(&other));
    assert_eq!(store.tokens(session("s"), None, 10).await.unwrap().len(), 1);
}

async fn sweeping_forgets_what_ended(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "expires at 1000").await;
    deliver(&*store, 2, "s", "taken").await;
    store.take(session("s"), None, 1, InboxState::Taken).await.unwrap();
    deliver(&*store, 3, "s", "waits").await;
    assert_eq!(store.sweep(TOMBSTONE, at(1_099)).await.unwrap(), 0);
    assert_eq!(store.sweep(TOMBSTONE, at(1_100)).await.unwrap(), 3, "two spent tokens and the message that was taken");
    assert_eq!(texts(&*store, "s", None).await, ["waits"]);
    assert!(store.token(hash(1)).await.unwrap().is_some());
    assert_eq!(store.sweep(TOMBSTONE, at(2_000)).await.unwrap(), 1);
    assert_eq!(store.token(hash(1)).await.unwrap(), None);
    let old = at(100).after(crate::limits::MAX_MESSAGE_AGE);
    assert_eq!(store.sweep(TOMBSTONE, old).await.unwrap(), 1);
    assert!(store.sessions_named("s".into()).await.unwrap().is_empty());
    assert!(!store.may_have_messages(&session("s")));
}

async fn a_forgotten_session_leaves_nothing(store: Arc<impl CallbackStore>) {
    deliver(&*store, 1, "s", "a").await;
    issue(&*store, 2, "s").await;
    issue(&*store, 3, "t").await;
    store.forget(session("s")).await.unwrap();
    assert!(texts(&*store, "s", None).await.is_empty() && !store.may_have_messages(&session("s")));
    assert_eq!((store.token(hash(1)).await.unwrap(), store.token(hash(2)).await.unwrap()), (None, None));
    assert!(store.token(hash(3)).await.unwrap().is_some());
}

/// On the node that makes a change, its listeners are woken before the change returns.
async fn changes_wake_listeners(store: Arc<impl CallbackStore>) {
    issue(&*store, 1, "s").await;
    let claim = ClaimId::from_u128(1);
    store.claim(hash(1), claim, at(500), at(1)).await.unwrap();
    let mut held = store.listen(Topic::Token(hash(1)));
    store.claim(hash(1), ClaimId::from_u128(2), at(500), at(2)).await.unwrap();
    store.settle(settlement(1, None, "x"), at(2)).await.unwrap();
    store.release(hash(1), ClaimId::from_u128(2)).await.unwrap();
    assert_eq!((&mut held).now_or_never(), None, "what changes nothing wakes nobody");
    let (released, other) = (store.listen(Topic::Token(hash(1))), store.listen(Topic::Token(hash(2))));
    store.release(hash(1), claim).await.unwrap();
    assert_eq!((released.now_or_never(), other.now_or_never()), (Some(()), None));
    let (spent, arrived) = (store.listen(Topic::Token(hash(1))), store.listen(Topic::Inbox(session("s"))));
    store.settle(settlement(1, None, "x"), at(100)).await.unwrap();
    assert_eq!((spent.now_or_never(), arrived.now_or_never()), (Some(()), Some(())));
    issue(&*store, 3, "s").await;
    let revoked = store.listen(Topic::Token(hash(3)));
    store.revoke(session("s"), hash(3).prefix(), at(1)).await.unwrap();
    assert_eq!(revoked.now_or_never(), Some(()));
}
