//! `user …` and `key …`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use crate::cli_support::{Output, command};
use crate::config_support::Folder;

fn with_input(folder: &Folder, input: &str, arguments: &[&str]) -> Output {
    let mut child = command(&folder.path(""), arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that fails early does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Output {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn users_are_added_listed_disabled_enabled_and_removed() {
    // The configuration asks for users before there are any, and for a variable that is not set here.
    let folder = Folder::with("[auth]\nmode = \"token+password\"\n");
    assert_eq!(folder.hookgate(&["user", "list"]).stdout, "NAME  STATE  CREATED\n");
    let output = with_input(&folder, "correct horse\n", &["user", "add", "ann", "--password-stdin"]);
    assert_eq!((output.code, output.stdout.as_str(), output.stderr.as_str()), (0, "", "ann may log in.\n"));
    assert_eq!(with_input(&folder, "battery staple", &["user", "add", "bob", "--password-stdin"]).code, 0);

    let text = std::fs::read_to_string(folder.path("users.toml")).unwrap();
    assert!(text.starts_with("# Who may log in") && text.matches("$argon2id$v=19$").count() == 2, "{text}");
    assert!(!text.contains("correct horse") && !text.contains("battery staple"));
    assert_eq!(std::fs::metadata(folder.path("users.toml")).unwrap().permissions().mode() & 0o777, 0o600);

    assert_eq!(folder.hookgate(&["user", "disable", "ann"]).code, 0);
    let list = folder.hookgate(&["user", "list"]).stdout;
    let states: Vec<Vec<&str>> = list.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(states, [["NAME", "STATE"], ["ann", "disabled"], ["bob", "enabled"]]);
    assert_eq!(folder.hookgate(&["user", "enable", "ann"]).code, 0);
    assert!(!folder.hookgate(&["user", "list"]).stdout.contains("disabled"));

    assert_eq!(with_input(&folder, "another horse\n", &["user", "passwd", "ann", "--password-stdin"]).code, 0);
    assert_ne!(std::fs::read_to_string(folder.path("users.toml")).unwrap(), text);
    assert_eq!(folder.hookgate(&["user", "remove", "ann"]).code, 0);
    assert!(!folder.hookgate(&["user", "list"]).stdout.contains("ann"));
}

#[test]
fn what_makes_no_sense_is_refused_and_no_password_is_repeated() {
    let folder = Folder::with("");
    assert_eq!(with_input(&folder, "correct horse", &["user", "add", "ann", "--password-stdin"]).code, 0);
    for (input, arguments, code, expected) in [
        ("correct horse", &["user", "add", "ann", "--password-stdin"][..], 1, "there is a user \"ann\" already"),
        ("correct horse", &["user", "passwd", "bob", "--password-stdin"], 1, "there is no user \"bob\""),
        ("", &["user", "remove", "bob"], 1, "there is no user \"bob\""),
        ("horse", &["user", "add", "bob", "--password-stdin"], 2, "at least 8 letters"),
        ("correct\nhorse", &["user", "add", "bob", "--password-stdin"], 2, "one line"),
        ("correct horse", &["user", "add", "bo/b", "--password-stdin"], 1, "is not a name"),
        ("correct horse", &["user", "add", "token", "--password-stdin"], 1, "choose another name"),
        ("correct horse", &["user", "add", "bob"], 2, "--password-stdin"),
        ("", &["key", "remove", "team"], 1, "there is no key \"team\""),
    ] {
        let output = with_input(&folder, input, arguments);
        assert_eq!((output.code, output.stdout.as_str()), (code, ""), "{arguments:?}: {}", output.stderr);
        assert!(output.stderr.contains(expected) && !output.stderr.contains("horse"), "{}", output.stderr);
    }
    std::fs::set_permissions(folder.path("users.toml"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let output = folder.hookgate(&["user", "list"]);
    assert!(output.code == 1 && output.stderr.contains("chmod 600"), "{}", output.stderr);
}

#[test]
fn a_key_is_printed_once_and_kept_as_its_hash() {
    let folder = Folder::with("[auth]\nkeys_file = \"k.toml\"\n");
    let output = folder.hookgate(&["key", "add", "team-a"]);
    let key = output.stdout.trim_end();
    assert!(output.code == 0 && key.starts_with("hgk_") && key.len() == 68, "{}", output.stdout);
    assert!(output.stderr.contains("this once") && !output.stderr.contains(key), "{}", output.stderr);
    let text = std::fs::read_to_string(folder.path("k.toml")).unwrap();
    assert!(text.contains("[keys.team-a]") && !text.contains(key) && !text.contains(&key[4..]), "{text}");
    assert_eq!(folder.hookgate(&["key", "add", "team-a"]).code, 1);
    let list = folder.hookgate(&["key", "list"]).stdout;
    assert!(list.contains("team-a") && !list.contains("hgk_"), "{list}");
    assert_eq!(folder.hookgate(&["key", "remove", "team-a"]).code, 0);
    assert_eq!(folder.hookgate(&["key", "list"]).stdout, "NAME  CREATED\n");
}
