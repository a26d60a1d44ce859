//! Handlers that speak Claude Code's own contract, over real sockets.

use hookgate::audit::AuditOutcome;
use hookgate::dispatch::{AddedContext, Decision, HyperTransport};
use hookgate::hooks::{Detail, Event, FailureKind, Replacement};
use serde_json::json;

use super::dispatch_policy::{PolicyServer, Reply, dispatcher, gated, hooks, occasion, records, tool_input};

const JSON: &str = "content-type: application/json\r\n";

fn specific(event: Event, members: &str) -> String {
    format!(r#"{{"hookSpecificOutput":{{"hookEventName":"{}",{members}}}}}"#, event.name())
}

fn deny(reason: &str) -> Decision {
    Decision::Deny { reason: reason.into(), handler: "h".into() }
}

async fn ask(event: Event, mode: &str, reply: Reply) -> (Decision, Vec<AddedContext>, Option<FailureKind>) {
    let server = PolicyServer::start(move |_| reply.clone()).await;
    let more = format!(r#""dialect":"claude-code","failureMode":"{mode}""#);
    let (dispatcher, hooks) = (dispatcher(HyperTransport::new()), hooks(event, &[("h", &server.url(), &more)]));
    let verdict = dispatcher.gate(&hooks, &occasion(event), gated(event), None).await;
    (verdict.decision, verdict.context, records(&dispatcher)[0].failure)
}

#[tokio::test]
async fn the_request_has_claude_codes_names() {
    let server = PolicyServer::start(|_| Reply::Http(200, String::new(), vec![])).await;
    let dispatcher = dispatcher(HyperTransport::new());
    let url = server.url();
    for event in [Event::PreToolUse, Event::UserPromptSubmit, Event::Stop, Event::PostToolUse] {
        let hooks = hooks(event, &[("h", &url, r#""dialect":"claude-code""#)]);
        if event.gates() {
            dispatcher.gate(&hooks, &occasion(event), gated(event), None).await;
        } else {
            let detail = Detail::PostToolUse {
                tool_name: "Bash".into(),
                input: Some("{\"command\":\"ls\"}".into()),
                result: "\"ok\"".into(),
                truncated: false,
                executed_upstream: false,
                failure_known: true,
            };
            dispatcher.observe_awaited(&hooks, &occasion(event), detail).await;
        }
    }
    let seen: Vec<_> = server.seen().iter().map(|seen| seen.json()).collect();
    for (seen, members) in seen.iter().zip([
        json!({"hook_event_name": "PreToolUse", "session_id": "s-1", "tool_name": "Bash",
            "tool_input": {"command": "ls"}, "tool_use_id": "call-1"}),
        json!({"hook_event_name": "UserPromptSubmit", "prompt": "hello"}),
        json!({"hook_event_name": "Stop", "stop_hook_active": true, "last_assistant_message": "done"}),
        json!({"hook_event_name": "PostToolUse", "tool_response": "ok", "tool_use_id": "call-1"}),
    ]) {
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(&seen[name], value, "{seen}");
        }
        assert_eq!(seen.get("schemaVersion"), None);
    }
    assert_eq!(seen.len(), 4);
}

#[tokio::test]
async fn each_decision_arrives() {
    let tool = Event::PreToolUse;
    for (event, body, expected) in [
        (tool, String::new(), Decision::Allow),
        (tool, "{}".to_owned(), Decision::Allow),
        (tool, r#"{"suppressOutput":true}"#.to_owned(), Decision::Allow),
        (tool, specific(tool, r#""permissionDecision":"allow""#), Decision::Allow),
        (tool, specific(tool, r#""permissionDecision":"deny","permissionDecisionReason":"not now""#), deny("not now")),
        (
            tool,
            specific(tool, r#""permissionDecision":"allow","updatedInput":{"n":1.0}"#),
            Decision::Modify(Replacement::Object("{\"n\":1.0}".into())),
        ),
        (tool, r#"{"decision":"block","reason":"no"}"#.to_owned(), deny("no")),
        (tool, r#"{"continue":false,"stopReason":"enough"}"#.to_owned(), deny("enough")),
        (Event::UserPromptSubmit, r#"{"decision":"block","reason":"no"}"#.to_owned(), deny("no")),
        (Event::SubagentStart, r#"{"decision":"block","reason":"no"}"#.to_owned(), deny("no")),
        (
            Event::Stop,
            r#"{"decision":"block","reason":"run the tests"}"#.to_owned(),
            Decision::Continue { reason: "run the tests".into(), handler: "h".into() },
        ),
        (Event::Stop, r#"{"decision":"block","reason":"x","continue":false}"#.to_owned(), Decision::Allow),
        (Event::Stop, String::new(), Decision::Allow),
    ] {
        for mode in ["closed", "open"] {
            let reply = Reply::Http(200, JSON.into(), body.clone().into_bytes());
            let (decision, _, failure) = ask(event, mode, reply).await;
            assert_eq!((decision, failure), (expected.clone(), None), "{event:?} {mode} {body}");
        }
    }
}

/// Nobody can be asked here, and what has no answer is not allowed.
#[tokio::test]
async fn what_needs_a_person_is_refused() {
    for wish in ["ask", "defer"] {
        let body = specific(Event::PreToolUse, &format!(r#""permissionDecision":"{wish}""#));
        let (decision, _, _) = ask(Event::PreToolUse, "open", Reply::Http(200, JSON.into(), body.into())).await;
        let Decision::Deny { reason, .. } = decision else { panic!("{wish}") };
        assert!(reason.contains("approvals are not available here"), "{reason}");
    }
}

#[tokio::test]
async fn context_arrives() {
    for event in [Event::PreToolUse, Event::UserPromptSubmit, Event::SubagentStart] {
        let body = specific(event, r#""additionalContext":"hint""#);
        let (decision, context, _) = ask(event, "closed", Reply::Http(200, JSON.into(), body.into())).await;
        assert_eq!(decision, Decision::Allow);
        assert_eq!(context, [AddedContext { handler: "h".into(), text: "hint".into() }]);
    }
}

/// What looks like a decision and is none is a failure, never "no opinion".
#[tokio::test]
async fn what_only_looks_like_a_decision_is_a_failure() {
    let tool = Event::PreToolUse;
    for (event, status, body, kind) in [
        (tool, 200, r#"{"permissionDecision":"allow"}"#.to_owned(), FailureKind::Malformed),
        (tool, 200, r#"{"allow":true}"#.to_owned(), FailureKind::Malformed),
        (tool, 200, specific(tool, r#""permissionDecision":"perhaps""#), FailureKind::Malformed),
        (tool, 200, specific(Event::Stop, r#""permissionDecision":"allow""#), FailureKind::Malformed),
        (
            Event::UserPromptSubmit,
            200,
            specific(Event::UserPromptSubmit, r#""permissionDecision":"allow""#),
            FailureKind::Outcome,
        ),
        (tool, 200, "approved".to_owned(), FailureKind::Malformed),
        (tool, 500, String::new(), FailureKind::Status),
        (Event::Stop, 200, r#"{"decision":"perhaps"}"#.to_owned(), FailureKind::Malformed),
    ] {
        for mode in ["closed", "open"] {
            let reply = Reply::Http(status, JSON.into(), body.clone().into_bytes());
            let (decision, _, failure) = ask(event, mode, reply).await;
            assert_eq!(failure, Some(kind), "{event:?} {body}");
            assert_eq!(matches!(decision, Decision::Deny { .. }), mode == "closed", "{body}");
        }
    }
}

/// The same failure as of any other handler when it is told something and answers a decision.
#[tokio::test]
async fn observers_decide_nothing() {
    let server = PolicyServer::start(|_| Reply::Json(r#"{"decision":"block","reason":"no"}"#.into())).await;
    let dispatcher = dispatcher(HyperTransport::new());
    let hooks = hooks(Event::SessionStart, &[("h", &server.url(), r#""dialect":"claude-code""#)]);
    let detail = Detail::SessionStart { source: "new" };
    assert_eq!(dispatcher.observe_awaited(&hooks, &occasion(Event::SessionStart), detail).await, []);
    let record = &records(&dispatcher)[0];
    assert_eq!((record.outcome, record.failure), (AuditOutcome::FailedOpen, Some(FailureKind::Outcome)));
    assert_eq!(server.seen()[0].json()["source"], "startup");
}

/// One dispatch may ask handlers of both contracts, each in its own words.
#[tokio::test]
async fn both_contracts_meet_in_one_dispatch() {
    let server = PolicyServer::start(|seen| match seen.json().get("hook_event_name") {
        Some(_) => Reply::Json(specific(Event::PreToolUse, r#""updatedInput":{"step":1}"#)),
        None => Reply::json(r#""outcome":"pass","additionalContext":"seen""#),
    })
    .await;
    let url = server.url();
    let hooks = hooks(Event::PreToolUse, &[("claude", &url, r#""dialect":"claude-code""#), ("native", &url, "")]);
    let dispatcher = dispatcher(HyperTransport::new());
    let verdict = dispatcher.gate(&hooks, &occasion(Event::PreToolUse), tool_input(r#"{"step":0}"#), None).await;
    assert_eq!(verdict.decision, Decision::Modify(Replacement::Object(r#"{"step":1}"#.into())));
    assert_eq!(server.seen()[1].json()["detail"]["input"], json!({"step": 1}));
}
