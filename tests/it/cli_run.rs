//! `run`.

use std::io::Read;
use std::net::TcpListener;

use crate::cli_support::{Running, policy};
use crate::config_support::Folder;

#[test]
fn run_greets_serves_and_ends_on_sigterm() {
    let folder = Folder::with("[server]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n");
    let mut running = Running::start(&folder);
    let answer = running.ask("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    running.signal("TERM");
    assert_eq!(running.process.wait().unwrap().code(), Some(0));
    let mut greeting = String::new();
    running.process.stdout.take().unwrap().read_to_string(&mut greeting).unwrap();
    for expected in [
        "ANTHROPIC_BASE_URL=http://127.0.0.1:0/anthropic claude",
        "anthropic  model  http://127.0.0.1:0/anthropic  https://api.anthropic.com\n",
        "/hookgate/v1/sessions/SESSION_ID/hooks",
        "Hooks:        none.",
    ] {
        assert!(greeting.contains(expected), "{expected}\nis not in\n{greeting}");
    }
}

/// A document with one policy for prompts, which refuses them for that reason.
fn refusing(reason: &str) -> String {
    let answer = format!(r#"{{"schemaVersion": 1, "outcome": "deny", "reason": "{reason}"}}"#);
    let url = format!("http://{}/", policy(answer.leak()));
    format!(r#"{{"version": 1, "hooks": {{"UserPromptSubmit": [{{"id": "p", "type": "http", "url": "{url}"}}]}}}}"#)
}

#[test]
fn sighup_puts_good_documents_in_force_and_refuses_broken_ones() {
    let folder = Folder::with(
        "[server]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n[hooks]\ndocuments = [\"hooks.json\"]\n\
         allowed_hosts = [\"127.0.0.1\"]\nallow_insecure_loopback = true\n",
    );
    folder.file("hooks.json", &refusing("as at the start"));
    let running = Running::start(&folder);
    // Each prompt is another one: what was decided of one stays.
    let answer_to = |prompt: &str| {
        let body =
            format!(r#"{{"model": "m", "max_tokens": 9, "messages": [{{"role": "user", "content": "{prompt}"}}]}}"#);
        running.ask(&format!(
            "POST /anthropic/v1/messages HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    assert!(answer_to("one").contains("as at the start"));

    folder.file("hooks.json", &refusing("as it is now"));
    assert!(answer_to("two").contains("as at the start"), "a file alone changes nothing");
    running.signal("HUP");
    assert_eq!(running.logged("the hooks were reloaded")["handlers"], 1);
    assert!(answer_to("three").contains("as it is now"));

    folder.file("hooks.json", r#"{"version": 1, "hooks": {"UserPromptSubmit": [{"id": "p", "tpye": "http"}]}}"#);
    running.signal("HUP");
    let refused = running.logged("the hooks were not reloaded; the old ones stay");
    assert_eq!(refused["level"], "ERROR");
    let errors = refused["errors"].as_str().unwrap();
    assert!(errors.contains("hooks.json") && errors.contains("tpye"), "{errors}");
    assert!(answer_to("four").contains("as it is now"));

    // A refusal is not the end of reloading.
    folder.file("hooks.json", &refusing("as mended"));
    running.signal("HUP");
    running.logged("the hooks were reloaded");
    assert!(answer_to("five").contains("as mended"));
}

#[test]
fn an_address_that_is_taken_is_exit_code_1() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let folder = Folder::with(&format!("[server]\nlisten = \"{address}\"\n"));
    let output = folder.hookgate(&["run"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains(&address), "{}", output.stderr);
}

#[test]
fn the_greeting_says_how_to_pass_the_gate() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::with("");
    let password = hookgate::auth::Password::new("correct horse").unwrap();
    hookgate::auth::UsersFile::new(folder.path("users.toml")).add("ann", &password).unwrap();
    let key = folder.hookgate(&["key", "add", "team"]).stdout;
    let token = "correct-token-0123456789";
    for (auth, expected) in [
        ("mode = \"token\"", "curl -H \"authorization: Bearer $TOKEN\" http://"),
        ("mode = \"password\"", "log in at http://"),
        ("protect_routes = true", "ANTHROPIC_CUSTOM_HEADERS=\"x-hookgate-key: $KEY\" ANTHROPIC_BASE_URL="),
        ("protect_routes = true", "default_headers={\"x-hookgate-key\": KEY})"),
    ] {
        folder.file(
            "hookgate.toml",
            &format!("[server]\nlisten = \"{}\"\n[auth]\n{auth}\n", listener.local_addr().unwrap()),
        );
        let output = folder.hookgate_with(&[("HOOKGATE_TOKEN", token)], &["run"]);
        assert!(output.stdout.contains(expected), "{auth}: {}", output.stdout);
        let all = output.stdout + &output.stderr;
        assert!(!all.contains(token) && !all.contains(key.trim()), "{all}");
    }
}

#[test]
fn switched_off_hooks_are_said_twice() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = Folder::with(&format!("[server]\nlisten = \"{}\"\n", listener.local_addr().unwrap()));
    let output = folder.hookgate_with(&[("HOOKGATE_HOOKS_MODE", "off")], &["run"]);
    assert!(output.stdout.contains("Hooks:        switched off"), "{}", output.stdout);
    assert!(output.stderr.contains("WARN") && output.stderr.contains("no policy is applied"), "{}", output.stderr);
}

#[test]
fn the_log_filter_is_the_flag_or_the_variable_or_the_configuration() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder =
        Folder::with(&format!("[server]\nlisten = \"{}\"\n[log]\nlevel = \"error\"\n", listener.local_addr().unwrap()));
    let warns = |environment: &[(&str, &str)], arguments: &[&str]| {
        let off = [("HOOKGATE_HOOKS_MODE", "off")];
        let environment: Vec<_> = off.iter().chain(environment).copied().collect();
        folder.hookgate_with(&environment, arguments).stderr.contains("no policy is applied")
    };
    assert!(!warns(&[], &["run"]));
    assert!(warns(&[("RUST_LOG", "warn")], &["run"]));
    assert!(!warns(&[("RUST_LOG", "warn")], &["run", "--log", "error"]));
    assert!(warns(&[("RUST_LOG", "error")], &["run", "--log", "hookgate=debug"]));
}

#[test]
fn the_demo_shows_a_refusal() {
    let output = Folder::with("").hookgate(&["demo"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    assert!(output.stdout.contains("remove_file") && output.stdout.contains("never removed here"), "{}", output.stdout);
}
