//! What a configuration means when it is right.

use std::time::Duration;

use hookgate::config::{LogFormat, Scheme};
use hookgate::limits::Limits;
use hookgate::{HooksMode, OnDeny, RouteKind};

use crate::config_support::{Folder, accepted};

#[test]
fn an_empty_file_means_the_built_in_configuration() {
    let config = accepted("");
    assert_eq!(config.listen, ["127.0.0.1:8787".parse().unwrap()]);
    assert_eq!((config.tls.is_none(), config.control_listen.len()), (true, 0));
    assert_eq!(config.limits, Limits::default());
    assert_eq!((config.hooks.is_empty(), config.hooks_mode), (true, HooksMode::On));
    assert_eq!((config.log.format, config.log.level), (LogFormat::Text, "info"));
    let mut routes: Vec<_> = config
        .routes
        .iter()
        .map(|route| (&*route.route.name, route.path_prefix.as_str(), route.upstreams[0].authority.as_str()))
        .collect();
    routes.sort_unstable();
    assert_eq!(
        routes,
        [
            ("anthropic", "/anthropic", "api.anthropic.com"),
            ("gemini", "/gemini", "generativelanguage.googleapis.com"),
            ("openai", "/openai", "api.openai.com"),
        ]
    );
    let tools: Vec<_> = config.subagents.iter().map(|subagent| &*subagent.tool).collect();
    assert_eq!(tools, ["Agent", "Task"]);
}

#[test]
fn every_key_reaches_its_place() {
    let folder = Folder::with(
        r#"
        [server]
        listen = ["127.0.0.1:9001", "[::1]:9001"]
        tls = { cert = "tls/cert.pem", key = "tls/key.pem" }
        control_listen = "127.0.0.1:9002"
        shutdown_grace = "5s"

        [hooks]
        max_stop_retries = 1
        max_deny_rounds = 2
        on_deny = "end"

        [[routes]]
        name = "one"
        kind = "model"
        host = "Agents.Example.COM"
        path_prefix = "/one/"
        upstream = ["https://a.example.com/v1/", "http://127.0.0.1:9000"]
        allow_uninspected = ["/v1/batches"]
        on_deny = "feedback"
        connect_timeout = "1s"
        first_byte_timeout = "2m"
        idle_timeout = "1h"
        check_interval = "30s"
        ca_file = "tls/cert.pem"
        client_cert = { cert = "tls/cert.pem", key = "tls/key.pem" }
        header_env = { X-Api-Key = "PROVIDER_KEY" }

        [[routes]]
        name = "rest"
        kind = "passthrough"
        path_prefix = "/"
        upstream = "http://[::1]:9000"

        [[subagents]]
        tool = "delegate"
        id = "/to"
        prompt = "/what"

        [connections.policy]
        bearer_env = "POLICY_TOKEN"

        [connections.team]
        header = { name = "x-team", env = "TEAM" }

        [connections.other]
        basic_env = "POLICY_USER"

        [audit]
        per_session = 7

        [limits]
        max_request_bytes = 2048
        max_held_bytes = 4096
        max_gated_bytes = 1024
        max_sessions = 5
        session_idle = "90s"
        keepalive_ms = 250
        max_hold = "10s"

        [log]
        format = "json"
        level = "debug"
        "#,
    );
    let cert = folder.file("tls/cert.pem", "-----BEGIN CERTIFICATE-----\n");
    let key = folder.file("tls/key.pem", "-----BEGIN PRIVATE KEY-----\n");
    let environment =
        [("PROVIDER_KEY", "sk-1"), ("POLICY_TOKEN", "t0ken"), ("TEAM", "red"), ("POLICY_USER", "ann:secret")];
    let config = folder.load(&environment).unwrap();

    assert_eq!(config.listen, ["127.0.0.1:9001".parse().unwrap(), "[::1]:9001".parse().unwrap()]);
    let tls = config.tls.as_ref().unwrap();
    assert_eq!((&tls.cert, &tls.key), (&cert, &key));
    assert_eq!(config.control_listen, ["127.0.0.1:9002".parse().unwrap()]);
    assert_eq!(config.shutdown_grace, Duration::from_secs(5));

    let [one, rest] = &config.routes[..] else { panic!("{:?}", config.routes) };
    assert_eq!((&*one.route.name, one.route.kind, one.route.on_deny), ("one", RouteKind::Model, OnDeny::Feedback));
    assert_eq!((one.host.as_deref(), one.path_prefix.as_str()), (Some("agents.example.com"), "/one"));
    assert_eq!(one.route.allow_uninspected, ["/v1/batches"]);
    assert_eq!(
        (one.connect_timeout, one.first_byte_timeout, one.idle_timeout),
        (Duration::from_secs(1), Duration::from_secs(120), Duration::from_secs(3600))
    );
    assert_eq!((one.check_interval, rest.check_interval), (Duration::from_secs(30), Duration::from_secs(5)));
    assert_eq!((one.ca_file.as_ref(), one.client_cert.as_ref()), (Some(&cert), Some(tls)));
    let [(name, value)] = &one.headers[..] else { panic!() };
    assert_eq!((name.as_str(), value.as_bytes(), value.is_sensitive()), ("x-api-key", &b"sk-1"[..], true));
    assert_eq!((one.upstreams[0].scheme, one.upstreams[0].path_prefix.as_str()), (Scheme::Https, "/v1"));
    assert_eq!((one.upstreams[1].scheme, one.upstreams[1].port), (Scheme::Http, 9000));
    assert_eq!((&*rest.route.name, rest.route.kind, rest.path_prefix.as_str()), ("rest", RouteKind::Passthrough, ""));

    assert_eq!((&*config.subagents[0].tool, &*config.subagents[0].id, config.subagents.len()), ("delegate", "/to", 1));
    assert_eq!(config.connections.keys().map(|name| &**name).collect::<Vec<_>>(), ["other", "policy", "team"]);

    let mut limits = Limits::default();
    limits.max_request_bytes = 2048;
    limits.max_held_bytes = 4096;
    limits.max_gated_bytes = 1024;
    limits.max_sessions = 5;
    limits.session_idle = Duration::from_secs(90);
    limits.keepalive = Duration::from_millis(250);
    limits.max_hold = Duration::from_secs(10);
    limits.max_deny_rounds = 2;
    limits.max_stop_retries = 1;
    limits.audit_per_session = 7;
    assert_eq!(config.limits, limits);
    assert_eq!((config.log.format, config.log.level), (LogFormat::Json, "debug"));

    let debug = format!("{config:?}");
    for (_, secret) in environment.iter().filter(|(name, _)| *name != "TEAM") {
        assert!(!debug.contains(secret), "{secret} is shown");
    }
    assert!(!debug.contains("YW5uOnNlY3JldA"), "{debug}");
}

