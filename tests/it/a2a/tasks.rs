//! What becomes of tasks, wherever it is seen.

use hookgate::testing::{Answer, Ruling};
use serde_json::json;

use super::dialect::Dialect;
use super::stage::{At, Outcome, Stage};

/// Has a task of its own come to its end, so that whatever was told before it is under way.
async fn mark(stage: &Stage, at: At) -> Outcome {
    drop(stage.text(&at.ask("mark")).await?);
    loop {
        let so_far = stage.policy.asked();
        if so_far.iter().any(|told| told.event() == "SubagentStop" && told.text("/taskId") == "mark") {
            return Ok(());
        }
        stage.policy.at_least(so_far.len() + 1).await;
    }
}

/// How often each event was told of a task.
fn counts(stage: &Stage, task: &str) -> [usize; 3] {
    ["TaskStart", "TaskStop", "SubagentStop"]
        .map(|event| stage.policy.asked_of(event).iter().filter(|told| told.text("/taskId") == task).count())
}

pub(super) async fn a_task_is_told_from_its_start_to_its_end(at: At) -> Outcome {
    let said = at.dialect;
    let (values, outcome) = match at.stream {
        true => (
            vec![
                said.task("t-1", "submitted", ""),
                said.update("t-1", "working", "On it."),
                said.artifact("t-1", false, "It is "),
                said.artifact("t-1", true, "done."),
                said.update("t-1", "completed", ""),
            ],
            "It is done.",
        ),
        false => (vec![said.task("t-1", "completed", "Done.")], "Done."),
    };
    let expected: String = match at.stream {
        true => values.iter().map(|value| format!("id: 1\r\ndata:{}\r\n\r\n", said.wrapped(value))).collect(),
        false => said.wrapped(&values[0]),
    };
    let stage = at.telling(values).start().await?;
    assert_eq!(stage.text(&at.ask("Make tea.")).await?, expected);
    let told = stage.told(["SubagentStart", "TaskStart", "TaskStop", "SubagentStop"]).await;
    let [asked, start, stop, end] = &told;
    assert_eq!(*start.detail(), json!({}));
    assert_eq!(*stop.detail(), json!({"status": "completed"}));
    assert_eq!(*end.detail(), json!({"subagent": "billing", "ok": true, "response": outcome}));
    for told in [start, stop, end] {
        assert_eq!((told.text("/taskId"), told.text("/agentId")), ("t-1", "c-1"));
        assert_eq!(told.text("/sessionId"), asked.text("/sessionId"));
    }
    Ok(())
}

pub(super) async fn a_task_that_waits_is_not_over(at: At) -> Outcome {
    let said = at.dialect;
    let stage = at
        .agent(move |number, _| match number {
            0 => at.tell(&[said.task("t-1", "input-required", "How much?")]),
            1 => at.tell(&[said.task("t-1", "auth-required", "")]),
            2 => at.tell(&[said.task("t-1", "completed", "Done.")]),
            _ => at.tell(&[said.task("mark", "completed", "")]),
        })
        .start()
        .await?;
    stage.text(&at.ask("Pay.")).await?;
    stage.told(["TaskStart"]).await;
    let go_on = at.ask_with(json!([said.text("All.")]), json!({"taskId": "t-1", "contextId": "c-1"}));
    stage.text(&go_on).await?;
    stage.text(&go_on).await?;
    let [_, end] = stage.told(["TaskStop", "SubagentStop"]).await;
    assert_eq!(end.detail()["response"], "Done.");
    mark(&stage, at).await?;
    assert_eq!(counts(&stage, "t-1"), [1, 1, 1]);
    assert_eq!(stage.policy.asked_of("SubagentStart").len(), 2);
    Ok(())
}

