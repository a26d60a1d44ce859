//! A call, its decision, and what came of it.

use hookgate::testing::{Answer, Ruling};
use serde_json::{Value, json};

use super::stage::{At, Outcome, answer, call, legacy, said};

/// What no hook changes leaves as it came, in both directions; the events say what it was.
pub(super) async fn an_allowed_call_passes_as_it_came(at: At) -> Outcome {
    let body = r#" { "id" : "q-1","jsonrpc":"2.0", "method":"tools/call","params":{ "arguments":{"n":1.50, "path":"\u0061"} ,"name":"read","_meta":{"progressToken":1}}}"#;
    let sent = r#"{"jsonrpc":"2.0", "id":"q-1","result":{"content":[ {"type":"text","text":"é"}],"structuredContent":{"k":1.0}}}"#;
    let stage = at
        .server(move |_, request| match (request.json()["method"].as_str(), at.stream) {
            (Some("tools/list"), _) => at.result(request, &json!({"tools": []})),
            (_, true) => Answer::events([": hello\r\n\r\nid: 1\r\ndata: ".to_owned() + sent + "\r\n\r\n"]),
            (_, false) => Answer::json(200, sent),
        })
        .start()
        .await?;
    let incoming = stage.post(&legacy(), body).await?;
    assert_eq!(incoming.headers["content-type"].to_str()?.starts_with("text/event-stream"), at.stream);
    let received = incoming.bytes().await?;
    let expected = if at.stream { format!(": hello\r\n\r\nid: 1\r\ndata: {sent}\r\n\r\n") } else { sent.to_owned() };
    assert_eq!(received, expected);
    let last = stage.server.requests().last().cloned().ok_or("no request")?;
    assert_eq!(last.body, body);
    assert_eq!(last.header("mcp-session-id"), super::stage::SESSION);

    let before = stage.policy.asked_of("PreToolUse").pop().ok_or("nobody was asked")?;
    let after = stage.policy.at_least_of("PostToolUse", 1).await.pop().ok_or("nobody was told")?;
    assert_eq!(before.json()["plane"], "tool");
    assert_eq!(before.json()["route"], "tools");
    assert_eq!(before.detail()["toolName"], "read");
    assert_eq!(before.detail()["server"], "files");
    assert!(String::from_utf8_lossy(&before.raw).contains(r#""input":{"n":1.50, "path":"\u0061"}"#));
    assert!(before.json()["toolCallId"].is_string());
    assert_eq!(before.json()["toolCallId"], after.json()["toolCallId"]);
    assert_eq!(before.json()["sessionId"], after.json()["sessionId"]);
    assert_eq!(after.detail()["result"]["structuredContent"]["k"], 1.0);
    assert!(
        !before.text("/sessionId").contains(super::stage::SESSION),
        "the server's session is as good as a credential"
    );
    Ok(())
}

pub(super) async fn a_denied_call_reaches_no_server(at: At) -> Outcome {
    let stage = at.giving(said("secret")).deciding(|_| Ruling::deny("not on Sundays")).start().await?;
    let denied = stage.ask(&call(3, "read", json!({"path": "a"}))).await?;
    assert_eq!(
        denied,
        json!({"jsonrpc": "2.0", "id": 3, "result": {
            "content": [{"type": "text", "text": "not on Sundays"}], "isError": true}})
    );
    assert!(!stage.methods().contains(&"tools/call".to_owned()));
    let records = stage.gateway.audit().await?;
    assert_eq!((records.len(), &records[0]["outcome"]), (1, &json!("deny")), "nothing came of it: {records:?}");
    assert_eq!((&records[0]["plane"], &records[0]["toolName"]), (&json!("tool"), &json!("read")));
    Ok(())
}

pub(super) async fn ids_are_echoed_as_they_were_written(at: At) -> Outcome {
    let stage = at.giving(said("x")).deciding(|_| Ruling::deny("no")).start().await?;
    for id in ["1", "-0", "1.50", "1e2", "\"1\"", "\"\\u0061\"", "123456789012345678901234567890"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"tools/call","params":{{"name":"read"}}}}"#);
        let answer = stage.post(&legacy(), body).await?.bytes().await?;
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        assert!(answer.starts_with(start.as_bytes()), "{id}: {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

pub(super) async fn a_failed_result_is_told_as_a_failure(at: At) -> Outcome {
    let stage = at.giving(json!({"content": [], "isError": true})).start().await?;
    assert_eq!(stage.ask(&call(1, "read", json!({}))).await?["result"]["isError"], true);
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert_eq!(told[0].detail()["error"], json!({"content": [], "isError": true}));
    assert_eq!(told[0].detail()["input"], json!({}));
    assert!(stage.policy.asked_of("PostToolUse").is_empty());
    Ok(())
}

pub(super) async fn an_error_is_told_as_a_failure(at: At) -> Outcome {
    let stage = at
        .answering(move |request| {
            at.answer(&json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": {"code": -32602, "message": "m"}}))
        })
        .start()
        .await?;
    assert_eq!(stage.ask(&call("a", "read", json!({}))).await?["error"]["code"], -32602);
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert_eq!(told[0].detail()["error"], json!({"code": -32602, "message": "m"}));
    Ok(())
}

pub(super) async fn a_call_without_hooks_passes(at: At) -> Outcome {
    let stage = at.giving(said("x")).no_hooks().start().await?;
    for body in [call(1, "read", json!({})).to_string(), "[]".to_owned(), "{\"a\":".to_owned(), String::new()] {
        stage.post(&legacy(), body.clone()).await?.bytes().await?;
        assert_eq!(stage.server.requests().last().ok_or("no request")?.body, body);
    }
    assert_eq!(stage.server.requests().len(), 4);
    Ok(())
}

/// What a handler adds for the model is a text behind those of the result.
pub(super) async fn context_is_added_to_the_result(at: At) -> Outcome {
    for result in [said("first"), json!({"content": [], "isError": true, "resultType": "complete"})] {
        let stage = at.giving(result.clone()).deciding(|_| Ruling::pass().context("mind the gap")).start().await?;
        let answer = stage.ask(&call(1, "read", json!({}))).await?;
        let content = answer["result"]["content"].as_array().cloned().unwrap_or_default();
        let before = result["content"].as_array().map_or(0, Vec::len);
        assert_eq!(content.len(), before + 1);
        let added = content[before]["text"].as_str().unwrap_or_default();
        assert!(added.starts_with("<hook-context event=\"PreToolUse\""), "{added}");
        assert!(added.contains("tool=\"read\"") && added.contains("mind the gap"), "{added}");
        assert_eq!(content[..before], *result["content"].as_array().ok_or("no content")?);
        assert_eq!(answer["result"]["isError"], result["isError"]);
    }
    Ok(())
}

pub(super) async fn a_compressed_answer_is_read(at: At) -> Outcome {
    let stage = at.answering(move |request| at.result(request, &said("packed")).gzip()).start().await?;
    let mut headers = legacy();
    headers.push(("accept-encoding", "gzip, br"));
    let answer = answer(stage.post(&headers, call(1, "read", json!({})).to_string()).await?).await?;
    assert_eq!(answer["result"], said("packed"));
    assert_eq!(stage.server.requests().last().ok_or("no request")?.header("accept-encoding"), "identity");
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!(told[0].detail()["result"], said("packed"));
    Ok(())
}

pub(super) async fn a_policy_that_fails_decides_by_its_mode(at: At) -> Outcome {
    for open in [false, true] {
        let stage = at.giving(said("done"));
        let stage = stage.deciding(|_| Ruling::raw(500, "{}"));
        let stage =
            stage.only(move |policy| if open { policy.hook("PreToolUse").open() } else { policy.hook("PreToolUse") });
        let stage = stage.start().await?;
        let result = stage.ask(&call(1, "read", json!({}))).await?;
        assert_eq!(result["result"]["isError"] == true, !open, "{result}");
        // What cannot be judged is not asked about, and decided in the same way.
        let twice =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"a":1,"a":2}}}"#;
        let result = answer(stage.post(&legacy(), twice).await?).await?;
        assert_eq!(result["result"]["isError"] == true, !open, "{result}");
        assert_eq!(stage.policy.asked().len(), 1);
        let outcomes: Vec<Value> =
            stage.gateway.audit().await?.iter().map(|record| record["outcome"].clone()).collect();
        let failed = if open { "failed_open" } else { "failed_closed" };
        assert_eq!(outcomes, [json!(failed), json!("malformed_input")]);
    }
    Ok(())
}

/// A name in a document means the tool of any server, or of the one that it names.
pub(super) async fn matchers_know_the_server(at: At) -> Outcome {
    for (matcher, matches) in
        [("read", true), ("mcp__files__read", true), ("mcp__other__read", false), ("files", false), ("rea", false)]
    {
        let stage = at.giving(said("done")).deciding(|_| Ruling::deny("no"));
        let stage = stage.only(move |policy| policy.hook("PreToolUse").matcher([matcher])).start().await?;
        let result = stage.ask(&call(1, "read", json!({}))).await?;
        assert_eq!(result["result"]["isError"] == true, matches, "{matcher}: {result}");
    }
    Ok(())
}
