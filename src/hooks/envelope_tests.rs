use super::*;
use crate::hooks::Dialect;
use crate::limits::MAX_OBSERVED_TEXT_BYTES;
use serde_json::{Value, json};

fn occasion(event: Event) -> Occasion {
    Occasion {
        event,
        session: SessionKey { tenant: "default".into(), session: "s-1".into() },
        turn_id: Some("t-1".into()),
        tool_call_id: Some("c-1".into()),
        task_id: None,
        agent_id: None,
        parent_agent_id: None,
        model: Some("m".into()),
        plane: Plane::Model,
        route: "anthropic".into(),
        name: None,
        server: None,
        trace: None,
    }
}

fn print(dialect: Dialect, event: Event, detail: &Detail) -> String {
    let occasion = occasion(event);
    let timestamp = Timestamp::from_unix_millis(1_500);
    let envelope = Envelope { event_id: "e-1", timestamp, occasion: &occasion, detail };
    String::from_utf8(dialect.request(&envelope).to_vec()).unwrap()
}

fn detail_of(event: Event, detail: &Detail) -> Value {
    let mut envelope: Value = serde_json::from_str(&print(Dialect::Native, event, detail)).unwrap();
    envelope["detail"].take()
}

fn claude(event: Event, detail: &Detail) -> Value {
    serde_json::from_str(&print(Dialect::ClaudeCode, event, detail)).unwrap()
}

fn pre(input: &'static str) -> Detail {
    Detail::PreToolUse {
        tool_name: "Bash".into(),
        input: Bytes::from_static(input.as_bytes()),
        server: None,
        declared: false,
    }
}

