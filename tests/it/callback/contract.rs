//! The rows of the HTTP contract that concern path, method and token.

use std::time::Duration;

use super::stage::{BASE, Host, RECEIVED, SESSION, Stage, assert_answer, assert_refused, path, session, until};

pub(crate) async fn the_first_post_is_received_and_the_second_is_gone(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = stage.issue().await;
    assert_answer(&stage.post(&hook, "done").await, 200, RECEIVED);
    assert_refused(&stage.post(&hook, "done").await, 410, "token already used");
    let messages = stage.messages().await;
    assert_eq!(messages.len(), 1);
    assert!(messages[0].text.ends_with("\nPurpose: the build\n\nPayload:\ndone"), "{}", messages[0].text);
}

pub(crate) async fn an_unknown_token_is_not_found_before_its_body_is_asked_for(host: Host) {
    let stage = Stage::plain(host).await;
    let used = stage.issue().await;
    stage.post(&used, "").await;
    for (token, status, error) in [
        ("523a6527-77f0-44c2-b2fc-db7b9cf36a6a", 404, "unknown token"),
        ("not-a-token", 404, "unknown token"),
        (used.token.as_str(), 410, "token already used"),
    ] {
        let mut wire = stage.wire().await;
        let head = format!("POST /api/tmp-hooks/{token} HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n");
        wire.send(format!("{head}expect: 100-continue\r\n\r\n")).await;
        // The first head is the final one: nothing was asked for.
        assert_refused(&wire.answer().await, status, error);
    }
}

pub(crate) async fn an_expired_token_is_gone(host: Host) {
    let stage = Stage::with(host, &format!("{BASE}ttl_seconds = 1\n")).await;
    let hook = stage.issue().await;
    until(hook.expires_at).await;
    assert_refused(&stage.post(&hook, "late").await, 410, "token expired");
    assert!(stage.messages().await.is_empty());
    let list = stage.control(&format!("GET /hookgate/v1/sessions/{SESSION}/tmp-hooks"), "", 200).await;
    assert_eq!(list["items"][0]["state"], "expired");
}

pub(crate) async fn what_became_of_a_token_is_remembered_for_its_tombstone(host: Host) {
    let stage =
        Stage::with(host, &format!("{BASE}ttl_seconds = 1\ntombstone_seconds = 2\nsweep_interval_ms = 50\n")).await;
    let (used, expired) = (stage.issue().await, stage.issue().await);
    stage.post(&used, "").await;
    until(expired.expires_at).await;
    assert_refused(&stage.post(&used, "").await, 410, "token already used");
    assert_refused(&stage.post(&expired, "").await, 410, "token expired");
    until(expired.expires_at.after(Duration::from_secs(2))).await;
    assert_refused(&stage.post(&used, "").await, 404, "unknown token");
    assert_refused(&stage.post(&expired, "").await, 404, "unknown token");
}

pub(crate) async fn a_revoked_token_is_unknown_at_once(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = stage.issue().await;
    let hash = stage.hooks.list(&session(), None, 1).await.unwrap().remove(0).hash;
    stage.hooks.revoke(&session(), &hash).await.unwrap();
    assert_refused(&stage.post(&hook, "").await, 404, "unknown token");
}

pub(crate) async fn only_post_consumes(host: Host) {
    let stage = Stage::plain(host).await;
    let (open, used) = (stage.issue().await, stage.issue().await);
    stage.post(&used, "").await;
    for hook in [&open, &used] {
        for method in ["GET", "OPTIONS", "PUT", "DELETE", "PATCH"] {
            let answer = stage.send(&format!("{method} {} HTTP/1.1", path(hook)), "").await;
            assert_refused(&answer, 405, "method not allowed");
            assert_eq!(answer.header("allow"), Some("POST"), "{method}");
        }
        let mut wire = stage.wire().await;
        wire.send(format!("HEAD {} HTTP/1.1\r\nhost: x\r\n\r\n", path(hook))).await;
        let head = wire.head().await.unwrap().to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 405 ") && head.contains("\r\nallow: post\r\n"), "{head}");
    }
    assert_answer(&stage.post(&open, "").await, 200, RECEIVED);
}

pub(crate) async fn other_forms_of_the_path_reach_nothing(host: Host) {
    let stage = Stage::plain(host).await;
    let hook = stage.issue().await;
    let token = &hook.token;
    let mut paths = vec![
        format!("/api/tmp-hooks/{token}/"),
        format!("/api/tmp-hooks/{token}/more"),
        format!("/api/tmp-hooks//{token}"),
        format!("/api/tmp-hooks/x/{token}"),
        format!("/api/tmp-hooks/{token}%2f"),
        format!("/api/tmp-hooks/%2f{token}"),
        format!("/api/tmp-hooks/./{token}"),
        format!("/api/tmp-hooks/%2e%2e/{token}"),
        format!("/api/tmp-hooks/{token}/.."),
        format!("/api/tmp-hooks/{token};x=1"),
        format!("/api/tmp-hooks/{}", token.to_uppercase()),
        format!("/api/tmp-hooks/%{:02x}{}", token.as_bytes()[0], &token[1..]),
    ];
    if host == Host::Proxy {
        // On the proxy everything near the prefix is hookgate's; an axum router answers these itself.
        paths.push("/api/tmp-hooks".to_owned());
        paths.push("/api/tmp-hooks/".to_owned());
        paths.push(format!("/%61pi/tmp-hooks/{token}"));
        paths.push(format!("/api/tmp-hooks%2f{token}"));
        paths.push(format!("//api/tmp-hooks/{token}"));
    }
    for path in paths {
        assert_refused(&stage.send(&format!("POST {path} HTTP/1.1"), "x").await, 404, "unknown token");
    }
    assert_eq!(stage.upstream.connections(), 0);
    let answer = stage.send(&format!("POST {}?from=ci HTTP/1.1", path(&hook)), "x").await;
    assert_answer(&answer, 200, RECEIVED);
}
