//! `run`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::cli_support::command;
use crate::config_support::Folder;

/// Ends the process whatever becomes of the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn run_greets_serves_and_ends_on_sigterm() {
    let folder = Folder::with("[server]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n");
    let mut command = command(&folder.path(""), &["run"]);
    let mut running = Running(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let mut log = BufReader::new(running.0.stderr.take().unwrap()).lines();

    let address = log.by_ref().find_map(|line| {
        let record: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        (record["message"] == "listening").then(|| record["address"].as_str().unwrap().to_owned())
    });
    let mut stream = TcpStream::connect(address.unwrap()).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    let stopped = Command::new("kill").arg(running.0.id().to_string()).status().unwrap();
    assert!(stopped.success());
    assert_eq!(running.0.wait().unwrap().code(), Some(0));
    let mut greeting = String::new();
    running.0.stdout.take().unwrap().read_to_string(&mut greeting).unwrap();
    for expected in [
        "ANTHROPIC_BASE_URL=http://127.0.0.1:0/anthropic claude",
        "anthropic  model  http://127.0.0.1:0/anthropic  https://api.anthropic.com\n",
        "/hookgate/v1/sessions/SESSION_ID/hooks",
        "Hooks:        none.",
    ] {
        assert!(greeting.contains(expected), "{expected}\nis not in\n{greeting}");
    }
    drop(log);
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
