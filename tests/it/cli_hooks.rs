//! `hooks list` and `hooks test`.

use std::net::SocketAddr;

use crate::cli_support::policy;
use crate::config_support::Folder;

const PASS: &str = r#"{"schemaVersion": 1, "outcome": "pass"}"#;
const DENY: &str = r#"{"schemaVersion": 1, "outcome": "deny", "reason": "not on a Friday"}"#;
const MODIFY: &str = r#"{"schemaVersion": 1, "outcome": "modify", "replacement": {"command": "ls -l"}}"#;

const LOOPBACK: &str =
    "[hooks]\nallow_insecure_loopback = true\nallowed_hosts = [\"127.0.0.1\"]\ndocuments = [\"hooks.json\"]\n";

fn handler(id: &str, address: SocketAddr, more: &str) -> String {
    format!(r#"{{"id": "{id}", "type": "http", "url": "http://{address}/{id}"{more}}}"#)
}

fn folder(event: &str, handlers: &[String]) -> Folder {
    let folder = Folder::with(LOOPBACK);
    folder.file("hooks.json", &format!(r#"{{"version": 1, "hooks": {{"{event}": [{}]}}}}"#, handlers.join(",")));
    folder
}

#[test]
fn list_shows_the_handlers_in_force() {
    let folder = Folder::with("[hooks]\ndocuments = [\"hooks.json\"]\nallowed_hosts = [\"hooks.example.com\"]\n");
    folder.file(
        "hooks.json",
        r#"{"version": 1, "hooks": {
            "PreToolUse": [{"id": "commands", "type": "http", "url": "https://hooks.example.com/c?key=s3cret",
                            "matcher": ["Bash", "Write"], "timeoutMs": 500}],
            "PostToolUse": [{"id": "journal", "type": "http", "url": "https://hooks.example.com/j"}]}}"#,
    );
    let output = folder.hookgate(&["hooks", "list"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let rows: Vec<Vec<&str>> = output.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            ["EVENT", "ID", "MATCHER", "URL", "TIMEOUT", "FAILURE", "SOURCE"],
            ["PreToolUse", "commands", "Bash,Write", "https://hooks.example.com/c?…", "500ms", "closed", "hooks.json"],
            ["PostToolUse", "journal", "*", "https://hooks.example.com/j", "2000ms", "open", "hooks.json"],
        ]
    );
    assert!(Folder::with("").hookgate(&["hooks", "list"]).stdout.contains("No hooks are configured"));
    assert!(
        folder.hookgate_with(&[("HOOKGATE_HOOKS_MODE", "off")], &["hooks", "list"]).stdout.contains("switched off")
    );
}

#[test]
fn tools_that_are_denied_are_shown() {
    let folder = Folder::with("[tools]\ndeny = [\"wipe\", \"mcp__files__write\"]\n");
    let output = folder.hookgate(&["hooks", "list"]);
    assert_eq!(output.stdout, "Denied by [tools], whatever hooks say: wipe, mcp__files__write\n");
    let output = folder.hookgate(&["hooks", "test", "PreToolUse", "--tool", "wipe"]);
    let decision = "Decision: deny, by [tools] deny: the tool wipe is denied by the configuration";
    assert!(output.code == 0 && output.stdout.contains(decision), "{}{}", output.stdout, output.stderr);
}

#[test]
fn a_test_shows_request_answer_and_decision() {
    let folder = folder("PreToolUse", &[handler("first", policy(MODIFY), ""), handler("second", policy(DENY), "")]);
    let output = folder.hookgate(&["hooks", "test", "PreToolUse", "--tool", "Write", "--input", r#"{"n": 1.50}"#]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    for expected in [
        "PreToolUse → first\n  request  POST http://127.0.0.1:",
        "\"toolName\": \"Write\"",
        "\"n\": 1.50\n",
        "\"sessionId\": \"hookgate-test\"",
        "  answer   200, after ",
        "  outcome  modify\n",
        "PreToolUse → second\n",
        "\"command\": \"ls -l\"",
        "  outcome  deny: not on a Friday\n",
        "Decision: deny, by second: not on a Friday\n",
    ] {
        assert!(output.stdout.contains(expected), "{expected}\nis not in\n{}", output.stdout);
    }
}

#[test]
fn one_handler_can_be_asked_alone() {
    let folder = folder("PreToolUse", &[handler("first", policy(MODIFY), ""), handler("second", policy(DENY), "")]);
    let output = folder.hookgate(&["hooks", "test", "PreToolUse", "--handler", "first"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!output.stdout.contains("second"), "{}", output.stdout);
    assert!(
        output.stdout.ends_with("Decision: modify, to\n    {\n      \"command\": \"ls -l\"\n    }\n"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_handler_that_fails_is_exit_code_1() {
    let folder = folder("UserPromptSubmit", &[handler("broken", policy("{}"), ""), handler("fine", policy(PASS), "")]);
    let output = folder.hookgate(&["hooks", "test", "UserPromptSubmit", "--input", "hello there"]);
    assert_eq!((output.code, output.stderr.as_str()), (1, "These handlers failed: broken.\n"));
    assert!(output.stdout.contains("\"prompt\": \"hello there\""), "{}", output.stdout);
    assert!(output.stdout.contains("  outcome  failed_closed (malformed)"), "{}", output.stdout);
    assert!(output.stdout.contains("Decision: deny, by broken: "), "{}", output.stdout);
}

#[test]
fn events_that_only_tell_can_be_tested_too() {
    for event in [
        "SessionStart",
        "TaskStart",
        "PostToolUse",
        "PostToolUseFailure",
        "SubagentStop",
        "TaskStop",
        "StopFailure",
        "SessionEnd",
    ] {
        let output = folder(event, &[handler("journal", policy(PASS), "")]).hookgate(&["hooks", "test", event]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{event}");
        assert!(output.stdout.contains(&format!("\"event\": \"{event}\"")), "{}", output.stdout);
        assert!(output.stdout.contains("  outcome  pass\n") && output.stdout.contains("Decision: allow\n"));
    }
    for event in ["SubagentStart", "Stop"] {
        let output = folder(event, &[handler("gate", policy(PASS), "")]).hookgate(&["hooks", "test", event]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{event}");
    }
}

#[test]
fn a_test_that_would_ask_nobody_is_explained() {
    let folder = folder("PreToolUse", &[handler("writes", policy(PASS), r#", "matcher": ["Write"]"#)]);
    for (arguments, expected) in [
        (&["hooks", "test", "Stop"][..], "Stop has no handler"),
        (&["hooks", "test", "PreToolUse", "--handler", "reads"], "PreToolUse has no handler \"reads\"; it has writes."),
        (
            &["hooks", "test", "PreToolUse", "--tool", "Read"],
            "No handler of PreToolUse is for \"Read\"; name another one",
        ),
        (&["hooks", "test", "PreToolUse", "--tool", "Write", "--input", "[]"], "--input has to be a JSON object"),
        (&["hooks", "test", "PreToolUse", "--tool", "Write", "--input", "{"], "--input is not JSON"),
        (&["hooks", "test", "PreToolUse", "--log", "[[["], "--log: \"[[[\" is not a log filter"),
    ] {
        let output = folder.hookgate(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(output.stderr.starts_with(expected), "{}", output.stderr);
    }
    let output = folder.hookgate_with(&[("HOOKGATE_HOOKS_MODE", "off")], &["hooks", "test", "PreToolUse"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("switched off"), "{}", output.stderr);
}
