//! With a controller: what it is sent, and what its answers mean.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use hookgate::store::InboxState;
use hookgate::testing::{Answer, Gate, Model};

use super::stage::{BASE, Host, RECEIVED, SESSION, Stage, assert_answer, assert_refused, path, session};
use crate::away::Away;

/// A hookgate whose controller is that server.
async fn stage(host: Host, controller: &Model) -> Stage {
    Stage::with(host, &config(&controller.url())).await
}

fn config(url: &str) -> String {
    format!("{BASE}[delivery]\ncontroller_url = \"{url}/prompt\"\n")
}

async fn answering(status: u16) -> Model {
    Model::answering(move |_, _| Answer::json(status, "{}")).await.unwrap()
}

pub(crate) async fn a_message_is_handed_over(host: Host) {
    let controller = answering(204).await;
    let text = format!(
        "{}controller_connection = \"runtime\"\n[connections.runtime]\nbearer_env = \"RUNTIME\"\n",
        config(&controller.url())
    );
    let stage = Stage::with_environment(host, &text, &[("RUNTIME", "s3cret")]).await;
    let hook = stage.issue().await;
    let hash = stage.hooks.list(&session(), None, 1).await.unwrap().remove(0).hash;
    assert_answer(&stage.post(&hook, "done").await, 200, RECEIVED);

    let asked = controller.requests().remove(0);
    assert_eq!((asked.method.as_str(), asked.uri.path()), ("POST", "/prompt"));
    assert_eq!(asked.header("authorization"), "Bearer s3cret");
    assert_eq!(asked.header("content-type"), "application/json");
    let body = asked.json();
    let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["sessionId", "message", "token", "purpose"]);
    assert_eq!((&body["sessionId"], &body["token"]), (&SESSION.into(), &hash.as_str().into()));
    assert_eq!(body["purpose"], "the build");
    let message = body["message"].as_str().unwrap();
    assert!(message.starts_with("[hookgate] One-time callback received at "), "{message}");
    assert!(
        message.contains(&format!("\nToken: {hash}\nPurpose: the build\n")),
        "the token is not spent yet: {message}"
    );
    assert!(message.ends_with("\n\nPayload:\ndone"), "{message}");

    // The inbox says that somebody has it, and it does not become part of the conversation as well.
    assert_eq!(stage.messages().await[0].state, InboxState::Taken);
    assert!(!stage.hooks.may_have_messages(&session()));
    assert!(stage.hooks.take_for_injection(&session()).await.is_empty());
    assert_refused(&stage.post(&hook, "done").await, 410, "token already used");
    assert_eq!(controller.requests().len(), 1);
}

pub(crate) async fn a_failed_delivery_burns_nothing(host: Host) {
    let controller =
        Model::answering(|number, _| Answer::json(if number < 2 { 503 } else { 200 }, "{}")).await.unwrap();
    let stage = stage(host, &controller).await;
    let hook = stage.issue().await;
    let before = stage.hooks.list(&session(), None, 1).await.unwrap();
    for _ in 0..2 {
        assert_refused(&stage.post(&hook, "done").await, 502, "delivery failed");
        assert_eq!(stage.hooks.list(&session(), None, 1).await.unwrap(), before, "open, with its old expiry");
    }
    assert_answer(&stage.post(&hook, "done").await, 200, RECEIVED);
    let requests = controller.requests();
    let keys: Vec<&str> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert!(keys[0].len() == 36 && keys[1..] == [keys[0]; 2], "{keys:?}");
    assert_ne!(keys[0], hook.token);
    assert_eq!(stage.messages().await.len(), 1);
}

pub(crate) async fn an_answer_other_than_success_is_a_failure(host: Host) {
    for status in [302, 307, 400, 401, 409, 500] {
        let controller = Model::answering(move |_, _| Answer::json(status, "{}").header("location", "/prompt")).await;
        let controller = controller.unwrap();
        let stage = stage(host, &controller).await;
        assert_refused(&stage.post(&stage.issue().await, "done").await, 502, "delivery failed");
        assert_eq!(controller.requests().len(), 1, "{status}: redirects are not followed, and nothing is repeated");
    }
}

