//! The records of sessions: listed, shown, put away.

use serde_json::{Value, json};

use super::stage::{Host, Outcome, Stage, ids};

pub(crate) async fn sessions_are_listed_as_they_were_seen(host: Host) -> Outcome {
    let stage = Stage::with(host, ["PostToolUse"]).await?;
    assert_eq!(stage.control("GET sessions", "", 200).await?, json!({"items": [], "next": null}));

    let mut agent = stage.agent("s1").header("user-agent", "claude-cli/2.1.197 (external, cli)");
    agent.say("Hello.");
    // The same request again, as clients do that got no answer.
    agent.request().await?;
    agent.go_on().await?;
    agent.prompt("Hello.").await?;
    stage.control("POST sessions/s2/tmp-hooks", "", 201).await?;
    stage.start_task("s3", "").await?;

    let page = stage.control("GET sessions", "", 200).await?;
    assert_eq!((ids(&page), &page["next"]), (vec!["s3".into(), "s2".into(), "s1".into()], &Value::Null));
    let first = &page["items"][2];
    let keys: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["id", "tenant", "createdAt", "lastSeenAt", "archived", "agent", "model", "turns", "openCallbacks"]
    );
    let (created, seen) = (first["createdAt"].as_str().unwrap(), first["lastSeenAt"].as_str().unwrap());
    assert!(created.ends_with('Z') && created.len() == 24 && created <= seen, "{first}");
    assert_eq!(
        json!([
            first["tenant"],
            first["archived"],
            first["agent"],
            first["model"],
            first["turns"],
            first["openCallbacks"]
        ]),
        json!(["default", false, "claude-code", "claude-test", 2, 0])
    );
    let issued = &page["items"][1];
    assert_eq!(
        json!([issued["agent"], issued["model"], issued["turns"], issued["openCallbacks"]]),
        json!([null, null, 0, 1])
    );
    for item in page["items"].as_array().unwrap() {
        let id = item["id"].as_str().unwrap();
        assert_eq!(&stage.control(&format!("GET sessions/{id}"), "", 200).await?, item);
    }
    Ok(())
}

pub(crate) async fn a_list_has_pages_and_can_be_narrowed(host: Host) -> Outcome {
    let stage = Stage::with(host, []).await?;
    for session in ["a", "b?tenant=blue", "c", "d"] {
        let (id, query) = session.split_once('?').unwrap_or((session, ""));
        stage.control(&format!("POST sessions/{id}/tasks?{query}"), "", 201).await?;
    }
    let first = stage.control("GET sessions?limit=2", "", 200).await?;
    assert_eq!(ids(&first), ["d", "c"]);
    // What comes meanwhile, or goes, moves nothing.
    stage.start_task("e", "").await?;
    stage.control("DELETE sessions/c", "", 204).await?;
    let second =
        stage.control(&format!("GET sessions?limit=2&after={}", first["next"].as_str().unwrap()), "", 200).await?;
    assert_eq!((ids(&second), &second["next"]), (vec!["b".into(), "a".into()], &Value::Null));
    assert_eq!(stage.listed("?tenant=blue").await?, ["b"]);
    assert_eq!(stage.listed("?tenant=red").await?, [""; 0]);
    assert_eq!(stage.listed("?tenant=default&limit=1").await?, ["e"]);
    Ok(())
}

/// Titles, sub-agents and results are no turns, and another model may be asked for them.
pub(crate) async fn only_the_agents_own_conversation_counts(host: Host) -> Outcome {
    let stage = Stage::with(host, ["PostToolUse"]).await?;
    let mut sub =
        stage.agent("s1").claude_code("s1").header("x-claude-code-agent-id", "sub").member("model", "m-sub".into());
    sub.prompt("Look for it.").await?;
    let record = stage.control("GET sessions/s1", "", 200).await?;
    assert_eq!(json!([record["turns"], record["model"], record["agent"]]), json!([0, null, "claude-code"]));

    let mut agent = stage.agent("s1");
    agent.prompt("Find it.").await?;
    agent.history().extend([
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}),
    ]);
    agent.go_on().await?;
    let title = json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
    let mut side = stage.agent("s1").claude_code("s1").member("model", "m-side".into()).member("output_config", title);
    side.prompt("A title.").await?;
    let record = stage.control("GET sessions/s1", "", 200).await?;
    assert_eq!(json!([record["turns"], record["model"]]), json!([1, "claude-test"]));
    Ok(())
}