pub(super) async fn an_end_is_told_once(at: At) -> Outcome {
    let said = at.dialect;
    let stage = at
        .agent(move |number, request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            let bare = said.bare_task("t-1", "completed", "Done.");
            match number {
                0 => at.tell(&[said.task("t-1", "working", "")]),
                1 | 2 => said.whole(&bare),
                3 => said.events(&[said.task("t-1", "completed", "Done."), said.update("t-1", "completed", "Done.")]),
                4 => said.whole(&json!({"tasks": [bare, bare], "nextPageToken": ""})),
                _ if body.contains("mark") => at.tell(&[said.task("mark", "completed", "")]),
                _ => at.tell(&[said.task("t-1", "completed", "Done.")]),
            }
        })
        .start()
        .await?;
    stage.text(&at.ask("Make tea.")).await?;
    for request in [said.about("get", "t-1"), said.about("cancel", "t-1"), said.about("subscribe", "t-1"), said.list()]
    {
        stage.text(&request).await?;
    }
    stage.text(&at.ask("Make tea.")).await?;
    mark(&stage, at).await?;
    assert_eq!(counts(&stage, "t-1"), [1, 1, 1]);
    // Nothing of these was changed, and their paths were kept.
    let paths: Vec<String> = stage.agent.requests()[1..5].iter().map(|request| request.uri.to_string()).collect();
    for (path, request) in paths.iter().zip([said.about("get", "t-1"), said.about("cancel", "t-1")]) {
        assert!(path.ends_with(&request.path), "{path}");
    }
    Ok(())
}

pub(super) async fn ends_have_their_words(at: At) -> Outcome {
    let said = at.dialect;
    for (state, status, error) in [
        ("failed", "failed", "the task was failed"),
        ("canceled", "cancelled", "the task was cancelled"),
        ("rejected", "failed", "the task was rejected"),
    ] {
        let stage = at
            .agent(move |number, _| match number {
                0 => at.tell(&[said.task("t-1", state, "")]),
                _ => at.tell(&[said.task("t-2", state, "Because.")]),
            })
            .start()
            .await?;
        stage.text(&at.ask("Make tea.")).await?;
        let [stop, end] = stage.told(["TaskStop", "SubagentStop"]).await;
        assert_eq!(*stop.detail(), json!({"status": status}));
        assert_eq!(*end.detail(), json!({"subagent": "billing", "ok": false, "error": error}));
        stage.text(&at.ask("Make tea.")).await?;
        let ends = stage.policy.at_least_of("SubagentStop", 2).await;
        assert!(ends.iter().any(|end| end.detail()["error"] == "Because."));
    }
    Ok(())
}

pub(super) async fn a_message_ends_the_delegation(at: At) -> Outcome {
    let stage = at.telling([at.dialect.says("Tea is ready.")]).start().await?;
    stage.text(&at.ask("Make tea.")).await?;
    let [end] = stage.told(["SubagentStop"]).await;
    assert_eq!(*end.detail(), json!({"subagent": "billing", "ok": true, "response": "Tea is ready."}));
    assert!(end.json()["taskId"].is_null() && end.text("/agentId") == "c-1");
    assert!(stage.policy.asked_of("TaskStart").is_empty() && stage.policy.asked_of("TaskStop").is_empty());
    Ok(())
}

pub(super) async fn an_error_ends_the_delegation(at: At) -> Outcome {
    let stage = at
        .agent(move |_, _| match at.dialect.is_rpc() {
            true => Answer::json(200, r#"{"jsonrpc":"2.0","id":"q-1","error":{"code":-32004,"message":"not today"}}"#),
            false => {
                Answer::json(400, r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"not today"}}"#)
            }
        })
        .start()
        .await?;
    assert!(stage.text(&at.ask("Make tea.")).await?.contains("not today"));
    let [end] = stage.told(["SubagentStop"]).await;
    assert_eq!(*end.detail(), json!({"subagent": "billing", "ok": false, "error": "not today"}));
    Ok(())
}

