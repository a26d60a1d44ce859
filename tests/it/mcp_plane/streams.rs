//! Answers that come as events.

use hookgate::testing::{Answer, Gate, Ruling};
use http::Method;
use serde_json::json;

use super::stage::{At, Outcome, call, event, legacy, modern, said};

/// Progress and questions of the server are what the client has to see for the result to come at all.
pub(super) async fn what_comes_before_the_result_is_not_held(at: At) -> Outcome {
    let gate = Gate::default();
    let open = gate.clone();
    let stage = at
        .server(move |_, request| match request.json()["method"].as_str() {
            Some("tools/list") => at.result(request, &json!({"tools": []})),
            Some("tools/call") => Answer::events([
                "id: 0\ndata: \n\n".to_owned(),
                event(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}})),
                event(&json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}})),
            ])
            .wait(&gate)
            .then(event(&json!({"jsonrpc": "2.0", "id": 1, "result": said("done")}))),
            _ => Answer::json(202, ""),
        })
        .start()
        .await?;
    let mut incoming = stage.post(&legacy(), call(1, "read", json!({})).to_string()).await?;
    assert_eq!(incoming.event().await?.ok_or("no event")?.json()["method"], "notifications/progress");
    assert_eq!(incoming.event().await?.ok_or("no event")?.json()["method"], "elicitation/create");
    // The client answers the server's request of the same id: it is no answer to the call.
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}});
    assert_eq!(stage.post(&legacy(), answer.to_string()).await?.status, 202);
    assert!(stage.policy.asked_of("PostToolUse").is_empty());
    open.open();
    assert_eq!(incoming.event().await?.ok_or("no event")?.json()["result"], said("done"));
    assert_eq!(stage.policy.at_least_of("PostToolUse", 1).await.len(), 1);
    Ok(())
}

/// The server closes the call's stream and the client comes back for the result.
pub(super) async fn a_result_comes_on_another_stream(at: At) -> Outcome {
    let stage = at
        .server(move |_, request| match (request.method.clone(), request.json()["method"].as_str()) {
            (Method::GET, _) => Answer::events([
                event(&json!({"jsonrpc": "2.0", "id": "2", "result": said("another id")})),
                event(&json!({"jsonrpc": "2.0", "id": 2, "result": said("late")})),
            ]),
            (_, Some("tools/list")) => at.result(request, &json!({"tools": []})),
            _ => Answer::events(["id: 1\nretry: 10\ndata: \n\n"]),
        })
        .start()
        .await?;
    stage.post(&legacy(), call(2, "read", json!({})).to_string()).await?.bytes().await?;
    assert!(stage.policy.asked_of("PostToolUseFailure").is_empty());
    let mut headers = legacy();
    headers.push(("last-event-id", "1"));
    let resumed = stage.send(Method::GET, &headers).await?.bytes().await?;
    assert!(String::from_utf8_lossy(&resumed).contains("late"));
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!((told.len(), &told[0].detail()["result"]), (1, &said("late")));
    assert_eq!(stage.server.requests().last().ok_or("no request")?.header("last-event-id"), "1");
    stage.send(Method::GET, &headers).await?.bytes().await?;
    assert_eq!(stage.policy.asked_of("PostToolUse").len(), 1);
    Ok(())
}

pub(super) async fn any_split_gives_the_same(at: At) -> Outcome {
    let body = format!(
        ": note\r\rdata: {{\"jsonrpc\":\"2.0\",\ndata:  \"id\":1,\"result\":{}}}\n\nid: 9\r\n\r\nevent: x\ndata: not json\n\n",
        said("é")
    );
    let sent = body.clone();
    let stage = at.answering(move |_| Answer::events([sent.clone()]).bytewise()).start().await?;
    let received = stage.post(&legacy(), call(1, "read", json!({})).to_string()).await?.bytes().await?;
    assert_eq!(received, body);
    assert_eq!(stage.policy.at_least_of("PostToolUse", 1).await[0].detail()["result"], said("é"));
    Ok(())
}

