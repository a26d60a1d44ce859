//! Tools that the provider runs by itself are judged on the request.

use hookgate::testing::{Agent, Envelope, Message, Ruling};
use serde_json::json;

use super::stage::{Outcome, Setting, Stage, says, text};

fn searching(stage: &Stage) -> Agent {
    let search = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3});
    stage.agent().declare(search)
}

fn deny_search(asked: &Envelope) -> Ruling {
    if asked.tool() == "web_search" { Ruling::deny("no searching") } else { Ruling::pass() }
}

pub(super) async fn a_denied_declaration_is_removed(at: Setting) -> Outcome {
    let script = [Message::new("msg_1").tool("toolu_1", "a", "{}"), says("msg_2", "Done."), says("msg_3", "Bye.")];
    let stage = at.model(script).hooks(["PreToolUse"]).policy(deny_search).start().await?;
    let mut agent = searching(&stage);
    agent.prompt("Go.").await?;
    agent.prompt("Thanks.").await?;
    for number in 0..3 {
        let names: Vec<_> = stage.request(number)["tools"].as_array().into_iter().flatten().cloned().collect();
        let names: Vec<_> = names.iter().map(|tool| tool["name"].as_str().unwrap_or_default()).collect();
        assert_eq!(names, ["a", "b", "c"], "request {number}");
    }
    let declared = stage.policy.asked_of("PreToolUse").into_iter();
    let declared: Vec<_> = declared.filter(|asked| asked.tool() == "web_search").collect();
    assert_eq!(declared.len(), 2, "once a turn");
    assert!(declared.iter().all(|asked| asked.detail()["declared"] == true));
    Ok(())
}

pub(super) async fn an_allowed_declaration_stays_as_it_is(at: Setting) -> Outcome {
    let stage = at.model([says("msg_1", "Done.")]).hooks(["PreToolUse"]).start().await?;
    let mut agent = searching(&stage);
    agent.say("Go.");
    let sent = agent.body();
    agent.go_on().await?;
    assert_eq!(stage.body(0), sent);
    Ok(())
}

/// A handler for other tools is not asked, and a tool that the client runs is not a provider's.
pub(super) async fn only_a_matching_handler_is_asked(at: Setting) -> Outcome {
    let stage = at
        .model([says("msg_1", "Done.")])
        .hook(|policy| policy.hook("PreToolUse").matcher(["bash", "a"]))
        .policy(|_| Ruling::deny("no"))
        .start()
        .await?;
    let mut agent = searching(&stage).declare(json!({"type": "bash_20250124", "name": "bash"}));
    agent.say("Go.");
    let sent = agent.body();
    agent.go_on().await?;
    assert_eq!(stage.body(0), sent);
    assert!(stage.policy.asked().is_empty());
    Ok(())
}

/// What the provider ran is told of, and passes untouched.
pub(super) async fn results_of_the_provider_are_told_once(at: Setting) -> Outcome {
    let found = r#"[{"type":"web_search_result","url":"https://example.com","encrypted_content":"c2VjcmV0"}]"#;
    let answer = Message::new("msg_1")
        .text("Searching.")
        .server_tool("srvtoolu_1", "web_search", r#"{"query":  "x"}"#, found)
        .text("Found it.");
    let expected = if at.stream { answer.sse() } else { answer.json() };
    let stage = at
        .model([answer, says("msg_2", "Bye.")])
        .hook(|policy| policy.hook("PreToolUse").matcher(["web_search"]))
        .hooks(["PostToolUse", "PostToolUseFailure"])
        .start()
        .await?;
    let mut agent = searching(&stage);
    let reply = &agent.prompt("Go.").await?[0];
    assert_eq!(text(&reply.raw), text(&expected));
    agent.prompt("Thanks.").await?;
    let told = stage.policy.at_least_of("PostToolUse", 1).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].tool(), "web_search");
    assert_eq!(told[0].detail()["executedUpstream"], true);
    assert_eq!(told[0].detail()["input"], json!({"query": "x"}));
    Ok(())
}

pub(super) async fn a_failed_search_is_a_failure(at: Setting) -> Outcome {
    let error = r#"{"type":"web_search_tool_result_error","error_code":"unavailable"}"#;
    let answer = Message::new("msg_1").server_tool("srvtoolu_1", "web_search", "{}", error).text("No luck.");
    let stage = at.model([answer]).hooks(["PostToolUse", "PostToolUseFailure"]).start().await?;
    searching(&stage).prompt("Go.").await?;
    let told = stage.policy.at_least_of("PostToolUseFailure", 1).await;
    assert_eq!(told[0].detail()["executedUpstream"], true);
    assert!(stage.policy.asked_of("PostToolUse").is_empty());
    Ok(())
}
