//! What the session reads.

use super::stage::{BASE, Host, RECEIVED, Stage, assert_answer, path};

/// The message that a body becomes.
async fn delivered(host: Host, headers: &str, body: impl AsRef<[u8]>) -> (Stage, String, String) {
    let stage = Stage::with(host, &format!("{BASE}max_body_bytes = 1000000\n")).await;
    let hook = stage.issue().await;
    let answer = stage.send(&format!("POST {} HTTP/1.1{headers}", path(&hook)), body).await;
    assert_answer(&answer, 200, RECEIVED);
    let text = stage.messages().await.remove(0).text;
    (stage, hook.token, text)
}

/// What stands after the head, which is checked.
async fn payload(host: Host, body: impl AsRef<[u8]>) -> String {
    let (_stage, token, text) = delivered(host, "", body).await;
    let (head, payload) = text.split_once("\n\nPayload:\n").unwrap();
    let lines: Vec<&str> = head.lines().collect();
    assert!(lines[0].starts_with("[hookgate] One-time callback received at 20") && lines[0].ends_with("Z."), "{head}");
    assert_eq!(lines[1..3], [&format!("Token: {token}"), "Purpose: the build"]);
    payload.to_owned()
}

pub(crate) async fn json_is_pretty_printed(host: Host) {
    let body = r#"{"status":"done","spec_url":"https://taco.example/spec/42","n":1.50,"list":[]}"#;
    let (stage, token, text) = delivered(host, "\r\ncontent-type: application/json", body).await;
    let message = stage.messages().await.remove(0);
    assert_eq!(
        text,
        format!(
            "[hookgate] One-time callback received at {}.\nToken: {token}\nPurpose: the build\n\
             Content-Type: application/json\n\nPayload:\n{{\n  \"status\": \"done\",\n  \
             \"spec_url\": \"https://taco.example/spec/42\",\n  \"n\": 1.50,\n  \"list\": []\n}}",
            message.received_at
        )
    );
    assert_eq!(message.content_type.as_deref(), Some("application/json"));
    assert!(!message.masked_text.contains(&token) && message.masked_text.contains("\nPurpose: the build\n"));
}

pub(crate) async fn a_bare_string_is_its_text(host: Host) {
    assert_eq!(payload(host, r#""done""#).await, "done");
}

pub(crate) async fn an_empty_body_is_said_to_be_empty(host: Host) {
    assert_eq!(payload(host, "").await, "(empty)");
}

pub(crate) async fn text_is_delivered_verbatim(host: Host) {
    assert_eq!(payload(host, "build 42 finished\nall green\n").await, "build 42 finished\nall green\n");
}

pub(crate) async fn text_that_is_not_utf_8_says_so(host: Host) {
    let (_stage, _, text) = delivered(host, "", b"caf\xe9").await;
    assert!(text.contains("\nNote: the body is not UTF-8"), "{text}");
    assert!(text.ends_with("\n\nPayload:\ncaf\u{fffd}"), "{text}");
}

pub(crate) async fn a_long_payload_is_cut(host: Host) {
    let (_stage, _, text) = delivered(host, "", "é".repeat(100_000)).await;
    assert!(text.len() <= 64 * 1024 && text.len() > 64 * 1024 - 100, "{}", text.len());
    assert!(text.ends_with("é\n[cut by hookgate: the callback had 200000 bytes]"));
}