/// Each byte passes at once, even within an event.
pub(super) async fn a_stream_that_lasts_is_not_buffered(at: At) -> Outcome {
    let gates = [Gate::default(), Gate::default(), Gate::default()];
    let [one, two, three] = gates.clone();
    let stage = at
        .server(move |_, _| {
            Answer::events([": open\n\n"])
                .wait(&one)
                .then(": alive\n")
                .wait(&two)
                .then("data: {\"half\":")
                .wait(&three)
                .then("1}\n\n")
        })
        .start()
        .await?;
    let listen = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {}});
    let headers: Vec<_> =
        modern("x").into_iter().filter(|(name, _)| *name != "mcp-name" && *name != "mcp-method").collect();
    let mut incoming = stage.post(&headers, listen.to_string()).await?;
    let mut seen = incoming.chunk().await?.ok_or("an end")?.to_vec();
    for (gate, next) in gates.iter().zip([": alive\n", "data: {\"half\":", "1}\n\n"]) {
        gate.open();
        while !seen.ends_with(next.as_bytes()) {
            seen.extend_from_slice(&incoming.chunk().await?.ok_or("an end")?);
        }
    }
    assert!(incoming.chunk().await?.is_none());
    Ok(())
}

/// A result that is too large to be looked at is none that a policy said anything about: the call was allowed.
pub(super) async fn an_answer_too_large_to_look_at_passes(at: At) -> Outcome {
    for stream in [false, true] {
        let at = At { stream, ..at };
        let big = said(&"x".repeat(100_000));
        let stage = at.giving(big.clone()).limits(|limits| {
            limits.max_request_bytes = 10_000;
            limits.max_gated_bytes = 5_000;
        });
        let stage = stage.start().await?;
        assert_eq!(stage.ask(&call(1, "read", json!({}))).await?["result"], big);
        let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
        assert!(told[0].detail()["error"]["message"].as_str().is_some_and(|message| message.contains("10000 bytes")));
    }
    Ok(())
}

/// Nothing in it may have to be replaced: what cannot be decoded passes byte by byte, and its call is told as one whose result
/// is not known.
pub(super) async fn an_answer_in_an_unknown_coding_passes(at: At) -> Outcome {
    let stage = at.server(|_, request| match request.json()["method"].as_str() {
        Some("tools/call") => Answer::json(200, "packed").header("content-encoding", "x-unknown"),
        _ => Answer::json(202, ""),
    });
    let stage = stage.start().await?;
    let answer = stage.post(&legacy(), call(1, "read", json!({})).to_string()).await?;
    assert_eq!((answer.status.as_u16(), &answer.headers["content-encoding"]), (200, &"x-unknown".parse()?));
    assert_eq!(answer.bytes().await?, "packed");
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert!(told[0].detail()["error"]["message"].as_str().is_some_and(|message| message.contains("x-unknown")));
    Ok(())
}

/// What is added to a result makes a digest of it untrue.
pub(super) async fn a_digest_does_not_outlive_a_change(at: At) -> Outcome {
    for changed in [false, true] {
        let result = json!({"jsonrpc": "2.0", "id": 1, "result": said("done")});
        let stage = at
            .server(move |_, request| match request.json()["method"].as_str() {
                Some("tools/call") => Answer::json(200, result.to_string()).header("content-digest", "sha-256=:x:"),
                _ => at.result(request, &json!({"tools": []})),
            })
            .policy(move |asked| match changed && asked.event() == "PreToolUse" {
                true => Ruling::pass().context("beware"),
                false => Ruling::pass(),
            });
        let stage = stage.start().await?;
        let answer = stage.post(&legacy(), call(1, "read", json!({})).to_string()).await?;
        assert_eq!(answer.headers.contains_key("content-digest"), !changed);
        assert_eq!(String::from_utf8_lossy(&answer.bytes().await?).contains("beware"), changed);
    }
    Ok(())
}
