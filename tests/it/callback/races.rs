//! Several who want one token.

use std::time::Duration;

use futures_util::future::join_all;
use hookgate::store::{ClaimId, Claiming};
use hookgate::time::Timestamp;

use super::stage::{BASE, Host, RECEIVED, Stage, assert_answer, assert_refused, session};

pub(crate) async fn fifty_simultaneous_posts_are_one_message(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = stage.issue().await;
    let answers = join_all((0..50).map(|number| stage.post(&hook, format!("post {number}")))).await;
    let received = answers.iter().filter(|answer| answer.status() == 200);
    assert_eq!(received.count(), 1);
    for answer in answers.iter().filter(|answer| answer.status() != 200) {
        assert_refused(answer, 410, "token already used");
    }
    assert_eq!(stage.messages().await.len(), 1);
}

pub(crate) async fn a_claim_of_the_dead_lapses(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = stage.issue().await;
    // As a node does that dies while it delivers.
    let hash = stage.hooks.store().tokens(session(), None, 1).await.unwrap().remove(0).hash;
    let now = Timestamp::now();
    let until = now.after(Duration::from_millis(300));
    let claiming = stage.hooks.store().claim(hash, ClaimId::random(), until, now).await.unwrap();
    assert!(matches!(claiming, Claiming::Claimed(_)));
    assert_answer(&stage.post(&hook, "done").await, 200, RECEIVED);
    assert!(Timestamp::now() >= until, "it had to wait for the lease");
}

pub(crate) async fn the_same_body_is_received_again_within_the_grace(host: Host) {
    let stage = Stage::with(host, &format!("{BASE}replay_grace_seconds = 3600\n")).await;
    let hook = stage.issue().await;
    for _ in 0..3 {
        assert_answer(&stage.post(&hook, "done").await, 200, RECEIVED);
    }
    assert_refused(&stage.post(&hook, "done!").await, 410, "token already used");
    assert_eq!(stage.messages().await.len(), 1);
}