#[test]
fn routes_are_tried_from_the_longest_prefix_on() {
    let config = accepted(
        r#"
        routes = [
            { name = "all", kind = "passthrough", path_prefix = "/", upstream = "http://127.0.0.1:1" },
            { name = "short", kind = "passthrough", path_prefix = "/a", upstream = "http://127.0.0.1:1" },
            { name = "long", kind = "passthrough", path_prefix = "/a/b", upstream = "http://127.0.0.1:1" },
            { name = "host", kind = "passthrough", path_prefix = "/a", upstream = "http://127.0.0.1:1", host = "h" },
        ]
        "#,
    );
    let names: Vec<_> = config.routes.iter().map(|route| &*route.route.name).collect();
    assert_eq!(names, ["long", "host", "short", "all"]);
}

const POLICY: &str = r#"{"version": 1, "hooks": {"PreToolUse": [
    {"id": "policy", "type": "http", "url": "https://hooks.example.com/p"}]}}"#;

#[test]
fn hook_documents_come_from_patterns_and_the_environment() {
    let folder = Folder::with("[hooks]\ndocuments = [\"hooks/*.json\"]\nallowed_hosts = [\"hooks.example.com\"]\n");
    folder.file("hooks/b.json", POLICY);
    let more = POLICY.replace("\"policy\"", "\"more\"").replace("hooks.example.com", "other.example.com");
    let environment = [("HOOKGATE_HOOKS", more.as_str()), ("HOOKGATE_HOOK_ALLOWED_HOSTS", " other.example.com , x ")];
    let config = folder.load(&environment).unwrap();

    let handlers: Vec<_> = config.hooks.iter().map(|handler| (&*handler.id, &*handler.source)).collect();
    let file = folder.path("hooks/b.json").display().to_string();
    assert_eq!(handlers, [("policy", file.as_str()), ("more", "HOOKGATE_HOOKS")]);
}

#[test]
fn documents_are_read_again_on_demand_and_the_faults_of_a_reload_are_all_reported() {
    let folder = Folder::with("[hooks]\ndocuments = [\"hooks/*.json\"]\nallowed_hosts = [\"hooks.example.com\"]\n");
    folder.file("hooks/a.json", POLICY);
    let config = folder.load(&[]).unwrap();

    folder.file("hooks/b.json", &POLICY.replace("\"policy\"", "\"second\""));
    let hooks = config.hook_sources.load().unwrap();
    assert_eq!(hooks.iter().map(|handler| &*handler.id).collect::<Vec<_>>(), ["policy", "second"]);

    folder.file("hooks/a.json", "{");
    folder.file("hooks/b.json", &POLICY.replace("https", "gopher"));
    let errors = config.hook_sources.load().unwrap_err().to_string();
    assert!(errors.contains("a.json:1:") && errors.contains("b.json:2:"), "{errors}");
}

#[test]
fn the_emergency_switch_starts_whatever_the_documents_are() {
    let folder = Folder::with("[hooks]\ndocuments = [\"missing.json\"]\n");
    assert_eq!(folder.faults(&[]).len(), 1);
    let config = folder.load(&[("HOOKGATE_HOOKS_MODE", "off")]).unwrap();
    assert_eq!((config.hooks_mode, config.hooks.is_empty()), (HooksMode::Off, true));
    assert!(config.hook_sources.load().unwrap().is_empty());
}

#[test]
fn redaction_rules_reach_the_hooks() {
    let config = accepted(
        "[[redact]]\ntool = \"vault\"\n[[redact]]\ntool = \"login\"\nfields = [\"/password\"]\n\
         [[redact]]\ntool = \"lookup\"\nallow = [\"name\"]\n",
    );
    let seen = |tool: &str| config.hooks.redaction().apply(tool, &r#"{"name":"n","password":"p"}"#.into());
    assert_eq!(seen("vault"), r#""[redacted]""#);
    assert_eq!(seen("login"), r#"{"name":"n","password":"[redacted]"}"#);
    assert_eq!(seen("lookup"), r#"{"name":"n"}"#);
    assert_eq!(seen("other"), r#"{"name":"n","password":"p"}"#);
}
