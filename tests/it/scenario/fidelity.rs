//! Bytes that no hook changed leave unchanged, in both directions.

use async_compression::tokio::write::GzipEncoder;
use bytes::Bytes;
use hookgate::testing::{Answer, Message, Reply, Ruling};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::stage::{Outcome, Setting, says, text};

const EVENTS: [&str; 6] = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "StopFailure"];

/// A request that no printer would print like this.
fn odd_request(stream: bool) -> String {
    format!(
        r#"{{ "tools":[ {{"input_schema":{{"required":["x"] ,"type":"object"}},"name":"a","defer_loading":true}},
 {{"type":"newtool_20990101","name":"n"}}], "future_option" : {{}},"stream":{stream},
  "system":[{{"text":"s\u00e9\/","type":"text"}}],	"messages": [{{"content":[{{"text":"a\ud800b","type":"text" }},
  {{"type":"future_part","n":123456789012345678901234567890}}],"role":"user"}},
  {{"role":"assistant","content":[{{"type":"thinking","thinking":"\u0068m","signature":"c2ln=="}},{{"type":"text","text":"é"}}]}},
  {{"role":"user","content":"1.0"}} ],"max_tokens":1.0e3,"model":"m\/1"}}
"#
    )
}

/// An answer that no printer would print like this.
fn odd_answer(stream: bool) -> Answer {
    let message = Message::new("msg_1").thinking("", "c2ln").text("Né").tool("toolu_1", "a", "{ \"x\" : 1e2 }");
    if !stream {
        let json = text(&message.json()).replace(r#""type":"message","#, "\"type\" : \"message\",\n \"future\":[1.0],");
        return Answer::json(200, json).header("request-id", "req_1");
    }
    let sse = text(&message.sse());
    let odd = sse
        .replacen(
            "event: ping\ndata: {\"type\": \"ping\"}\n\n",
            ": a comment\r\n\r\nevent: future\r\ndata: {\"type\":\"future\",\"x\":[1.0]}\r\n\r\n",
            1,
        )
        .replacen("\"index\":1}", "\"index\":1 , \"future\" : true}", 1);
    assert_ne!(odd, sse);
    Answer::events([odd]).header("request-id", "req_1")
}

pub(super) async fn passing_hooks_change_no_byte(at: Setting) -> Outcome {
    let stage = at.model([odd_answer(at.stream)]).hooks(EVENTS).start().await?;
    let direct = at.model([odd_answer(at.stream)]).start().await?;
    let path = "/v1/messages?beta=true";
    let request = odd_request(at.stream);
    let through = stage.client().post(path, &[], request.clone()).await?;
    let plain = hookgate::testing::Client::new(&direct.model.url()).post(path, &[], request.clone()).await?;
    assert_eq!(through.headers["request-id"], "req_1");
    assert_eq!(through.headers["content-type"], plain.headers["content-type"]);
    assert_eq!(text(&through.bytes().await?), text(&plain.bytes().await?));
    assert_eq!(text(&stage.body(0)), request);
    assert_eq!(stage.model.requests()[0].uri, path);
    // The request declares a tool of an unknown type, which the provider may run by itself: that is asked about too.
    let (declared, calls): (Vec<_>, Vec<_>) =
        stage.policy.asked_of("PreToolUse").into_iter().partition(|asked| asked.detail()["declared"] == true);
    assert_eq!((declared.len(), calls.len()), (1, 1));
    assert!(text(&calls[0].raw).contains(r#""input":{ "x" : 1e2 }"#));
    Ok(())
}

/// The end of a turn is held for the Stop handlers and then released as it was.
pub(super) async fn a_held_end_is_released_as_it_was(at: Setting) -> Outcome {
    let message = Message::new("msg_1").text("Done.").usage(3, 4).member("container", json!({"id": "c"}));
    let expected = if at.stream { message.sse() } else { message.json() };
    let stage = at.model([message]).hooks(EVENTS).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert_eq!(text(&reply.raw), text(&expected));
    assert_eq!(stage.policy.asked_of("Stop").len(), 1);
    Ok(())
}

pub(super) async fn without_hooks_nothing_is_touched(at: Setting) -> Outcome {
    let stage = at.model([odd_answer(at.stream), odd_answer(at.stream)]).start().await?;
    let request = odd_request(at.stream);
    let answer = stage.client().post("/v1/messages", &[], request.clone()).await?;
    assert_eq!(answer.status, 200);
    answer.bytes().await?;
    assert_eq!(text(&stage.body(0)), request);
    stage.client().post("/v1/messages", &[], "not json").await?;
    assert_eq!(stage.body(1), "not json");
    Ok(())
}

/// One byte at a time means the same.
pub(super) async fn a_chopped_answer_means_the_same(at: Setting) -> Outcome {
    let message = || {
        Message::new("msg_1")
            .thinking("é", "c2ln")
            .text("Né")
            .tool("toolu_1", "a", r#"{"x":"学"}"#)
            .tool("toolu_2", "b", "{}")
    };
    let mut bodies = Vec::new();
    for answer in [Answer::from(message()), Answer::from(message()).bytewise()] {
        let stage = at
            .model([answer])
            .hooks(["PreToolUse"])
            .policy(|asked| match asked.tool() {
                "a" => Ruling::modify(json!({"x": "文"})),
                _ => Ruling::deny("not b"),
            })
            .start()
            .await?;
        bodies.push(text(&stage.agent().request_for("Go.").await?.raw));
    }
    assert_eq!(bodies[0], bodies[1]);
    assert!(bodies[0].contains('文') && !bodies[0].contains("toolu_2"));
    Ok(())
}

/// An edit is one insertion: everything else keeps its bytes.
pub(super) async fn an_edit_keeps_all_other_bytes(at: Setting) -> Outcome {
    let stage = at
        .model([says("msg_1", "Hello.")])
        .hooks(["UserPromptSubmit"])
        .policy(|asked| match asked.text("/detail/prompt") {
            "1.0" => Ruling::pass().context("a hint"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let request = odd_request(at.stream);
    stage.client().post("/v1/messages", &[], request.clone()).await?.bytes().await?;
    let got = text(&stage.body(0));
    // The plain string becomes a list of parts; all that stands before and behind it is as it was.
    let (before, after) = request.split_once(r#""1.0""#).ok_or("no prompt")?;
    assert!(got.starts_with(before) && got.ends_with(after), "{got}");
    let changed = &got[before.len()..got.len() - after.len()];
    assert!(changed.contains(r#"{"type":"text","text":"1.0"}"#) && changed.contains("a hint"), "{changed}");
    Ok(())
}

async fn gzip(bytes: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(bytes).await?;
    encoder.shutdown().await?;
    Ok(encoder.into_inner().into())
}

/// A compressed request is judged like any other, and passes as it came when nothing is changed.
pub(super) async fn a_compressed_request_is_judged(at: Setting) -> Outcome {
    let stage = at
        .answering(|_, _| says("msg_1", "Hello.").into())
        .hooks(["UserPromptSubmit"])
        .policy(|asked| match asked.text("/detail/prompt") {
            "a secret" => Ruling::deny("no secrets here"),
            "hint" => Ruling::pass().context("a hint"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let body = |text: &str| {
        json!({"model": "m", "stream": at.stream, "messages": [{"role": "user", "content": text}]}).to_string()
    };
    let headers = [("content-encoding", "gzip")];
    let send = async |text: &str| -> Result<(Bytes, Reply), hookgate::BoxError> {
        let packed = gzip(body(text).as_bytes()).await?;
        let incoming = stage.client().post("/v1/messages", &headers, packed.clone()).await?;
        Ok((packed, Reply::read(incoming).await?))
    };
    let (packed, reply) = send("hi").await?;
    assert_eq!(reply.text(), "Hello.");
    assert_eq!(stage.body(0), packed);
    assert_eq!(stage.model.requests()[0].header("content-encoding"), "gzip");

    let (_, reply) = send("a secret").await?;
    assert!(reply.text().contains("no secrets here"));
    assert_eq!(stage.model.requests().len(), 1);

    send("hint").await?;
    let edited = &stage.model.requests()[1];
    assert_eq!(edited.header("content-encoding"), "", "what was edited is sent plain, and its header says so");
    assert!(text(&edited.body).contains("a hint"));
    Ok(())
}

pub(super) async fn an_unknown_request_coding_is_refused_while_someone_judges(at: Setting) -> Outcome {
    let stage = at.model([says("msg_1", "Hello.")]).hooks(["UserPromptSubmit"]).start().await?;
    let answer = stage.client().post("/v1/messages", &[("content-encoding", "x-unknown")], "?").await?;
    assert!(answer.status.is_client_error(), "{}", answer.status);
    assert!(stage.model.requests().is_empty());
    Ok(())
}

/// Compressed answers are inspected: the client never gets the denied call in disguise.
pub(super) async fn a_compressed_answer_is_inspected(at: Setting) -> Outcome {
    let first = Message::new("msg_1").text("Working.").tool("toolu_1", "a", "{}").tool("toolu_2", "b", "{}");
    let stage = at
        .model([Answer::from(first).gzip(), Answer::from(says("msg_2", "Done."))])
        .hooks(["PreToolUse"])
        .policy(|asked| if asked.tool() == "b" { Ruling::deny("not b") } else { Ruling::pass() })
        .start()
        .await?;
    let mut agent = stage.agent().header("accept-encoding", "gzip, br, zstd, *;q=0.1");
    let reply = agent.request_for("Go.").await?;
    // The edited answer is sent in a coding that its header names; here the client reads it plain.
    assert!(reply.headers.get("content-encoding").is_none_or(|coding| coding == "identity"));
    assert_eq!(reply.calls().into_iter().map(|call| call.id).collect::<Vec<_>>(), ["toolu_1"]);
    let asked_for = stage.model.requests()[0].header("accept-encoding").to_owned();
    assert!(!asked_for.contains('*'), "{asked_for}");
    Ok(())
}

/// The length of an edited answer is its own.
pub(super) async fn an_edited_answer_has_its_own_length(at: Setting) -> Outcome {
    let call = Message::new("msg_1").tool("toolu_1", "a", r#"{"x":"a long argument that becomes short"}"#);
    let stage = at.model([call]).hooks(["PreToolUse"]).policy(|_| Ruling::modify(json!({}))).start().await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(reply.complete);
    assert_eq!(reply.calls()[0].input, json!({}));
    if let Some(length) = reply.headers.get("content-length") {
        assert_eq!(length.to_str()?, reply.raw.len().to_string());
    }
    for stale in ["etag", "content-md5", "digest"] {
        assert!(!reply.headers.contains_key(stale));
    }
    Ok(())
}