pub(crate) async fn a_session_is_put_away_and_taken_out(host: Host) -> Outcome {
    let stage = Stage::with(host, ["SessionStart", "SessionEnd", "PostToolUse"]).await?;
    let mut agent = stage.agent("s1");
    agent.prompt("Hello.").await?;
    let archived =
        async || Ok::<_, hookgate::BoxError>(stage.control("GET sessions/s1", "", 200).await?["archived"].clone());
    for _ in 0..2 {
        stage.control("POST sessions/s1/archive", "", 204).await?;
        assert_eq!(archived().await?, true);
    }
    agent.prompt("Once more.").await?;
    assert_eq!(archived().await?, true, "it is shown so, and nothing else");
    stage.control("POST sessions/s1/unarchive", "", 204).await?;
    assert_eq!(archived().await?, false);
    let told: Vec<String> = stage.policy.asked().iter().map(|told| told.event().to_owned()).collect();
    assert_eq!(told, ["SessionStart"]);
    Ok(())
}

pub(crate) async fn a_session_id_of_several_tenants_has_to_be_narrowed(host: Host) -> Outcome {
    let stage = Stage::with(host, []).await?;
    for tenant in ["red", "blue"] {
        stage.control(&format!("POST sessions/s/tasks?tenant={tenant}"), "", 201).await?;
    }
    for (request, body) in [
        ("GET sessions/s", ""),
        ("POST sessions/s/archive", ""),
        ("POST sessions/s/unarchive", ""),
        ("DELETE sessions/s", ""),
        ("POST sessions/s/tasks", ""),
        ("POST sessions/s/tasks/t/stop", r#"{"status": "failed"}"#),
    ] {
        let problem = stage.control(request, body, 409).await?;
        assert_eq!(problem["tenants"], json!(["blue", "red"]), "{request}");
        assert!(problem["detail"].as_str().unwrap().contains("?tenant="), "{problem}");
    }
    stage.control("POST sessions/s/archive?tenant=red", "", 204).await?;
    assert_eq!(stage.control("GET sessions/s?tenant=red", "", 200).await?["archived"], true);
    assert_eq!(stage.control("GET sessions/s?tenant=blue", "", 200).await?["archived"], false);
    stage.control("DELETE sessions/s?tenant=red", "", 204).await?;
    assert_eq!(stage.control("GET sessions/s", "", 200).await?["tenant"], "blue", "there is one left");
    Ok(())
}

pub(crate) async fn what_is_not_there_or_asked_wrongly_is_explained(host: Host) -> Outcome {
    let stage = Stage::with(host, []).await?;
    stage.start_task("s1", "").await?;
    for request in ["GET sessions/s2", "POST sessions/s2/archive", "POST sessions/s2/unarchive", "DELETE sessions/s2"] {
        for request in [
            request.to_owned(),
            format!("{request}?tenant=default"),
            format!("{}?tenant=x", request.replace("s2", "s1")),
        ] {
            let detail = stage.problem(&request, "", 404).await?;
            assert!(detail.contains("GET /hookgate/v1/sessions"), "{detail}");
        }
    }
    for (request, expected) in [
        ("GET sessions?limit=0", "from 1 to 500"),
        ("GET sessions?limit=501", "from 1 to 500"),
        ("GET sessions?after=s1", "\"next\""),
        ("GET sessions?before=1", "limit, after, tenant"),
        ("GET sessions/s1?limit=1", "tenant"),
        ("DELETE sessions/s1?reason=x", "tenant"),
        ("POST sessions/s1/archive?tenant=a&tenant=b", "given twice"),
        ("GET sessions/%ff", "UTF-8"),
        ("DELETE sessions/%ff", "UTF-8"),
    ] {
        let detail = stage.problem(request, "", 400).await?;
        assert!(detail.contains(expected), "{request}: {detail}");
    }
    for request in ["POST sessions", "PUT sessions/s1", "GET sessions/s1/archive", "DELETE sessions/s1/unarchive"] {
        stage.problem(request, "", 405).await?;
    }
    assert_eq!(stage.listed("").await?, ["s1"]);
    Ok(())
}
