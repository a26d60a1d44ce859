//! A client that has hookgate's MCP server: the call that the model makes is the one that reaches the server.

use hookgate::testing::{Agent, Message, Ruling};
use http::StatusCode;
use serde_json::{Value, json};

use super::stage::{Outcome, Plan, SESSION, Setting, Stage, parts, says, text};

/// As Claude Code calls it.
const TOOL: &str = "mcp__hookgate__request_tmp_hook";
const ASKS: &str = r#"{"ttl_seconds": 600.0, "purpose": "the build"}"#;

fn arguments() -> Value {
    json!({"purpose": "the build", "ttl_seconds": 600})
}

/// A model whose first answer is the call; the answer to each session has an id of its own.
fn coordinator(at: Setting) -> Plan {
    at.answering(|_, request| {
        let body = request.json();
        let messages = body["messages"].as_array().map_or(0, Vec::len);
        let id = format!("toolu_{}", text(&request.body).len());
        match messages {
            1 => Message::new("msg_1").tool(&id, TOOL, ASKS).into(),
            _ => says("msg_2", "Fine.").into(),
        }
    })
    .callbacks(0)
}

fn agent(stage: &Stage) -> Agent {
    let run = |_: &Value| Ok("asked".to_owned());
    stage.agent().tool(TOOL, run).tool("mcp__hookgate__await_tmp_hook", run)
}

/// The id of the call in an answer.
fn call_id(message: &Value) -> Value {
    parts(message, "tool_use").first().map(|call| call["id"].clone()).unwrap_or_default()
}

fn why(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap_or_default()
}

pub(super) async fn a_call_that_the_model_made_tells_the_session(at: Setting) -> Outcome {
    let stage = coordinator(at).start().await?;
    let nobody = stage.mcp("request_tmp_hook", arguments(), json!({})).await?;
    assert!(why(&nobody).contains("no model") && why(&nobody).contains("x-hookgate-session"), "{nobody}");

    let mut agent = agent(&stage);
    let reply = agent.request_for("Go.").await?;
    assert_eq!(parts(&reply.message, "tool_use").len(), 1, "the client makes the call");
    let tools = stage.request(0)["tools"].clone();
    let names: Vec<&str> = tools.as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(!names.contains(&"request_tmp_hook"), "a client that has the tool is not given another one: {names:?}");

    let by_id = json!({"progressToken": 1, "claudecode/toolUseId": call_id(&reply.message)});
    for meta in [by_id, json!({})] {
        let result = stage.mcp("request_tmp_hook", arguments(), meta).await?;
        let given = &result["structuredContent"];
        assert_eq!((&given["session_id"], &given["expires_in_seconds"]), (&json!(SESSION), &json!(600)), "{result}");
        assert_eq!(serde_json::from_str::<Value>(result["content"][0]["text"].as_str().unwrap_or_default())?, *given);
    }
    let other = stage.mcp("request_tmp_hook", json!({"purpose": "another"}), json!({})).await?;
    assert!(why(&other).contains("no model"));

    // What comes is a message of the session, whichever way the URL was got.
    let result = stage.mcp("request_tmp_hook", arguments(), json!({})).await?;
    let url = result["structuredContent"]["url"].as_str().ok_or("no URL")?;
    assert_eq!(stage.call_back(url, "all green").await?, StatusCode::OK);
    assert!(agent.take(&reply));
    agent.request().await?;
    assert!(text(&stage.body(1)).contains("all green"));
    Ok(())
}

pub(super) async fn a_call_of_two_sessions_is_nobodys(at: Setting) -> Outcome {
    let stage = coordinator(at).start().await?;
    let one = agent(&stage).request_for("Go.").await?;
    let mut second = agent(&stage).session("session-2");
    let two = second.request_for("Go on.").await?;
    let nobody = stage.mcp("request_tmp_hook", arguments(), json!({})).await?;
    assert!(why(&nobody).contains("several sessions"), "{nobody}");
    for (reply, session) in [(&one, SESSION), (&two, "session-2")] {
        let meta = json!({"claudecode/toolUseId": call_id(&reply.message)});
        let result = stage.mcp("request_tmp_hook", arguments(), meta).await?;
        assert_eq!(result["structuredContent"]["session_id"], session);
    }
    Ok(())
}

