//! `validate`, `config …` and the command's manners.

use std::net::TcpStream;
use std::path::Path;

use hookgate::auth::{Password, UsersFile};
use hookgate::config::Config;
use hookgate::host::pingora::Proxy;

use crate::config_support::Folder;

const FAULTY: &str = "[server]\nlissten = 1\n[limits]\nmax_sessions = 0\n";

#[test]
fn help_shows_how_to_begin() {
    let output = Folder::with("").hookgate(&["--help"]);
    assert_eq!(output.code, 0);
    for expected in ["hookgate run", "ANTHROPIC_BASE_URL", "HOOKGATE__SERVER__LISTEN", "validate", "Exit codes"] {
        assert!(output.stdout.contains(expected), "{}", output.stdout);
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let folder = Folder::with("");
    for arguments in [&["start"][..], &[], &["hooks"], &["run", "--port", "1"], &["hooks", "test", "preToolUse"]] {
        let output = folder.hookgate(arguments);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{arguments:?}");
    }
    assert!(folder.hookgate(&["hooks", "test", "preToolUse"]).stderr.contains("UserPromptSubmit"));
}

#[test]
fn validate_counts_what_is_right() {
    let output = Folder::with("").hookgate(&["validate"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "The configuration is valid: 3 routes, 0 handlers.\n"));
    assert_eq!(output.stderr, "");
}

#[test]
fn validate_lists_all_that_is_wrong_and_so_does_everything_else() {
    let folder = Folder::with(FAULTY);
    let expected = "hookgate.toml:2:1: server.lissten: unknown key; did you mean \"listen\"?\n\
                    hookgate.toml:4:16: limits.max_sessions: found 0; expected an integer from 1 to 10000000\n\n\
                    The configuration has 2 faults; nothing was started.\n";
    for arguments in [&["validate"][..], &["run"], &["config", "show"], &["hooks", "list"], &["hooks", "test", "Stop"]]
    {
        let output = folder.hookgate(arguments);
        assert_eq!((output.code, output.stderr.as_str()), (2, expected), "{arguments:?}");
        assert_eq!(output.stdout, "");
    }
}

#[test]
fn the_file_is_the_named_one_or_the_one_in_the_folder_or_none() {
    let folder = Folder::with(FAULTY);
    let good = folder.file("sub/good.toml", "[log]\nlevel = \"warn\"\n");
    assert_eq!(folder.hookgate(&["validate", "--config", "sub/good.toml"]).code, 0);
    assert_eq!(folder.hookgate(&["--config", good.to_str().unwrap(), "validate"]).code, 0);
    let output = folder.hookgate(&["validate", "--config", "missing.toml"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.starts_with("missing.toml: the configuration file cannot be read: "), "{}", output.stderr);

    std::fs::remove_file(folder.path("hookgate.toml")).unwrap();
    assert_eq!(folder.hookgate(&["validate"]).code, 0);
}

#[test]
fn the_environment_of_the_process_counts() {
    let folder = Folder::with("");
    let output = folder.hookgate_with(&[("HOOKGATE__LOG__LEVEL", "debug")], &["config", "show"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("level = \"debug\"  # HOOKGATE__LOG__LEVEL\n"), "{}", output.stdout);
    let output = folder.hookgate_with(&[("HOOKGATE__LOG__LEVLE", "debug")], &["config", "show"]);
    assert_eq!(output.code, 2);
    assert!(
        output.stderr.contains("HOOKGATE__LOG__LEVLE: log.levle: unknown key; did you mean \"level\"?"),
        "{}",
        output.stderr
    );
}

#[test]
fn the_schema_is_printed_as_json() {
    let output = Folder::with(FAULTY).hookgate(&["config", "schema"]);
    assert_eq!(output.code, 0, "the schema needs no configuration");
    let schema: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(schema, hookgate::config::schema());
}

#[test]
fn validate_says_that_hooks_are_off() {
    let folder = Folder::with("[hooks]\ndocuments = [\"missing.json\"]\n");
    let output = folder.hookgate_with(&[("HOOKGATE_HOOKS_MODE", "off")], &["validate"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("switched off"), "{}", output.stdout);
}

/// What the project hands out has to work as it is, once what its comments ask for is there.
#[test]
fn every_file_in_configs_is_valid_and_starts() {
    let folder = Folder::with("");
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
    for name in ["hooks/claude-code.json", "hooks/a2a.json", "schemas/refund.json"] {
        folder.file(name, &std::fs::read_to_string(configs.join(name)).unwrap());
    }
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    folder.file("tls/cert.pem", &key.cert.pem());
    folder.file("tls/key.pem", &key.signing_key.serialize_pem());
    UsersFile::new(folder.path("users.toml")).add("ann", &Password::new("correct horse").unwrap()).unwrap();
    assert_eq!(folder.hookgate(&["key", "add", "team-a"]).code, 0);

    for name in
        ["minimal.toml", "claude-code.toml", "callbacks.toml", "http-tool.toml", "mcp.toml", "a2a.toml", "team.toml"]
    {
        let file = folder.file(name, &std::fs::read_to_string(configs.join(name)).unwrap());
        let token = ("HOOKGATE_TOKEN", "correct-token-0123456789");
        let output = folder.hookgate_with(&[token], &["validate", "--config", file.to_str().unwrap()]);
        assert_eq!(output.code, 0, "{name}: {}", output.stderr);
        let environment = [token, ("HOOKGATE__SERVER__LISTEN", "127.0.0.1:0")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let proxy = Proxy::start(Config::load(Some(&file), environment).unwrap()).unwrap();
        assert!(TcpStream::connect(proxy.addresses()[0]).is_ok(), "{name}");
    }
    let files = std::fs::read_dir(configs).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    // The other two are what whoever tries team.toml has made.
    let files = files.filter(|name| name.ends_with(".toml") && !["users.toml", "keys.toml"].contains(&name.as_str()));
    assert_eq!(files.count(), 7, "a file is not tested");
}
