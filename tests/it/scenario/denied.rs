//! Tools that are denied by the configuration: nobody is asked.

use hookgate::testing::{Message, Ruling};
use serde_json::{Value, json};

use super::stage::{Outcome, Plan, SESSION, Setting, parts, result_of, says};

/// A model that calls tools `a` and `mcp__files__b`, and then is done.
fn calls_both(at: Setting) -> Plan {
    at.model([
        Message::new("msg_1").tool("toolu_a", "a", "{}").tool("toolu_b", "mcp__files__b", "{}"),
        says("msg_2", "Done."),
    ])
}

pub(super) async fn a_denied_tool_is_refused_and_stays_declared(at: Setting) -> Outcome {
    for (denied, call) in [("a", "toolu_a"), ("b", "toolu_b"), ("mcp__files__b", "toolu_b")] {
        let stage = calls_both(at).denied(denied).start().await?;
        let mut agent = stage.agent().tool("mcp__files__b", |_| Ok("b ran".to_owned()));
        let reply = agent.request_for("Go.").await?;
        let calls: Vec<Value> = parts(&reply.message, "tool_use").into_iter().map(|call| call["id"].clone()).collect();
        assert_eq!(calls.len(), 1);
        assert!(!calls.contains(&json!(call)), "{denied}: {calls:?}");
        agent.take(&reply);
        agent.request().await?;

        let messages = stage.messages(1);
        let result = result_of(messages.last().ok_or("no messages")?, call).clone();
        assert_eq!(result["is_error"], true, "{messages:?}");
        assert!(result.to_string().contains("denied by the configuration"), "{result}");
        let tools = stage.request(1)["tools"].to_string();
        assert!(tools.contains("\"a\"") && tools.contains("mcp__files__b"), "{tools}");
        let record = stage.gateway.audited("PreToolUse", "deny").await?;
        assert_eq!((&record["handlerId"], &record["sessionId"]), (&Value::Null, &json!(SESSION)));
    }
    Ok(())
}

pub(super) async fn no_handler_can_allow_it(at: Setting) -> Outcome {
    let stage = calls_both(at).denied("a").hooks(["PreToolUse"]).policy(|_| Ruling::pass()).start().await?;
    let mut agent = stage.agent().tool("mcp__files__b", |_| Ok("b ran".to_owned()));
    let reply = agent.request_for("Go.").await?;
    assert_eq!(parts(&reply.message, "tool_use").len(), 1);
    let asked = stage.policy.asked_of("PreToolUse");
    assert_eq!(asked.iter().map(|asked| asked.tool()).collect::<Vec<_>>(), ["mcp__files__b"]);
    Ok(())
}

pub(super) async fn what_cannot_be_judged_is_denied_too(at: Setting) -> Outcome {
    let stage = at
        .model([Message::new("msg_1").tool("toolu_a", "a", r#"{"x":1,"x":2}"#), says("msg_2", "Done.")])
        .denied("a")
        .hook(|policy| policy.hook("PreToolUse").open())
        .start()
        .await?;
    let reply = stage.agent().request_for("Go.").await?;
    assert!(parts(&reply.message, "tool_use").is_empty());
    assert!(stage.messages(1).iter().any(|message| message.to_string().contains("denied by the configuration")));
    Ok(())
}

pub(super) async fn a_tool_that_the_provider_runs_is_not_declared(at: Setting) -> Outcome {
    let stage = at.model([says("msg_1", "Done.")]).denied("web_search").start().await?;
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let own = json!({"name": "a", "input_schema": {"type": "object"}});
    let request = json!({"model": "m", "max_tokens": 9, "stream": at.stream, "tools": [search, own],
        "messages": [{"role": "user", "content": "Go."}]});
    let answer = stage.client().post("/v1/messages", &[], request.to_string()).await?;
    assert_eq!(answer.status, 200);
    answer.bytes().await?;
    assert_eq!(stage.request(0)["tools"], json!([own]));
    Ok(())
}