/// A list shows the past: only what began here is told.
pub(super) async fn what_is_long_over_is_no_news(at: At) -> Outcome {
    let said = at.dialect;
    let stage = at
        .agent(move |number, _| match number {
            0 => at.tell(&[said.task("t-1", "working", "")]),
            1 => said.whole(
                &json!({"tasks": [said.bare_task("old", "completed", ""), said.bare_task("t-1", "failed", "")]}),
            ),
            _ => at.tell(&[said.task("mark", "completed", "")]),
        })
        .start()
        .await?;
    stage.text(&at.ask("Make tea.")).await?;
    stage.text(&said.list()).await?;
    assert_eq!(stage.told(["SubagentStop"]).await[0].text("/taskId"), "t-1");
    mark(&stage, at).await?;
    assert_eq!((counts(&stage, "old"), counts(&stage, "t-1")), ([0, 0, 0], [1, 1, 1]));
    Ok(())
}

pub(super) async fn a_task_that_began_elsewhere_is_told_once(at: At) -> Outcome {
    let said = at.dialect;
    let stage = at
        .agent(move |number, _| match number {
            0 | 1 => said.whole(&said.bare_task("t-1", "completed", "Done.")),
            _ => at.tell(&[said.task("mark", "completed", "")]),
        })
        .start()
        .await?;
    stage.text(&said.about("get", "t-1")).await?;
    stage.text(&said.about("get", "t-1")).await?;
    let [stop, end] = stage.told(["TaskStop", "SubagentStop"]).await;
    assert_eq!((stop.text("/agentId"), end.text("/detail/response")), ("c-1", "Done."));
    mark(&stage, at).await?;
    assert_eq!(counts(&stage, "t-1"), [0, 1, 1]);
    Ok(())
}

pub(super) async fn a_conversation_is_a_session(at: At) -> Outcome {
    let said = at.dialect;
    let stage = at.telling([said.says("Hi.")]).deciding(|_| Ruling::pass()).start().await?;
    let text = |text| json!([said.text(text)]);
    let requests = [
        // The answer to the first says that its conversation is c-1.
        (at.ask_with(text("1"), json!({})), None),
        (at.ask_with(text("2"), json!({"contextId": "c-1"})), None),
        (at.ask_with(text("3"), json!({"contextId": "c-2"})), None),
        (at.ask_with(text("4"), json!({"contextId": "c-1"})), Some("mine")),
        (at.ask_with(text("5"), json!({"messageId": "m-2"})), None),
    ];
    for (number, (request, session)) in requests.iter().enumerate() {
        let headers: Vec<_> = session.iter().map(|session| ("x-hookgate-session", *session)).collect();
        stage.send_with(request, &headers).await?.bytes().await?;
        // The next one must find what this one's answer told.
        stage.policy.at_least_of("SubagentStop", number + 1).await;
    }
    let asked = stage.policy.asked_of("SubagentStart");
    let sessions: Vec<&str> = asked.iter().map(|asked| asked.text("/sessionId")).collect();
    assert_eq!(sessions[0], sessions[1]);
    assert_eq!((sessions[2], sessions[3]), ("c-2", "mine"));
    assert!(sessions[4] != sessions[0] && !sessions[4].is_empty());
    let agents: Vec<&str> = asked.iter().map(|asked| asked.text("/agentId")).collect();
    assert_eq!(agents, ["", "c-1", "c-2", "c-1", ""]);
    assert!(stage.agent.requests().iter().all(|request| request.header("x-hookgate-session").is_empty()));
    Ok(())
}

pub(super) async fn a_compressed_answer_is_read(at: At) -> Outcome {
    let at = At { dialect: Dialect::Rpc1, ..at };
    let stage = at.agent(move |_, _| at.tell(&[at.dialect.task("t-1", "completed", "Done.")]).gzip()).start().await?;
    let text = stage.text(&at.ask("Make tea.")).await?;
    assert!(text.contains("TASK_STATE_COMPLETED"), "{text}");
    assert_eq!(stage.told(["SubagentStop"]).await[0].text("/detail/response"), "Done.");
    assert_eq!(stage.agent.requests()[0].header("accept-encoding"), "identity");
    Ok(())
}
