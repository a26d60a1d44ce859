//! Requests that are not what they should be, and those that concern no policy.

use bytes::Bytes;
use hookgate::testing::Answer;
use http::Method;
use serde_json::json;

use super::dialect::{Dialect, Request};
use super::stage::{At, Host, Outcome, answer};
use crate::away::Away;

fn post(path: &str, body: impl Into<String>) -> Request {
    Request { method: Method::POST, path: path.to_owned(), body: body.into() }
}

pub(super) async fn batches_are_refused_while_something_gates(at: At) -> Outcome {
    let batch = format!("[{}]", at.ask("Make tea.").body);
    let stage = at.telling([]).only(|policy| policy.hook("SubagentStart").open()).start().await?;
    let refused = answer(stage.send(&post("/rpc", batch.clone())).await?).await?;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(null), &json!(-32600)));
    assert!(refused["error"]["message"].as_str().unwrap_or_default().contains("on its own"), "{refused}");
    assert!(stage.agent.requests().is_empty());

    let watched = at.telling([]).only(|policy| policy.hook("SubagentStop")).start().await?;
    watched.text(&post("/rpc", batch.clone())).await?;
    assert_eq!(watched.agent.requests()[0].body, batch);
    Ok(())
}

pub(super) async fn unknown_methods_are_refused_while_something_gates(at: At) -> Outcome {
    let unknown = at.dialect.call("tasks/send", json!({"message": {"parts": [{"text": "Make tea."}]}}));
    let stage = at.telling([]).start().await?;
    let incoming = stage.send(&unknown).await?;
    assert_eq!(incoming.status, 200);
    let refused = answer(incoming).await?;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q-1"), &json!(-32601)));
    assert!(stage.agent.requests().is_empty());

    let open = at.telling([]).only(|policy| policy.hook("SubagentStart").open()).start().await?;
    open.text(&unknown).await?;
    assert_eq!(open.agent.requests()[0].body, unknown.body);
    Ok(())
}

pub(super) async fn grpc_is_refused_while_something_gates(at: At) -> Outcome {
    let path = "/lf.a2a.v1.A2AService/SendMessage";
    for media in ["application/grpc", "application/grpc+proto", "Application/gRPC-Web"] {
        let headers = [("content-type", media)];
        let stage = at.telling([]).start().await?;
        let refused = stage.client().post(path, &headers, "\0\0\0\0\0").await?;
        assert_eq!((refused.status.as_u16(), &refused.headers["grpc-status"]), (200, &"12".parse()?));
        assert!(refused.headers["grpc-message"].to_str()?.contains("use JSON-RPC or HTTP+JSON"));
        assert!(stage.agent.requests().is_empty());
    }
    let watched = at.telling([]).only(|policy| policy.hook("SubagentStop")).start().await?;
    watched.client().post(path, &[("content-type", "application/grpc")], "\0\0\0\0\0").await?.bytes().await?;
    assert_eq!(watched.agent.requests()[0].body, Bytes::from_static(b"\0\0\0\0\0"));
    Ok(())
}

/// Servers differ in whether they look at the path or at the body.
pub(super) async fn a_body_of_another_binding_is_refused(at: At) -> Outcome {
    let stage = at.telling([]).start().await?;
    let rpc = Dialect::Rpc03.send(false, json!([{"kind": "text", "text": "Make tea."}]), json!({})).body;
    let rest = Dialect::Rest1.send(false, json!([{"text": "Make tea."}]), json!({})).body;
    let both = rpc.replace("\"params\"", "\"message\":{\"parts\":[]},\"params\"");
    let harmless = both.replace("message/send", "tasks/get");
    for request in [
        post("/tasks/t-1:cancel", rpc.clone()),
        post("/message:send", both),
        post("/message%3Asend", harmless),
        post("/rpc", rest.clone()),
        post("/message%3Bsend", rest.clone()),
        Request { method: Method::PUT, ..post("/message:send", rest) },
        Request { method: Method::PATCH, ..post("/rpc", "hello") },
    ] {
        let text = stage.text(&request).await?;
        assert!(text.contains("cannot be judged"), "{request:?}: {text}");
    }
    assert!(stage.agent.requests().is_empty());
    // However its path is written, a message is one.
    stage
        .text(&post("/acme/message%3asend", Dialect::Rest1.send(false, json!([{"text": "Make tea."}]), json!({})).body))
        .await?;
    assert_eq!(stage.told(["SubagentStart"]).await[0].text("/detail/prompt"), "Make tea.");
    Ok(())
}

pub(super) async fn other_requests_pass(at: At) -> Outcome {
    let stage = at.agent(|_, _| Answer::json(200, "{ \"url\":\"https://me.example/hook\" }")).start().await?;
    let config = json!({"taskId": "t-1", "url": "https://me.example/hook"});
    let requests = [
        at.dialect.call("CreateTaskPushNotificationConfig", config.clone()),
        at.dialect.call("tasks/pushNotificationConfig/get", json!({"id": "t-1"})),
        post("/acme/tasks/t-1/pushNotificationConfigs", config.to_string()),
        post("/acme/tasks/t-1:cancel", ""),
        Request { method: Method::DELETE, ..post("/tasks/t-1/pushNotificationConfigs/c", "") },
        Request { method: Method::GET, ..post("/health", "") },
    ];
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(stage.text(request).await?, "{ \"url\":\"https://me.example/hook\" }", "{request:?}");
        assert_eq!(stage.agent.requests()[number].body, request.body);
    }
    assert!(stage.policy.asked().is_empty());
    Ok(())
}

/// What would follow is read by nobody.
pub(super) async fn an_upgrade_is_no_way_round_a_policy(at: At) -> Outcome {
    let headers = [("connection", "upgrade"), ("upgrade", "websocket")];
    let stage = at.agent(|_, _| Answer::json(200, "{}")).start().await?;
    let incoming = stage.client().send(Method::GET, "/socket", &headers, Bytes::new()).await?;
    assert_eq!(incoming.status, 200);
    assert_eq!(stage.agent.requests()[0].header("upgrade"), "");
    Ok(())
}

pub(super) async fn a_request_that_is_too_large_says_so(at: At) -> Outcome {
    let stage = at.telling([]).limits(|limits| limits.max_request_bytes = 2_000).start().await?;
    let large = "x".repeat(2_001);
    let refused = stage.send(&post("/rpc", large.clone())).await?;
    assert_eq!(refused.status, 413);
    assert!(answer(refused).await?["error"]["message"].as_str().unwrap_or_default().contains("max_request_bytes"));
    let refused = stage.send(&post("/message:send", large)).await?;
    assert_eq!(refused.status, 413);
    assert_eq!(answer(refused).await?["error"]["status"], "RESOURCE_EXHAUSTED");
    Ok(())
}

pub(super) async fn an_absent_agent_ends_the_delegation(at: At) -> Outcome {
    let away = Away::new();
    let stage = at.telling([]).upstream(&format!("http://{}", away.address)).start().await?;
    let incoming = stage.send(&at.ask("Make tea.")).await;
    // A stack of services gets the error of its own inner service instead.
    if at.host == Host::Proxy {
        let incoming = incoming?;
        assert_eq!(incoming.status, 502);
        let refused = answer(incoming).await?;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("q-1"), &json!(-32603)));
    }
    let [end] = stage.told(["SubagentStop"]).await;
    assert_eq!(end.detail()["ok"], false);
    assert!(end.text("/detail/error").contains("the agent gave no answer"), "{:?}", end.detail());
    Ok(())
}