#[test]
fn the_native_envelope_is_the_contracts() {
    let printed = print(Dialect::Native, Event::PreToolUse, &pre(r#"{ "n" : 1e400, "s":"\ud800" }"#));
    assert_eq!(
        printed,
        concat!(
            r#"{"schemaVersion":1,"eventId":"e-1","event":"PreToolUse","timestamp":"1970-01-01T00:00:01.500Z","#,
            r#""sessionId":"s-1","turnId":"t-1","toolCallId":"c-1","taskId":null,"agentId":null,"parentAgentId":null,"#,
            r#""model":"m","plane":"model","route":"anthropic","#,
            r#""detail":{"toolName":"Bash","input":{ "n" : 1e400, "s":"\ud800" }}}"#
        )
    );
}

/// One detail of each event, with every optional member absent, and then with all of them.
#[test]
fn each_detail_has_its_members() {
    let text = |text: &'static str| Bytes::from_static(text.as_bytes());
    let plain = [
        (Event::SessionStart, Detail::SessionStart { source: "new" }, json!({"source": "new"})),
        (Event::TaskStart, Detail::TaskStart { title: None }, json!({})),
        (
            Event::UserPromptSubmit,
            Detail::UserPromptSubmit {
                prompt: "p".into(),
                attachments: vec![],
                client_context: vec![],
                replayed: false,
                side: false,
                source: None,
            },
            json!({"prompt": "p", "attachments": []}),
        ),
        (
            Event::SubagentStart,
            Detail::SubagentStart { subagent: "a".into(), prompt: "p".into() },
            json!({"subagent": "a", "prompt": "p"}),
        ),
        (Event::PreToolUse, pre("{}"), json!({"toolName": "Bash", "input": {}})),
        (
            Event::PostToolUse,
            Detail::PostToolUse {
                tool_name: "Bash".into(),
                input: None,
                result: text("\"ok\""),
                truncated: false,
                executed_upstream: false,
                failure_known: true,
            },
            json!({"toolName": "Bash", "input": null, "result": "ok", "truncated": false}),
        ),
        (
            Event::PostToolUseFailure,
            Detail::PostToolUseFailure {
                tool_name: "Bash".into(),
                input: Some(text("{}")),
                error: text("\"no\""),
                truncated: false,
                executed_upstream: false,
            },
            json!({"toolName": "Bash", "input": {}, "error": "no"}),
        ),
        (
            Event::SubagentStop,
            Detail::SubagentStop { subagent: "a".into(), ok: true, text: "r".into(), truncated: false },
            json!({"subagent": "a", "ok": true, "response": "r"}),
        ),
        (Event::TaskStop, Detail::TaskStop { status: "failed".into() }, json!({"status": "failed"})),
        (
            Event::Stop,
            Detail::Stop { response: "r".into(), stop_reason: "end_turn".into(), attempt: 1, max_attempts: 4 },
            json!({"response": "r", "stopReason": "end_turn", "attempt": 1, "maxAttempts": 4}),
        ),
        (
            Event::StopFailure,
            Detail::StopFailure { kind: "upstream".into(), status: None, message: "m".into() },
            json!({"kind": "upstream", "message": "m"}),
        ),
        (Event::SessionEnd, Detail::SessionEnd { reason: "deleted".into() }, json!({"reason": "deleted"})),
    ];
    for (event, detail, expected) in plain {
        assert_eq!(detail_of(event, &detail), expected, "{event:?}");
    }
    let full = [
        (Event::TaskStart, Detail::TaskStart { title: Some("t".into()) }, json!({"title": "t"})),
        (
            Event::UserPromptSubmit,
            Detail::UserPromptSubmit {
                prompt: "p".into(),
                attachments: vec![
                    Attachment { kind: "image".into(), media_type: Some("image/png".into()) },
                    Attachment { kind: "file".into(), media_type: None },
                ],
                client_context: vec!["<system-reminder>".into()],
                replayed: true,
                side: true,
                source: None,
            },
            json!({"prompt": "p", "attachments": [{"kind": "image", "mediaType": "image/png"}, {"kind": "file"}],
                   "clientContext": ["<system-reminder>"], "replayed": true, "side": true}),
        ),
        (
            Event::PreToolUse,
            Detail::PreToolUse {
                tool_name: "r".into(),
                input: text("{}"),
                server: Some("files".into()),
                declared: true,
            },
            json!({"toolName": "r", "input": {}, "server": "files", "declared": true}),
        ),
        (
            Event::PostToolUse,
            Detail::PostToolUse {
                tool_name: "Bash".into(),
                input: Some(text("{}")),
                result: text("[1]"),
                truncated: true,
                executed_upstream: true,
                failure_known: false,
            },
            json!({"toolName": "Bash", "input": {}, "result": [1], "truncated": true, "executedUpstream": true,
                   "failureKnown": false}),
        ),
        (
            Event::PostToolUseFailure,
            Detail::PostToolUseFailure {
                tool_name: "Bash".into(),
                input: None,
                error: text("[1]"),
                truncated: true,
                executed_upstream: true,
            },
            json!({"toolName": "Bash", "input": null, "error": [1], "truncated": true, "executedUpstream": true}),
        ),
        (
            Event::SubagentStop,
            Detail::SubagentStop { subagent: "a".into(), ok: false, text: "e".into(), truncated: true },
            json!({"subagent": "a", "ok": false, "error": "e", "truncated": true}),
        ),
        (
            Event::StopFailure,
            Detail::StopFailure { kind: "upstream".into(), status: Some(529), message: "m".into() },
            json!({"kind": "upstream", "status": 529, "message": "m"}),
        ),
    ];
    for (event, detail, expected) in full {
        assert_eq!(detail_of(event, &detail), expected, "{event:?}");
    }
}

#[test]
fn observed_text_is_cut_and_says_so() {
    let max = MAX_OBSERVED_TEXT_BYTES;
    let long = format!("x{}", "é".repeat(max / 2));
    let result = |json: String| Detail::PostToolUse {
        tool_name: "Bash".into(),
        input: None,
        result: json.into(),
        truncated: false,
        executed_upstream: false,
        failure_known: true,
    };
    let string = detail_of(Event::PostToolUse, &result(crate::wire::json::quote(&long)));
    assert_eq!(string["truncated"], true);
    let kept = string["result"].as_str().unwrap();
    assert_eq!((kept.len(), long.starts_with(kept)), (max - 1, true));

    // An array cannot be cut and stay one: its beginning comes as text.
    let array = detail_of(Event::PostToolUse, &result(format!("[\"{long}\"]")));
    assert_eq!(array["truncated"], true);
    assert!(array["result"].as_str().unwrap().starts_with("[\"xé"));

    // Escapes may be longer than the text that they stand for: that is not over the bound.
    let escaped = detail_of(Event::PostToolUse, &result(format!("\"{}\"", "\\u0078".repeat(max))));
    assert_eq!((&escaped["truncated"], escaped["result"].as_str().unwrap().len()), (&json!(false), max));

    let observed = [
        (
            Event::SubagentStop,
            Detail::SubagentStop { subagent: "a".into(), ok: true, text: long.clone(), truncated: false },
        ),
        (Event::StopFailure, Detail::StopFailure { kind: "k".into(), status: None, message: long.clone() }),
        (Event::SessionEnd, Detail::SessionEnd { reason: long.clone() }),
        (Event::TaskStart, Detail::TaskStart { title: Some(long.clone()) }),
    ];
    for (event, detail) in observed {
        let printed = print(Dialect::Native, event, &detail);
        assert!(printed.len() < max + 1000 && printed.contains("\"truncated\":true"), "{event:?}");
        let printed = print(Dialect::ClaudeCode, event, &detail);
        assert!(printed.len() < max + 1000 && printed.contains("\"truncated\":true"), "{event:?}");
    }
}

#[test]
fn what_a_gate_judges_is_never_cut() {
    let long = "x".repeat(MAX_OBSERVED_TEXT_BYTES * 2);
    let prompt = Detail::SubagentStart { subagent: "a".into(), prompt: long.clone() };
    assert_eq!(detail_of(Event::SubagentStart, &prompt)["prompt"], long.as_str());
    let stop = Detail::Stop { response: long.clone(), stop_reason: "end_turn".into(), attempt: 1, max_attempts: 4 };
    assert_eq!(detail_of(Event::Stop, &stop)["response"], long.as_str());
    assert_eq!(claude(Event::Stop, &stop)["last_assistant_message"], long.as_str());
    assert_eq!(stop.judged(), Some(("the answer", long.len())));
}

#[test]
fn claude_code_gets_its_own_names() {
    let event = claude(Event::PreToolUse, &pre(r#"{"command": "ls"}"#));
    assert_eq!(
        event,
        json!({"session_id": "s-1", "transcript_path": "", "cwd": "", "hook_event_name": "PreToolUse",
               "prompt_id": "t-1", "model": "m", "tool_name": "Bash", "tool_input": {"command": "ls"},
               "tool_use_id": "c-1"})
    );
    assert!(print(Dialect::ClaudeCode, Event::PreToolUse, &pre("{ \"n\":1.0}")).contains(r#""tool_input":{ "n":1.0}"#));
    let stop = |attempt| Detail::Stop { response: "r".into(), stop_reason: "s".into(), attempt, max_attempts: 4 };
    assert_eq!(claude(Event::Stop, &stop(1))["stop_hook_active"], false);
    let second = claude(Event::Stop, &stop(2));
    assert_eq!((&second["stop_hook_active"], &second["stop_block_count"]), (&json!(true), &json!(1)));
    assert_eq!(claude(Event::SessionStart, &Detail::SessionStart { source: "new" })["source"], "startup");
    assert_eq!(claude(Event::SessionStart, &Detail::SessionStart { source: "resume" })["source"], "resume");
    let start = Detail::SubagentStart { subagent: "reviewer".into(), prompt: "p".into() };
    let start = claude(Event::SubagentStart, &start);
    assert_eq!((&start["agent_id"], &start["agent_type"]), (&json!("c-1"), &json!("reviewer")));
    let failure = Detail::PostToolUseFailure {
        tool_name: "Bash".into(),
        input: None,
        error: Bytes::from_static(b"[1]"),
        truncated: false,
        executed_upstream: false,
    };
    let failure = claude(Event::PostToolUseFailure, &failure);
    assert_eq!((&failure["error"], &failure["tool_input"]), (&json!("[1]"), &json!({})));
}

#[test]
fn names_are_qualified_when_the_server_is_known() {
    let mut occasion = occasion(Event::PreToolUse);
    assert_eq!(occasion.full_name(), None);
    occasion.name = Some("read".into());
    assert_eq!(occasion.full_name().as_deref(), Some("read"));
    occasion.server = Some("files".into());
    assert_eq!(occasion.full_name().as_deref(), Some("mcp__files__read"));
}