pub(crate) async fn silence_is_a_failure(host: Host) {
    let gate = Gate::default();
    let silent = gate.clone();
    let controller = Model::answering(move |_, _| Answer::json(200, "{}").after(&silent)).await.unwrap();
    let text = config(&controller.url()).replace("[delivery]", "deliver_timeout_ms = 200\n[delivery]");
    let stage = Stage::with(host, &text).await;
    let hook = stage.issue().await;
    assert_refused(&stage.post(&hook, "done").await, 502, "delivery failed");
    gate.open();
    assert_answer(&stage.post(&hook, "done").await, 200, RECEIVED);
}

pub(crate) async fn a_controller_that_is_away_is_a_failure(host: Host) {
    let away = Away::new();
    let stage = Stage::with(host, &config(&format!("http://{}", away.address))).await;
    let hook = stage.issue().await;
    assert_refused(&stage.post(&hook, "done").await, 502, "delivery failed");
    assert_eq!(stage.hooks.list(&session(), None, 1).await.unwrap()[0].state, "open");
}

pub(crate) async fn fifty_simultaneous_posts_ask_the_controller_once(host: Host) {
    let controller = answering(200).await;
    let stage = stage(host, &controller).await;
    let hook = stage.issue().await;
    let answers = join_all((0..50).map(|number| stage.post(&hook, format!("post {number}")))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status() == 200).count(), 1);
    for answer in answers.iter().filter(|answer| answer.status() != 200) {
        assert_refused(answer, 410, "token already used");
    }
    assert_eq!((controller.requests().len(), stage.messages().await.len()), (1, 1));
}

pub(crate) async fn a_second_post_gets_its_turn_when_the_first_fails(host: Host) {
    let gate = Gate::default();
    let first = gate.clone();
    let controller = Model::answering(move |number, _| match number {
        0 => Answer::json(500, "{}").after(&first),
        _ => Answer::json(200, "{}"),
    });
    let controller = controller.await.unwrap();
    let stage = stage(host, &controller).await;
    let hook = stage.issue().await;
    let answered = AtomicUsize::new(0);
    let second = async {
        controller.at_least(1).await;
        let mut wire = stage.wire().await;
        let head = format!("POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\n", path(&hook));
        wire.send(format!("{head}expect: 100-continue\r\n\r\n")).await;
        // It is told to send, so its token was found to be good; from then on it waits for the first.
        assert!(wire.head().await.unwrap().starts_with("HTTP/1.1 100 "));
        wire.send("second").await;
        assert_eq!(answered.load(Ordering::SeqCst), 0);
        gate.open();
        wire.answer().await
    };
    let first = async {
        let answer = stage.post(&hook, "first").await;
        answered.fetch_add(1, Ordering::SeqCst);
        answer
    };
    let (first, second) = tokio::join!(first, second);
    assert_refused(&first, 502, "delivery failed");
    assert_answer(&second, 200, RECEIVED);
    assert!(stage.messages().await[0].text.ends_with("\nsecond"));
}

pub(crate) async fn a_token_in_delivery_is_not_revoked(host: Host) {
    let gate = Gate::default();
    let held = gate.clone();
    let controller = Model::answering(move |_, _| Answer::json(200, "{}").after(&held)).await.unwrap();
    let stage = stage(host, &controller).await;
    let hook = stage.issue().await;
    let list = format!("GET /hookgate/v1/sessions/{SESSION}/tmp-hooks");
    let revoking = async {
        controller.at_least(1).await;
        let hash = stage.control(&list, "", 200).await["items"][0]["hash"].as_str().unwrap().to_owned();
        let revoke = format!("DELETE /hookgate/v1/sessions/{SESSION}/tmp-hooks/{hash}");
        stage.control(&revoke, "", 409).await;
        assert_eq!(stage.control(&list, "", 200).await["items"][0]["state"], "claimed");
        gate.open();
    };
    let (answer, ()) = tokio::join!(stage.post(&hook, "done"), revoking);
    assert_answer(&answer, 200, RECEIVED);
}

pub(crate) async fn a_worker_that_leaves_does_not_undo_its_delivery(host: Host) {
    let gate = Gate::default();
    let held = gate.clone();
    let controller = Model::answering(move |_, _| Answer::json(200, "{}").after(&held)).await.unwrap();
    let stage = stage(host, &controller).await;
    let hook = stage.issue().await;
    let arrival = stage.hooks.arrival(&session());
    let mut wire = stage.wire().await;
    wire.send(format!("POST {} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\ndone", path(&hook))).await;
    controller.at_least(1).await;
    drop(wire);
    gate.open();
    arrival.await;
    assert_eq!(stage.messages().await.len(), 1);
    assert_refused(&stage.post(&hook, "done").await, 410, "token already used");
}