pub(super) async fn a_rewritten_call_is_known_as_the_client_makes_it(at: Setting) -> Outcome {
    let stage =
        coordinator(at).hooks(["PreToolUse"]).policy(|_| Ruling::modify(json!({"purpose": "checked"}))).start().await?;
    let reply = agent(&stage).request_for("Go.").await?;
    assert_eq!(parts(&reply.message, "tool_use")[0]["input"], json!({"purpose": "checked"}));
    let as_written = stage.mcp("request_tmp_hook", arguments(), json!({})).await?;
    assert!(why(&as_written).contains("no model"));
    let result = stage.mcp("request_tmp_hook", json!({"purpose": "checked"}), json!({})).await?;
    assert_eq!(result["structuredContent"]["session_id"], SESSION);
    Ok(())
}

pub(super) async fn a_denied_call_is_not_known(at: Setting) -> Outcome {
    let stage = coordinator(at).hooks(["PreToolUse"]).policy(|_| Ruling::deny("not here")).start().await?;
    agent(&stage).request_for("Go.").await?;
    let nobody = stage.mcp("request_tmp_hook", arguments(), json!({})).await?;
    assert!(why(&nobody).contains("no model"));
    Ok(())
}

/// A callback of the session has come; the result of waiting for it, and its token.
async fn awaited(stage: &Stage) -> Result<(Value, String), hookgate::BoxError> {
    let reply = agent(stage).request_for("Go.").await?;
    let meta = json!({"claudecode/toolUseId": call_id(&reply.message)});
    let result = stage.mcp("request_tmp_hook", arguments(), meta).await?;
    let given = &result["structuredContent"];
    assert_eq!(stage.call_back(given["url"].as_str().ok_or("no URL")?, "key=abc").await?, StatusCode::OK);
    Ok((wait(stage).await?, given["token"].as_str().ok_or("no token")?.to_owned()))
}

/// The model asks to wait, and the client does.
async fn wait(stage: &Stage) -> Result<Value, hookgate::BoxError> {
    stage.mcp_in(SESSION, "await_tmp_hook", json!({"timeout_seconds": 20})).await
}

pub(super) async fn an_awaited_message_is_judged(at: Setting) -> Outcome {
    for outcome in ["deny", "modify", "pass"] {
        let stage = coordinator(at)
            .hooks(["UserPromptSubmit"])
            .policy(move |asked| match (outcome, asked.detail()["source"].as_str()) {
                ("deny", Some("callback")) => Ruling::deny("it has a key in it"),
                ("modify", Some("callback")) => Ruling::modify("cleaned"),
                _ => Ruling::pass(),
            })
            .start()
            .await?;
        let (result, token) = awaited(&stage).await?;
        assert_eq!(result["isError"], false, "{result}");
        let read = result["content"][0]["text"].as_str().unwrap_or_default();
        match outcome {
            "deny" => assert!(read.ends_with("it has a key in it") && !read.contains("key=abc"), "{read}"),
            "modify" => assert_eq!(read, "cleaned"),
            _ => assert!(read.contains("key=abc") && read.contains(&token), "{read}"),
        }
        let asked = stage.policy.asked_of("UserPromptSubmit");
        let asked = asked.iter().find(|asked| asked.detail()["source"] == "callback").ok_or("not asked")?;
        assert_eq!((asked.text("/plane"), asked.text("/sessionId")), ("api", SESSION));
        assert!(!asked.json().to_string().contains(&token));
        let again = wait(&stage).await?;
        assert!(why(&again).contains("no callback of this session is open"), "it is given once: {again}");
    }
    Ok(())
}

pub(super) async fn an_awaited_message_that_could_not_be_judged_waits(at: Setting) -> Outcome {
    let stage = coordinator(at)
        .hooks(["UserPromptSubmit"])
        .policy(|asked| match asked.detail()["source"].as_str() {
            Some("callback") => Ruling::raw(500, "down"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    let (result, _) = awaited(&stage).await?;
    assert!(why(&result).contains("the message waits"), "{result}");
    let again = wait(&stage).await?;
    assert!(why(&again).contains("the message waits"), "{again}");
    Ok(())
}
