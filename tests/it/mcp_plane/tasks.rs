//! Calls that go on as tasks, in both designs.

use serde_json::{Value, json};

use super::stage::{At, Outcome, Plan, call, modern, said};

fn about(id: u32, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"taskId": "t-1"}})
}

/// A server that makes a task of each call, and says this of it.
fn tasks(at: At, made: Value, said: impl Fn(&str) -> Value + Send + Sync + 'static) -> Plan {
    at.server(move |_, request| {
        let json = request.json();
        at.result(
            request,
            &match json["method"].as_str().unwrap_or_default() {
                "tools/list" => json!({"tools": []}),
                "tools/call" => made.clone(),
                method => said(method),
            },
        )
    })
}

/// 2025-11-25: the result has to be asked for.
pub(super) async fn an_experimental_task_is_told_with_its_result(at: At) -> Outcome {
    let stage = tasks(at, json!({"task": {"taskId": "t-1", "status": "working"}}), |method| match method {
        "tasks/result" => said("at last"),
        _ => json!({"taskId": "t-1", "status": "completed"}),
    })
    .start()
    .await?;
    stage.ask(&call(1, "read", json!({"path": "a"}))).await?;
    stage.ask(&about(2, "tasks/get")).await?;
    assert!(stage.policy.asked_of("PostToolUse").is_empty());
    stage.ask(&about(3, "tasks/result")).await?;
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!(told[0].detail()["result"], said("at last"));
    assert_eq!(told[0].detail()["input"], json!({"path": "a"}));
    stage.ask(&about(4, "tasks/result")).await?;
    stage.ask(&call(5, "read", json!({}))).await?;
    stage.ask(&about(6, "tasks/result")).await?;
    assert_eq!(stage.policy.at_least_of("PostToolUse", 2).await.len(), 2, "once for each call");
    Ok(())
}

/// 2026-07-28: how the task stands has the result within.
pub(super) async fn a_modern_task_is_told_once(at: At) -> Outcome {
    let made = json!({"resultType": "task", "taskId": "t-1", "status": "working"});
    let stage = tasks(at, made, |_| {
        json!({"resultType": "complete", "taskId": "t-1", "status": "completed", "result": {"content": [], "isError": true}})
    })
    .start()
    .await?;
    stage.ask_modern("read", &call(1, "read", json!({}))).await?;
    for id in 2..4 {
        let headers = modern("t-1").into_iter().map(|(name, value)| match name {
            "mcp-method" => (name, "tasks/get"),
            _ => (name, value),
        });
        let headers: Vec<_> = headers.collect();
        stage.post(&headers, about(id, "tasks/get").to_string()).await?.bytes().await?;
    }
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].detail()["error"], json!({"content": [], "isError": true}));
    assert!(stage.policy.asked_of("PostToolUse").is_empty());
    Ok(())
}

pub(super) async fn a_cancelled_task_has_failed(at: At) -> Outcome {
    let stage = tasks(at, json!({"task": {"taskId": "t-1"}}), |_| json!({"taskId": "t-1", "status": "cancelled"}))
        .start()
        .await?;
    stage.ask(&call(1, "read", json!({}))).await?;
    stage.ask(&about(2, "tasks/cancel")).await?;
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert_eq!(told[0].detail()["error"]["status"], "cancelled");
    Ok(())
}
