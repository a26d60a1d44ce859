//! The environment over the file.

use hookgate::HooksMode;

use crate::config_support::Folder;

const ONE_ROUTE: &str =
    "[[routes]]\nname = \"a\"\nkind = \"model\"\npath_prefix = \"/a\"\nupstream = \"http://127.0.0.1:1\"\n";

#[test]
fn every_kind_of_key_can_be_overridden() {
    let folder =
        Folder::with(&format!("{ONE_ROUTE}[connections.Policy]\nbearer_env = \"OLD\"\n[log]\nlevel = \"warn\"\n"));
    let environment = [
        ("HOOKGATE__SERVER__LISTEN", "[\"127.0.0.1:1\", \"127.0.0.1:2\"]"),
        ("HOOKGATE__SERVER__SHUTDOWN_GRACE", "7s"),
        ("HOOKGATE__LIMITS__MAX_SESSIONS", "12"),
        ("HOOKGATE__HOOKS__ALLOW_INSECURE_LOOPBACK", "true"),
        ("HOOKGATE__LOG__LEVEL", "\"error\""),
        ("HOOKGATE__ROUTES__0__UPSTREAM", "https://b.example.com"),
        ("HOOKGATE__ROUTES__0__HEADER_ENV", "{ x-key = \"KEY\" }"),
        (
            "HOOKGATE__ROUTES__1",
            "{ name = \"c\", kind = \"passthrough\", path_prefix = \"/c\", upstream = \"http://127.0.0.1:3\" }",
        ),
        ("HOOKGATE__CONNECTIONS__POLICY__BEARER_ENV", "KEY"),
        ("HOOKGATE__CONNECTIONS__NEW__BEARER_ENV", "KEY"),
        ("KEY", "k"),
        ("HOOKGATE_OTHER", "not ours"),
    ];
    let config = folder.load(&environment).unwrap();
    assert_eq!(config.listen.len(), 2);
    assert_eq!(config.shutdown_grace.as_secs(), 7);
    assert_eq!(config.limits.max_sessions, 12);
    assert_eq!(config.log.level, "error");
    assert_eq!(config.routes[0].upstreams[0].host, "b.example.com");
    assert_eq!(config.routes[0].headers[0].0, "x-key");
    assert_eq!(&*config.routes[1].route.name, "c");
    assert_eq!(config.connections.keys().map(|name| &**name).collect::<Vec<_>>(), ["Policy", "new"]);
}

#[test]
fn a_part_of_a_default_can_be_overridden_and_the_rest_stays() {
    let config = Folder::with("").load(&[("HOOKGATE__ROUTES__0__UPSTREAM", "http://127.0.0.1:9")]).unwrap();
    let route = config.routes.iter().find(|route| &*route.route.name == "anthropic").unwrap();
    assert_eq!((route.upstreams[0].port, route.path_prefix.as_str()), (9, "/anthropic"));
    assert_eq!(config.routes.len(), 3);
}

#[test]
fn lists_can_grow_element_by_element() {
    let names = (0..12).map(|index| {
        (format!("HOOKGATE__SUBAGENTS__{index}"), format!("{{ tool = \"t{index}\", id = \"/i\", prompt = \"/p\" }}"))
    });
    let environment: Vec<_> = names.collect();
    let environment: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let config = Folder::with("subagents = []").load(&environment).unwrap();
    assert_eq!(&*config.subagents[10].tool, "t10");

    let found = Folder::with("").faults(&[("HOOKGATE__SUBAGENTS__7__TOOL", "x")]);
    assert_eq!(
        found,
        ["HOOKGATE__SUBAGENTS__7__TOOL: subagents[7]: there are 2 elements; the next new one has the number 2"]
    );
}

#[test]
fn names_that_are_no_keys_are_refused() {
    for (name, expected) in [
        (
            "HOOKGATE__SERVER__LISTENS",
            "HOOKGATE__SERVER__LISTENS: server.listens: unknown key; did you mean \"listen\"?",
        ),
        ("HOOKGATE__SERVER__LISTEN__X", "HOOKGATE__SERVER__LISTEN__X: server.listen: no key has this name"),
        ("HOOKGATE__LOG__LEVEL__X", "HOOKGATE__LOG__LEVEL__X: log.level: no key has this name"),
        ("HOOKGATE__STORE__URL", "HOOKGATE__STORE__URL: store: unknown key"),
        ("HOOKGATE__", "HOOKGATE__: \"\": unknown key"),
    ] {
        let found = Folder::with("").faults(&[(name, "1")]);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
    }
}

#[test]
fn faults_name_the_variable() {
    let environment = [
        ("HOOKGATE__LIMITS__MAX_SESSIONS", "many"),
        ("HOOKGATE__SERVER__LISTEN", "[\"127.0.0.1:1\""),
        ("HOOKGATE__SERVER__TLS__CERT", "cert.pem"),
    ];
    let found = Folder::with("").faults(&environment);
    assert!(
        found[0]
            .starts_with("HOOKGATE__LIMITS__MAX_SESSIONS: limits.max_sessions: found \"many\"; expected an integer"),
        "{found:?}"
    );
    assert!(found[1].starts_with("HOOKGATE__SERVER__LISTEN: server.listen: the value is not TOML"), "{found:?}");
    assert!(found[2].starts_with("HOOKGATE__SERVER__TLS__CERT: server.tls.key: missing"), "{found:?}");
    assert_eq!(found.len(), 3);
}

#[test]
fn the_short_names_work_and_the_emergency_switch_wins() {
    let folder = Folder::with("[hooks]\nallowed_hosts = [\"a.example.com\"]\n");
    let config = folder.load(&[("HOOKGATE__HOOKS__MODE", "on"), ("HOOKGATE_HOOKS_MODE", "off")]).unwrap();
    assert_eq!(config.hooks_mode, HooksMode::Off);
    let found = folder.faults(&[("HOOKGATE_HOOKS_MODE", "of")]);
    assert!(found[0].starts_with("HOOKGATE_HOOKS_MODE: hooks.mode: found \"of\""), "{found:?}");

    let config = folder.load(&[("HOOKGATE_HOOK_ALLOWED_HOSTS", "b.example.com, c.example.com:8443")]).unwrap();
    let shown = config.show();
    assert!(shown.contains("[\"a.example.com\", \"b.example.com\", \"c.example.com:8443\"]"), "{shown}");
    assert!(shown.contains("hookgate.toml:2, HOOKGATE_HOOK_ALLOWED_HOSTS"), "{shown}");
}
