//! An inbox without room: the callback is not admitted, and its token stays good.

use std::sync::Arc;
use std::time::Duration;

use hookgate::Body;
use hookgate::callback::{Controller, InboxQuery, Settings, TmpHook, TmpHooks, TokenKey};
use hookgate::dispatch::HyperTransport;
use hookgate::store::{MemoryLimits, MemoryStore};
use hookgate::testing::{Answer, Model};
use http::Request;
use tower::ServiceExt;

use super::stage::session;

fn settings() -> Settings {
    Settings::default().base_url("https://a.example").unwrap()
}

/// Callbacks whose inboxes hold one message.
fn hooks() -> TmpHooks {
    let store = MemoryStore::with_limits(MemoryLimits { session_messages: 1, ..MemoryLimits::default() });
    TmpHooks::new(settings(), Arc::new(store), TokenKey::random(), None)
}

async fn post(hooks: &TmpHooks, hook: &TmpHook) -> u16 {
    let request = Request::post(&hook.url).body(Body::from("done")).unwrap();
    hooks.service().oneshot(request).await.unwrap().status().as_u16()
}

async fn take(hooks: &TmpHooks) -> usize {
    let query = InboxQuery { take: true, ..InboxQuery::default() };
    hooks.inbox(&session(), query, Duration::ZERO).await.unwrap().len()
}

#[tokio::test]
async fn a_full_inbox_is_a_failed_delivery_until_somebody_reads_it() {
    let hooks = hooks();
    let first = hooks.issue(&session(), None, None).await.unwrap();
    let second = hooks.issue(&session(), None, None).await.unwrap();
    assert_eq!(post(&hooks, &first).await, 200);
    for _ in 0..2 {
        assert_eq!(post(&hooks, &second).await, 502);
        assert_eq!(hooks.open_callbacks(&session()), 1);
    }
    assert_eq!(take(&hooks).await, 1);
    assert_eq!(post(&hooks, &second).await, 200);
    assert_eq!(take(&hooks).await, 1);
}

/// The controller took it over, but that could not be recorded: the worker calls again, and the controller knows it by the
/// key that it saw before.
#[tokio::test]
async fn what_was_handed_over_and_not_recorded_comes_again_under_the_same_key() {
    let controller = Model::answering(|_, _| Answer::json(200, "{}")).await.unwrap();
    let waiting = hooks();
    let filler = waiting.issue(&session(), None, None).await.unwrap();
    assert_eq!(post(&waiting, &filler).await, 200);
    // The same store, with a controller from now on.
    let mut settings = settings();
    settings.controller = Controller::at(&controller.url());
    let transport = Some(Arc::new(HyperTransport::new()) as _);
    let hooks = TmpHooks::new(settings, waiting.store().clone(), TokenKey::random(), transport);
    let hook = hooks.issue(&session(), None, None).await.unwrap();
    assert_eq!(post(&hooks, &hook).await, 502);
    assert_eq!(hooks.list(&session(), None, 9).await.unwrap()[1].state, "open");
    assert_eq!(take(&hooks).await, 1);
    assert_eq!(post(&hooks, &hook).await, 200);
    let keys: Vec<_> = controller.requests().iter().map(|asked| asked.header("idempotency-key").to_owned()).collect();
    assert!(keys.len() == 2 && keys[0] == keys[1], "{keys:?}");
}
