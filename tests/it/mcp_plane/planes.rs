//! One call seen on both planes: the model makes it, and then the agent's runtime calls the tool.

use hookgate::BoxError;
use hookgate::testing::{Agent, Message, Ruling};
use serde_json::{Value, json};

use super::stage::{At, Outcome, Stage, call, said};

const NAME: &str = "mcp__files__read";

/// A model that calls the tool by that name, and is then done.
fn calling(name: &str) -> [Message; 2] {
    [Message::new("msg_1").tool("toolu_1", name, r#"{"path":"a"}"#), Message::new("msg_2").text("Done.")]
}

/// A turn of an agent whose runtime calls the tool where it is; `meta` is what it says beside the call. Gives the result.
async fn turn(stage: &Stage, name: &str, meta: Value) -> Result<Value, BoxError> {
    let mut agent = Agent::new(&stage.model_url).session("s").tool(name, |_| Ok("as the tool said".into()));
    let reply = agent.request_for("Read it.").await?;
    let made = reply.calls().pop().ok_or("no call")?;
    let mut message = call(1, "read", made.input.clone());
    message["params"]["_meta"] = meta;
    let result = stage.ask(&message).await?;
    agent.take(&reply);
    agent.request().await?;
    Ok(result)
}

fn events(stage: &Stage) -> Vec<String> {
    stage.policy.asked().iter().map(|asked| asked.event().to_owned()).collect()
}

pub(super) async fn one_call_is_one_dispatch(at: At) -> Outcome {
    let stage = at.giving(said("text")).model(calling(NAME));
    let stage = stage.deciding(|_| Ruling::modify(json!({"path": "b"}))).start().await?;
    let result = turn(&stage, NAME, json!({"claudecode/toolUseId": "toolu_1"})).await?;
    assert_eq!(result["result"], said("text"));
    assert_eq!(stage.request(0)["params"]["arguments"], json!({"path": "b"}));
    let after = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!(events(&stage), ["PreToolUse", "PostToolUse"]);
    let before = &stage.policy.asked()[0];
    for member in ["sessionId", "turnId", "toolCallId", "model"] {
        assert!(before.json()[member].is_string(), "{member}");
        assert_eq!(before.json()[member], after[0].json()[member], "{member}");
    }
    assert_eq!((&before.json()["plane"], &after[0].json()["plane"]), (&json!("model"), &json!("tool")));
    assert_eq!(after[0].detail()["result"], said("text"));
    Ok(())
}

/// Two equal calls of one answer are two; each result is told once.
pub(super) async fn the_models_id_tells_equal_calls_apart(at: At) -> Outcome {
    let both = Message::new("msg_1").tool("toolu_1", NAME, r#"{"path":"a"}"#).tool("toolu_2", NAME, r#"{"path": "a"}"#);
    let stage = at.giving(said("text")).model([both, Message::new("msg_2").text("Done.")]).start().await?;
    let mut agent = Agent::new(&stage.model_url).session("s").tool(NAME, |_| Ok("as the tool said".into()));
    let reply = agent.request_for("Read it twice.").await?;
    for id in ["toolu_2", "toolu_1"] {
        let mut message = call(id, "read", json!({"path": "a"}));
        message["params"]["_meta"] = json!({"progressToken": 1, "claudecode/toolUseId": id});
        stage.ask(&message).await?;
    }
    agent.take(&reply);
    agent.request().await?;
    let told = stage.policy.at_least_of("PostToolUse", 2).await;
    let ids: Vec<&str> = told.iter().map(|told| told.text("/toolCallId")).collect();
    assert_eq!((ids.len(), ids.contains(&"toolu_1"), ids.contains(&"toolu_2")), (2, true, true));
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 2);
    Ok(())
}

/// A model that knows the tool by its bare name: a handler of the full name was not asked yet.
pub(super) async fn what_was_not_asked_is_asked_at_the_tool(at: At) -> Outcome {
    let stage = at.giving(said("text")).model(calling("read"));
    let stage = stage.only(|policy| policy.hook("PreToolUse").matcher([NAME])).deciding(|_| Ruling::deny("no"));
    let stage = stage.start().await?;
    let result = turn(&stage, "read", json!({})).await?;
    assert_eq!(result["result"]["isError"], true);
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 1);
    Ok(())
}

/// Of the handlers that a call concerns at the tool those alone are asked that were not, in their order; each gets what the
/// one before it made of the arguments, on whichever plane that was.
pub(super) async fn who_was_asked_is_not_asked_again(at: At) -> Outcome {
    let stage = at.giving(said("text")).model(calling("read"));
    let stage = stage.only(|policy| policy.hook("PreToolUse").id("first").matcher([NAME]));
    let stage = stage.hook(|policy| policy.hook("PreToolUse").id("bare").matcher(["read"]));
    let stage = stage.hook(|policy| policy.hook("PreToolUse").id("last").matcher([NAME]));
    let stage = stage.deciding(|asked| {
        Ruling::modify(json!({"path": format!("{}+", asked.text("/detail/input/path"))})).context("seen")
    });
    let stage = stage.start().await?;
    let result = turn(&stage, "read", json!({})).await?;
    let asked: Vec<(String, String)> = stage
        .policy
        .asked_of("PreToolUse")
        .iter()
        .map(|asked| (asked.text("/plane").to_owned(), asked.text("/detail/input/path").to_owned()))
        .collect();
    let expected = [("model", "a"), ("tool", "a+"), ("tool", "a++")];
    assert_eq!(asked, expected.map(|(plane, path)| (plane.to_owned(), path.to_owned())));
    let audit = stage.gateway.audit().await?;
    let handlers: Vec<&str> = audit.iter().filter_map(|record| record["handlerId"].as_str()).collect();
    assert_eq!(handlers, ["bare", "first", "last"]);
    let called =
        stage.server.requests().iter().map(|request| request.json()).find(|call| call["method"] == "tools/call");
    assert_eq!(called.ok_or("no call")?["params"]["arguments"], json!({"path": "a+++"}));
    let texts: Vec<&str> =
        result["result"]["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
    let [own, first, last] = texts[..] else { panic!("{texts:?}") };
    assert_eq!(own, "text");
    assert!(first.contains("\"first\"") && last.contains("\"last\""), "{texts:?}");
    Ok(())
}

/// What hookgate answers in the tool's place is nothing that the tool did, on either plane.
pub(super) async fn a_denial_at_the_tool_is_no_outcome(at: At) -> Outcome {
    let stage = at.giving(said("text")).model(calling("read"));
    let stage = stage.only(|policy| policy.hook("PreToolUse").id("full").matcher([NAME]));
    let stage = stage.hook(|policy| policy.hook("PreToolUse").id("bare").matcher(["read"]));
    let stage = stage.hooks(["PostToolUse", "PostToolUseFailure"]);
    let stage = stage.deciding(|asked| match asked.json()["plane"] == "tool" {
        true => Ruling::deny("no"),
        false => Ruling::pass(),
    });
    let stage = stage.start().await?;
    let result = turn(&stage, "read", json!({})).await?;
    assert_eq!(result["result"]["isError"], true);
    // Another call after it: by then a telling of the first would have come.
    stage.ask(&call(2, "unheard", json!({}))).await?;
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!((told.len(), told[0].tool()), (1, "unheard"));
    assert!(stage.policy.asked_of("PostToolUseFailure").is_empty());
    Ok(())
}

/// Without a model's call the one at the tool stands for itself.
pub(super) async fn a_call_of_nobodys_model_is_decided_at_the_tool(at: At) -> Outcome {
    let stage = at.giving(said("text")).model(calling(NAME)).start().await?;
    let mut agent = Agent::new(&stage.model_url).session("s").tool(NAME, |_| Ok("as the tool said".into()));
    agent.request_for("Read it.").await?;
    // The same tool with other arguments, and then the model's call.
    stage.ask(&call(1, "read", json!({"path": "/etc"}))).await?;
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 2);
    stage.ask(&call(2, "read", json!({"path": "a"}))).await?;
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 2);
    stage.ask(&call(3, "read", json!({"path": "a"}))).await?;
    assert_eq!(stage.policy.asked_of("PreToolUse").len(), 3, "a match is used once");
    Ok(())
}
