//! Messages that delegate something, and what a decision does to them.

use hookgate::testing::Ruling;
use serde_json::json;

use super::dialect::Dialect;
use super::stage::{At, Outcome, answer};

pub(super) async fn a_delegation_passes_as_it_came(at: At) -> Outcome {
    let stage = at.telling([at.dialect.task("t-1", "submitted", "")]).start().await?;
    let parts = json!([at.dialect.text("One."), {"data": {"n": 1}}, at.dialect.text("Two.")]);
    let mut request = at.ask_with(parts, json!({}));
    // As no printer would print it.
    request.body = request.body.replace("\"configuration\":", "\"future\" :[1.0e1] ,\n \"configuration\" :\t");
    let through = stage.text(&request).await?;
    let sent = stage.agent.requests();
    assert_eq!(String::from_utf8_lossy(&sent[0].body), request.body);
    assert!(sent[0].uri.path().ends_with(&request.path), "{}", sent[0].uri);
    assert_eq!(
        sent[0].header("a2a-version"),
        if at.dialect == Dialect::Rpc1 || at.dialect == Dialect::Rest1 { "1.0" } else { "" }
    );
    let direct = hookgate::testing::Client::new(&stage.agent.url());
    let direct = direct.post(&request.path, &[], request.body.clone()).await?.bytes().await?;
    assert_eq!(through, String::from_utf8_lossy(&direct));

    let [asked] = stage.told(["SubagentStart"]).await;
    assert_eq!(*asked.detail(), json!({"subagent": "billing", "prompt": "One.\nTwo."}));
    assert_eq!((asked.text("/plane"), asked.text("/route")), ("tool", "billing"));
    assert!(asked.json()["taskId"].is_null() && asked.json()["agentId"].is_null());
    Ok(())
}

pub(super) async fn a_denied_delegation_reaches_no_agent(at: At) -> Outcome {
    let stage = at.telling([]).deciding(|_| Ruling::deny("no \"tea\" here\nat all")).start().await?;
    for context in [json!({}), json!({"contextId": "c-9"})] {
        let request = at.ask_with(json!([at.dialect.text("Make tea.")]), context.clone());
        let incoming = stage.send(&request).await?;
        assert_eq!(incoming.status, 200);
        let media = match (at.stream, at.dialect) {
            (true, _) => "text/event-stream",
            (false, Dialect::Rest1) => "application/a2a+json",
            (false, _) => "application/json",
        };
        assert_eq!(incoming.headers["content-type"], media);
        let (text, answered) = at.dialect.reply(&answer(incoming).await?)?;
        assert_eq!(text, "no \"tea\" here\nat all");
        assert!(context["contextId"].is_null() || answered == "c-9", "{answered}");
    }
    assert!(stage.agent.requests().is_empty());
    assert!(stage.policy.asked_of("SubagentStop").is_empty());
    Ok(())
}

pub(super) async fn a_replacement_is_one_text(at: At) -> Outcome {
    let stage = at.telling([at.dialect.says("Hi.")]).deciding(|_| Ruling::modify("Make \"coffee\".")).start().await?;
    let file = json!({"raw": "AA==", "metadata": {"n": 1}});
    let parts = json!([file, at.dialect.text("Make"), at.dialect.text("tea."), {"data": [1]}]);
    stage.text(&at.ask_with(parts, json!({}))).await?;
    let expected = json!([file, at.dialect.text("Make \"coffee\"."), {"data": [1]}]);
    assert_eq!(stage.last_sent()[at.dialect.parts()], expected);
    assert_eq!(stage.last_sent()["messageId"], "m-1");
    Ok(())
}

pub(super) async fn context_follows_the_prompt(at: At) -> Outcome {
    let marked = |text: &str| {
        format!("\n\n<hook-context event=\"SubagentStart\" handler=\"policy-SubagentStart\">\n{text}\n</hook-context>")
    };
    let decide = |asked: &hookgate::testing::Envelope| match asked.text("/detail/prompt") {
        "Make\ntea." => Ruling::pass().context("Without sugar."),
        _ => Ruling::modify("Make coffee.").context("Black."),
    };
    let stage = at.telling([at.dialect.says("Hi.")]).deciding(decide).start().await?;
    let (make, tea) = (at.dialect.text("Make"), at.dialect.text("tea."));
    stage.text(&at.ask_with(json!([make, tea]), json!({}))).await?;
    let with_context = at.dialect.text(&format!("tea.{}", marked("Without sugar.")));
    assert_eq!(stage.last_sent()[at.dialect.parts()], json!([make, with_context]));

    stage.text(&at.ask("Make something.")).await?;
    let replaced = at.dialect.text(&format!("Make coffee.{}", marked("Black.")));
    assert_eq!(stage.last_sent()[at.dialect.parts()], json!([replaced]));
    Ok(())
}

