//! Bodies: how large, how coded, how slow, how broken. Whatever goes wrong, the token is as it was.

use async_compression::tokio::bufread::GzipEncoder;
use hookgate::callback::TmpHook;
use tokio::io::AsyncReadExt;

use super::stage::{BASE, Host, RECEIVED, Stage, assert_answer, assert_refused, path};

const LIMIT: usize = 1000;

async fn limited(host: Host) -> (Stage, TmpHook) {
    let stage = Stage::with(host, &format!("{BASE}max_body_bytes = {LIMIT}\nbody_read_timeout_ms = 300\n")).await;
    let hook = stage.issue().await;
    (stage, hook)
}

fn post(hook: &TmpHook, headers: &str) -> String {
    format!("POST {} HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n", path(hook))
}

/// The token brings its message after all.
async fn assert_open(stage: &Stage, hook: &TmpHook) {
    assert!(stage.messages().await.is_empty());
    assert_answer(&stage.post(hook, "done").await, 200, RECEIVED);
    assert!(stage.messages().await[0].text.ends_with("\ndone"));
}

pub(crate) async fn a_body_declared_too_large_is_refused_before_it_is_asked_for(host: Host) {
    let (stage, hook) = limited(host).await;
    let mut wire = stage.wire().await;
    wire.send(post(&hook, "content-length: 1001\r\nexpect: 100-continue")).await;
    let answer = wire.answer().await;
    assert_refused(&answer, 413, "payload too large");
    assert_eq!(answer.header("connection"), Some("close"));
    wire.closed().await;
    assert_open(&stage, &hook).await;
}

pub(crate) async fn a_client_in_the_middle_of_sending_reads_its_refusal(host: Host) {
    let (stage, hook) = limited(host).await;
    let mut wire = stage.wire().await;
    wire.send(post(&hook, "content-length: 4000000")).await;
    wire.try_send(vec![b'x'; 4_000_000]).await;
    let answer = wire.answer().await;
    assert_refused(&answer, 413, "payload too large");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_open(&stage, &hook).await;
}

pub(crate) async fn a_body_that_turns_out_too_large_is_refused(host: Host) {
    let (stage, hook) = limited(host).await;
    let mut wire = stage.wire().await;
    wire.send(post(&hook, "transfer-encoding: chunked")).await;
    for _ in 0..=LIMIT {
        wire.try_send("1\r\nx\r\n").await;
    }
    let answer = wire.answer().await;
    assert_refused(&answer, 413, "payload too large");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_open(&stage, &hook).await;
}

pub(crate) async fn a_body_of_the_limit_is_received(host: Host) {
    let (stage, hook) = limited(host).await;
    let mut wire = stage.wire().await;
    wire.send(post(&hook, "transfer-encoding: chunked")).await;
    wire.send(format!("{LIMIT:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(LIMIT))).await;
    assert_answer(&wire.answer().await, 200, RECEIVED);
    assert_answer(&stage.post(&stage.issue().await, "x".repeat(LIMIT)).await, 200, RECEIVED);
    assert_refused(&stage.post(&stage.issue().await, "x".repeat(LIMIT + 1)).await, 413, "payload too large");
}

pub(crate) async fn a_client_that_asks_first_is_asked_to_send(host: Host) {
    let (stage, hook) = limited(host).await;
    let mut wire = stage.wire().await;
    wire.send(post(&hook, "content-length: 4\r\nexpect: 100-continue")).await;
    assert!(wire.head().await.unwrap().starts_with("HTTP/1.1 100 "));
    wire.send("done").await;
    assert_answer(&wire.answer().await, 200, RECEIVED);
}

pub(crate) async fn an_aborted_upload_burns_nothing(host: Host) {
    let (stage, hook) = limited(host).await;
    let mut wire = stage.wire().await;
    wire.send(post(&hook, "content-length: 100")).await;
    wire.send("half of").await;
    wire.finish().await;
    // It only stopped sending, and can still read what became of it.
    assert_refused(&wire.answer().await, 400, "request aborted");
    assert_open(&stage, &hook).await;
}

pub(crate) async fn broken_framing_burns_nothing(host: Host) {
    let (stage, hook) = limited(host).await;
    let mut wire = stage.wire().await;
    wire.send(post(&hook, "transfer-encoding: chunked")).await;
    wire.send("4\r\nhalf\r\nnot a size\r\n").await;
    assert_refused(&wire.answer().await, 400, "request aborted");
    assert_open(&stage, &hook).await;
}

pub(crate) async fn a_slow_body_is_given_up(host: Host) {
    let (stage, hook) = limited(host).await;
    let mut wire = stage.wire().await;
    wire.send(post(&hook, "content-length: 100")).await;
    wire.send("half of").await;
    let answer = wire.answer().await;
    assert_refused(&answer, 408, "request timed out");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_open(&stage, &hook).await;
}

async fn gzip(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    GzipEncoder::new(text).read_to_end(&mut out).await.unwrap();
    out
}

pub(crate) async fn gzip_is_decoded_within_the_limit(host: Host) {
    let (stage, hook) = limited(host).await;
    let send = async |body: Vec<u8>| {
        stage.send(&format!("POST {} HTTP/1.1\r\ncontent-encoding: gzip", path(&hook)), body).await
    };
    let bomb = gzip(&vec![b'x'; 500_000]).await;
    assert!(bomb.len() < LIMIT);
    assert_refused(&send(bomb).await, 413, "payload too large");
    assert_refused(&send(b"no gzip".to_vec()).await, 400, "request aborted");
    let cut = gzip(b"cut off").await;
    assert_refused(&send(cut[..cut.len() - 4].to_vec()).await, 400, "request aborted");
    assert!(stage.messages().await.is_empty());
    assert_answer(&send(gzip(b"{\"a\":1}").await).await, 200, RECEIVED);
    assert!(stage.messages().await[0].text.ends_with("Payload:\n{\n  \"a\": 1\n}"));
}

pub(crate) async fn other_codings_are_refused_before_the_body(host: Host) {
    let (stage, hook) = limited(host).await;
    for coding in ["br", "zstd", "deflate", "gzip, gzip", "rot13"] {
        let mut wire = stage.wire().await;
        let headers = format!("content-length: 5\r\nexpect: 100-continue\r\ncontent-encoding: {coding}");
        wire.send(post(&hook, &headers)).await;
        let answer = wire.answer().await;
        assert_refused(&answer, 415, "unsupported content encoding");
        assert_eq!(answer.header("accept-encoding"), Some("gzip, identity"));
    }
    assert_open(&stage, &hook).await;
}
