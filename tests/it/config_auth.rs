//! `[auth]` in the configuration: what is in force, and what is refused.

use std::time::Duration;

use hookgate::auth::{KeysFile, Password, TokenSource, UsersFile};
use hookgate::config::AuthFiles;

use crate::config_support::{Folder, accepted, faults};

const TOKEN: &str = "correct-token-0123456789";

fn with_user(text: &str) -> Folder {
    let folder = Folder::with(text);
    UsersFile::new(folder.path("users.toml")).add("ann", &Password::new("correct horse").unwrap()).unwrap();
    folder
}

#[test]
fn without_a_section_the_gate_stands_open() {
    let auth = accepted("").auth;
    assert!(auth.gate.is_none() && auth.keys_file.is_none());
}

#[test]
fn every_key_reaches_its_place() {
    let folder = Folder::with(
        "[auth]\nmode = \"token+password\"\ntoken_file = \"token\"\nusers_file = \"who.toml\"\nsession_ttl_seconds = 60\n\
         cookie_name = \"c\"\ncookie_secure = false\nprotect_routes = true\nkeys_file = \"k.toml\"\nmetrics_open = true\n",
    );
    folder.file("token", &format!("{TOKEN}\n"));
    UsersFile::new(folder.path("who.toml")).add("ann", &Password::new("correct horse").unwrap()).unwrap();
    KeysFile::new(folder.path("k.toml")).add("team").unwrap();
    let auth = folder.load(&[]).unwrap().auth;
    let gate = auth.gate.unwrap();
    assert!(matches!(gate.token, Some(TokenSource::File(path)) if path == folder.path("token")));
    assert_eq!(gate.users_file, Some(folder.path("who.toml")));
    assert_eq!((gate.session_ttl, gate.cookie_name.as_str()), (Duration::from_secs(60), "c"));
    assert_eq!((gate.cookie_secure, gate.metrics_open), (false, true));
    assert_eq!(auth.keys_file, Some(folder.path("k.toml")));
}

#[test]
fn defaults_are_the_documented_ones() {
    let gate = Folder::with("[auth]\nmode = \"token\"").load(&[("HOOKGATE_TOKEN", TOKEN)]).unwrap().auth.gate.unwrap();
    assert!(matches!(gate.token, Some(TokenSource::Known(_))));
    assert_eq!((gate.session_ttl, gate.cookie_name.as_str()), (Duration::from_secs(604_800), "hookgate_auth"));
    assert!(gate.cookie_secure && !gate.metrics_open && gate.users_file.is_none());
}

#[test]
fn a_gate_that_is_not_whole_does_not_start() {
    let found = faults("[auth]\nmode = \"token\"");
    assert!(found[0].contains("the environment variable HOOKGATE_TOKEN is not set"), "{found:?}");
    let found = Folder::with("[auth]\nmode = \"token\"").faults(&[("HOOKGATE_TOKEN", "short-secret")]);
    assert!(found[0].contains("16 to 4096 letters") && !found[0].contains("short-secret"), "{found:?}");
    let found = faults("[auth]\nmode = \"token\"\ntoken_file = \"missing\"");
    assert!(found[0].contains("auth.token_file: missing cannot be read"), "{found:?}");
    let found = faults("[auth]\nmode = \"password\"");
    assert!(found[0].contains("auth.users_file: users.toml: the file cannot be read"), "{found:?}");
    assert!(found[0].contains("`hookgate user add NAME --password-stdin` makes it"), "{found:?}");
    let found = faults("[auth]\nprotect_routes = true");
    assert!(found[0].contains("`hookgate key add NAME` makes it"), "{found:?}");
    let found = faults("[auth]\nmode = \"open\"");
    assert!(
        found[0].ends_with("found \"open\"; expected \"none\" or \"token\" or \"password\" or \"token+password\""),
        "{found:?}"
    );
}

#[test]
fn files_of_secrets_are_private_and_strict() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = with_user("[auth]\nmode = \"password\"");
    assert!(folder.load(&[]).is_ok());
    let file = folder.path("users.toml");
    let good = std::fs::read_to_string(&file).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let found = folder.faults(&[]);
    assert!(found[0].contains("mode is 0644") && found[0].contains("chmod 600"), "{found:?}");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    for (text, expected) in [
        (format!("{good}admin = true\n"), "unknown key users.ann.admin"),
        (format!("x = 1\n{good}"), "unknown key x"),
        (good.replace("disabled = false", "disabled = \"hunter22\""), "users.ann.disabled is neither true nor false"),
        (good.replace("$argon2id$", "hunter22"), "users.ann.password is not an argon2id hash"),
        (good.replace("password = ", "# "), "users.ann.password is missing"),
        (good.replace("[users.ann]", "[users.\"a/b\"]"), "\"a/b\" is not a name"),
        (format!("{good}hunter22\n"), "is not TOML"),
    ] {
        std::fs::write(&file, &text).unwrap();
        let found = folder.faults(&[]);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:?}");
        assert!(!found[0].contains("hunter22") && !found[0].contains("argon2id$"), "{found:?}");
    }
}

#[test]
fn what_would_protect_nothing_is_refused() {
    for text in
        ["token_env = \"T\"", "token_file = \"t\"", "users_file = \"u\"", "mode = \"token\"\nusers_file = \"u\""]
    {
        let found = Folder::with(&format!("[auth]\n{text}")).faults(&[("HOOKGATE_TOKEN", TOKEN)]);
        assert!(found.len() == 1 && found[0].contains("has no effect in this mode"), "{text}: {found:?}");
    }
    let found = Folder::with("[auth]\nmode = \"token\"\ntoken_env = \"T\"\ntoken_file = \"hookgate.toml\"").faults(&[]);
    assert!(found.iter().any(|fault| fault.contains("both token_env and token_file")), "{found:?}");
}

#[test]
fn listeners_are_public_once_there_is_a_gate() {
    let text = "[server]\nlisten = \"0.0.0.0:0\"\n[auth]\nmode = ";
    assert!(with_user(&format!("{text}\"password\"")).load(&[]).is_ok());
    assert!(Folder::with(&format!("{text}\"token\"")).load(&[("HOOKGATE_TOKEN", TOKEN)]).is_ok());
    let found = faults(&format!("{text}\"none\""));
    assert!(found.len() == 1 && found[0].contains("Set [auth] mode"), "{found:?}");
}

#[test]
fn commands_find_their_files_whatever_else_is_missing() {
    let folder = Folder::with(
        "[auth]\nmode = \"token+password\"\nusers_file = \"sub/u.toml\"\n[hooks]\ndocuments = [\"missing.json\"]\n",
    );
    assert!(folder.load(&[]).is_err());
    let files = AuthFiles::load(Some(&folder.path("hookgate.toml")), []).unwrap();
    assert_eq!((files.users, files.keys), (folder.path("sub/u.toml"), folder.path("keys.toml")));
    folder.file("hookgate.toml", "[auth]\nuser_file = \"u\"");
    assert!(AuthFiles::load(Some(&folder.path("hookgate.toml")), []).is_err());
}

#[test]
fn secrets_are_not_shown() {
    let config = Folder::with("[auth]\nmode = \"token\"").load(&[("HOOKGATE_TOKEN", TOKEN)]).unwrap();
    assert!(!config.show().contains(TOKEN) && !format!("{config:?}").contains(TOKEN));
    assert!(config.show().contains("token_env = \"HOOKGATE_TOKEN\""));
}