pub(super) async fn a_continuation_is_not_asked_about(at: At) -> Outcome {
    let stage = at.telling([at.dialect.task("t-1", "working", "")]);
    let stage = stage.deciding(|asked| match asked.detail()["prompt"] == "Make tea." {
        true => Ruling::pass(),
        false => Ruling::deny("no"),
    });
    let stage = stage.start().await?;
    stage.text(&at.ask("Make tea.")).await?;
    for task in [json!({"taskId": "t-1"}), json!({"task_id": "t-1", "contextId": "c-1"})] {
        let request = at.ask_with(json!([at.dialect.text("Go on.")]), task);
        stage.text(&request).await?;
        assert_eq!(String::from_utf8_lossy(&stage.agent.requests().last().unwrap().body), request.body);
    }
    assert_eq!(stage.policy.asked_of("SubagentStart").len(), 1);
    // An empty name is none, and a task that hookgate did not see begin is nothing that anybody allowed.
    for task in ["", "t-2"] {
        let asked = stage.send(&at.ask_with(json!([at.dialect.text("Go on.")]), json!({"taskId": task}))).await?;
        assert_eq!(at.dialect.reply(&answer(asked).await?)?.0, "no");
    }
    assert_eq!(stage.agent.requests().len(), 3);
    Ok(())
}

pub(super) async fn what_two_readers_could_read_differently_is_refused(at: At) -> Outcome {
    let stage = at.telling([at.dialect.says("Hi.")]).start().await?;
    let request = at.ask("Make tea.");
    let two_texts =
        request.body.replace("\"text\":\"Make tea.\"", "\"text\":\"Make tea.\",\"t\\u0065xt\":\"Burn it.\"");
    let two_ids = at.ask_with(json!([at.dialect.text("Make tea.")]), json!({"taskId": "", "task_id": "t-1"})).body;
    let cut = request.body[..request.body.len() - 1].to_owned();
    let no_parts = request.body.replace(&format!("\"{}\"", at.dialect.parts()), "\"pieces\"");
    for body in [two_texts, two_ids, cut, no_parts, String::new()] {
        assert_ne!(body, request.body);
        let mut bad = request.clone();
        bad.body = body;
        let incoming = stage.send(&bad).await?;
        let status = incoming.status;
        let refused: serde_json::Value = answer(incoming).await?;
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("cannot be judged") && message.contains("policy-SubagentStart"), "{refused}");
        if at.dialect.is_rpc() {
            assert!(refused["error"]["code"].as_i64().is_some_and(|code| code < -32_000), "{refused}");
        } else {
            assert_eq!((status.as_u16(), &refused["error"]["status"]), (400, &"INVALID_ARGUMENT".into()));
        }
    }
    assert!(stage.agent.requests().is_empty());
    assert_eq!(stage.gateway.audit().await?[0]["outcome"], "malformed_input");
    Ok(())
}

pub(super) async fn a_prompt_that_is_too_large_is_refused(at: At) -> Outcome {
    let stage = at.telling([]).limits(|limits| limits.max_gated_bytes = 100).start().await?;
    let incoming = stage.send(&at.ask(&"x".repeat(101))).await?;
    let (text, _) = at.dialect.reply(&answer(incoming).await?)?;
    assert!(text.contains("max_gated_bytes"), "{text}");
    assert!(stage.agent.requests().is_empty() && stage.policy.asked().is_empty());
    Ok(())
}

pub(super) async fn a_policy_that_fails_decides_by_its_mode(at: At) -> Outcome {
    let plan = || at.telling([at.dialect.says("Hi.")]).deciding(|_| Ruling::raw(500, ""));
    let closed = plan().start().await?;
    let (text, _) = at.dialect.reply(&answer(closed.send(&at.ask("Make tea.")).await?).await?)?;
    assert!(text.contains("policy-SubagentStart"), "{text}");
    assert!(closed.agent.requests().is_empty());

    let open = plan().only(|policy| policy.hook("SubagentStart").open()).start().await?;
    open.text(&at.ask("Make tea.")).await?;
    let mut bad = at.ask("Make tea.");
    bad.body.pop();
    open.text(&bad).await?;
    let sent: Vec<_> = open.agent.requests().iter().map(|request| request.body.clone()).collect();
    assert_eq!(sent, [at.ask("Make tea.").body, bad.body]);
    Ok(())
}

pub(super) async fn matchers_know_the_agent(at: At) -> Outcome {
    let plan = |name: &'static str| {
        let plan = at.telling([at.dialect.says("Hi.")]).deciding(|_| Ruling::deny("no"));
        plan.only(move |policy| policy.hook("SubagentStart").matcher([name]))
    };
    let concerned = plan("billing").start().await?;
    concerned.text(&at.ask("Make tea.")).await?;
    assert!(concerned.agent.requests().is_empty());
    let other = plan("kitchen").start().await?;
    other.text(&at.ask("Make tea.")).await?;
    assert_eq!(other.agent.requests().len(), 1);
    Ok(())
}

pub(super) async fn without_hooks_nothing_is_touched(at: At) -> Outcome {
    let stage = at.telling([at.dialect.says("Hi.")]).no_hooks().start().await?;
    for body in [at.ask("Make tea.").body, "{\"half".to_owned(), "[1, 2]".to_owned(), String::new()] {
        let mut request = at.ask("");
        request.body = body;
        let headers = [("accept-encoding", "gzip, br")];
        stage.send_with(&request, &headers).await?.bytes().await?;
        let sent = stage.agent.requests().last().unwrap().clone();
        assert_eq!((&sent.body[..], sent.header("accept-encoding")), (request.body.as_bytes(), "gzip, br"));
    }
    Ok(())
}
