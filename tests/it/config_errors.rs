//! What a configuration is refused for, and how that is said.

use crate::config_support::{Folder, accepted, faults};

const ROUTE: &str = "name = \"a\"\nkind = \"passthrough\"\npath_prefix = \"/a\"\nupstream = \"http://127.0.0.1:1\"\n";

/// One route with further keys.
fn route(more: &str) -> String {
    format!("[[routes]]\n{ROUTE}{more}\n")
}

#[test]
fn all_faults_are_reported_in_the_order_of_the_file_with_place_key_finding_and_expectation() {
    let text = "[server]\n\
                lissten = [\"127.0.0.1:1\"]\n\
                shutdown_grace = 30\n\
                [limits]\n\
                max_sessions = 0\n\
                keepalive_ms = \"5s\"\n\
                [[routes]]\n\
                name = \"a\"\n\
                kind = \"modle\"\n\
                upstream = [\"https://ok.example.com\", \"ftp://x\"]\n\
                [sandbox]\n";
    assert_eq!(
        faults(text),
        [
            "hookgate.toml:2:1: server.lissten: unknown key; did you mean \"listen\"?",
            "hookgate.toml:3:18: server.shutdown_grace: found 30; expected a duration from 0ms to 24h, such as \"500ms\", \"30s\" or \"24h\"",
            "hookgate.toml:5:16: limits.max_sessions: found 0; expected an integer from 1 to 10000000",
            "hookgate.toml:6:16: limits.keepalive_ms: found \"5s\"; expected an integer from 10 to 60000",
            "hookgate.toml:7:1: routes[0].path_prefix: missing; expected the start of a path, such as \"/anthropic\": plain letters, no empty, \".\" or \"..\" steps",
            "hookgate.toml:9:8: routes[0].kind: found \"modle\"; expected \"model\" or \"mcp\" or \"http-tool\" or \"a2a\" or \"passthrough\"",
            "hookgate.toml:10:39: routes[0].upstream[1]: found \"ftp://x\"; expected an http or https URL without user, query and fragment, such as \"https://api.anthropic.com\"; credentials go into header_env",
            "hookgate.toml:11:2: sandbox: unknown key; accepted here: server, auth, hooks, routes, tmp_hooks, delivery, tools, subagents, redact, connections, audit, limits, log",
        ]
    );
}

#[test]
fn syntax_errors_come_with_their_places() {
    let found = faults("[server\nlisten = [\n");
    assert!(found[0].starts_with("hookgate.toml:1:8: this is not TOML: "), "{found:?}");
    let found = faults("[log]\nlevel = \"info\"\nlevel = \"warn\"\n");
    assert!(found[0].starts_with("hookgate.toml:3:1: this is not TOML: "), "{found:?}");
}

#[test]
fn a_file_that_is_named_has_to_be_there() {
    let folder = Folder::with("");
    std::fs::remove_file(folder.path("hookgate.toml")).unwrap();
    let found = folder.faults(&[]);
    assert!(found[0].starts_with("hookgate.toml: the configuration file cannot be read: "), "{found:?}");
}

#[test]
fn keys_of_features_that_do_not_exist_are_unknown() {
    for text in [
        "[store]\nurl = \"memory:\"",
        "[tools]\ndefault = \"ask\"",
        "[hooks]\ntermination_gate = \"enforce\"",
        "[audit]\nretention_days = 1",
        "[connections.a]\nsigning_secret_env = \"T\"",
    ] {
        let found = faults(text);
        assert!(found.iter().any(|fault| fault.contains("unknown key")), "{text}: {found:?}");
    }
}

#[test]
fn strangers_are_kept_out_while_nobody_has_to_log_in() {
    for address in ["0.0.0.0:8787", "[::]:8787", "192.168.1.1:8787", "[::ffff:10.0.0.1]:1"] {
        let found = faults(&format!("[server]\nlisten = [\"127.0.0.1:1\", \"{address}\"]"));
        assert!(found.len() == 1 && found[0].contains("server.listen[1]"), "{found:?}");
        assert!(
            found[0].contains("can be reached from other machines") && found[0].contains("127.0.0.1:"),
            "{found:?}"
        );
    }
    let found = faults("[server]\ncontrol_listen = \"0.0.0.0:1\"");
    assert!(found[0].contains("server.control_listen"), "{found:?}");
    accepted("[server]\nlisten = [\"127.0.0.2:0\", \"[::1]:0\", \"[::ffff:127.0.0.1]:0\"]");
}

#[test]
fn addresses_are_listed_once() {
    assert!(faults("[server]\nlisten = []")[0].contains("at least one"));
    assert!(faults("[server]\nlisten = [\"127.0.0.1:1\", \"127.0.0.1:1\"]")[0].contains("listed twice"));
    assert!(faults("[server]\nlisten = \"127.0.0.1:1\"\ncontrol_listen = \"127.0.0.1:1\"")[0].contains("listed twice"));
    accepted("[server]\nlisten = [\"127.0.0.1:0\", \"127.0.0.1:0\"]");
}

#[test]
fn routes_are_unambiguous() {
    let twice = |change: &dyn Fn(&str) -> String| faults(&format!("{}[[routes]]\n{}", route(""), change(ROUTE)));

    let found = twice(&|route| route.replace("\"/a\"", "\"/b\""));
    assert!(found.len() == 1 && found[0].contains("routes[1].name: the name \"a\" is taken"), "{found:?}");
    let found = twice(&|route| route.replace("\"a\"", "\"b\"").replace("\"/a\"", "\"/a/\""));
    assert!(found.len() == 1 && found[0].contains("routes[1].path_prefix"), "{found:?}");

    let apart = |more: &str| format!("{}[[routes]]\n{}{more}", route(""), ROUTE.replace("\"a\"", "\"b\""));
    accepted(&apart("host = \"h\"\n"));
    assert!(faults("routes = []")[0].contains("at least one"));
}

#[test]
fn the_control_surface_keeps_its_paths_unless_it_has_its_own_address() {
    for prefix in ["/hookgate", "/hookgate/v1", "/metrics", "/healthz", "/readyz", "/api/sessions"] {
        let text = route("").replace("\"/a\"", &format!("\"{prefix}\""));
        let found = faults(&text);
        assert!(found.len() == 1 && found[0].contains("control_listen"), "{found:?}");
        accepted(&format!("[server]\ncontrol_listen = \"127.0.0.1:0\"\n{text}"));
    }
    accepted(&route("").replace("\"/a\"", "\"/hookgates\""));
}

#[test]
fn settings_without_effect_are_refused() {
    assert!(faults(&route("allow_uninspected = [\"/v1\"]"))[0].contains("passthrough"));
    assert!(faults(&route("on_deny = \"end\""))[0].contains("passthrough"));
    assert!(faults(&route("server = \"files\""))[0].contains("kind = \"mcp\""));
    assert!(faults(&route("public_origin = \"https://a.example\""))[0].contains("\"mcp\" or \"a2a\""));
    let folder = Folder::with(&route("ca_file = \"ca.pem\""));
    folder.file("ca.pem", "-----BEGIN CERTIFICATE-----");
    assert!(folder.faults(&[])[0].contains("need an https upstream"));
}

#[test]
fn references_have_to_lead_somewhere() {
    let found = faults(&route("header_env = { x-key = \"NOT_SET\" }"));
    assert!(
        found[0].ends_with("routes[0].header_env.x-key: the environment variable NOT_SET is not set, or empty"),
        "{found:?}"
    );
    let found = faults("[server]\ntls = { cert = \"c.pem\", key = \"k.pem\" }");
    assert!(found.len() == 2 && found[0].contains("c.pem cannot be read"), "{found:?}");
    let found = faults("[hooks]\ndocuments = [\"a.json\", \"hooks/*.json\"]");
    assert!(
        found.len() == 2 && found[1].contains("hooks.documents[1]") && found[1].contains("names no file"),
        "{found:?}"
    );

    let folder = Folder::with("[server]\ntls = { cert = \"a.pem\", key = \"a.pem\" }");
    folder.file("a.pem", "-----BEGIN CERTIFICATE-----");
    let found = folder.faults(&[]);
    assert!(found.len() == 1 && found[0].contains("server.tls.key: a.pem does not hold a private key"), "{found:?}");
}

#[test]
fn headers_that_belong_to_the_transport_are_refused() {
    for header in ["host", "Content-Length", "x-hookgate-session", "bad name"] {
        let found = Folder::with(&route(&format!("header_env = {{ \"{header}\" = \"V\" }}"))).faults(&[("V", "v")]);
        assert!(found.len() == 1 && found[0].contains("header"), "{found:?}");
    }
    let found = Folder::with(&route("header_env = { a = \"V\" }")).faults(&[("V", "v\nw")]);
    assert!(found[0].contains("cannot hold") && !found[0].contains('w'), "{found:?}");
}

#[test]
fn literal_secrets_are_refused_and_not_repeated() {
    for text in [
        "[connections.a]\nbearer = \"sk-secret\"".to_owned(),
        "[connections.a]\nbearer_env = \"sk-secret\"".to_owned(),
        "[connections.a]\nheader = { name = \"x\", value = \"sk-secret\", env = \"X\" }".to_owned(),
        route("header_env = { authorization = \"Bearer sk-secret\" }"),
        route("").replace("http://", "http://user:sk-secret@"),
    ] {
        let found = faults(&text);
        assert!(!found.concat().contains("sk-secret"), "{found:?}");
    }
}

#[test]
fn a_connection_is_reached_in_one_way() {
    let environment = [("A", "a"), ("B", "b:c")];
    let found = Folder::with("[connections.a]\nbearer_env = \"A\"\nbasic_env = \"B\"").faults(&environment);
    assert!(found[0].contains("connections.a: found bearer_env and basic_env; expected one"), "{found:?}");
    assert!(faults("[connections.a]")[0].contains("found nothing"));
    let found = Folder::with("[connections.a]\nbasic_env = \"A\"").faults(&environment);
    assert!(found[0].contains("does not hold user:password"), "{found:?}");
    let found = Folder::with("[connections.a]\nheader = { name = \"host\", env = \"A\" }").faults(&environment);
    assert!(found[0].contains("connections.a.header: the header's name is not valid"), "{found:?}");
}

#[test]
fn a_connection_can_take_its_material_from_files() {
    let folder = Folder::with("[connections.a]\nbearer_file = \"token\"\nca_file = \"ca.pem\"");
    folder.file("token", " \n");
    folder.file("ca.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    assert!(folder.faults(&[])[0].contains("connections.a.bearer_file: the credential is empty"));
    folder.file("token", "t1\n");
    assert!(folder.faults(&[])[0].contains("connections.a.ca_file: ca.pem: the file holds no valid PEM certificate"));
    let authority = rcgen::generate_simple_self_signed(["hooks.example.com".to_owned()]).unwrap();
    folder.file("ca.pem", &authority.cert.pem());
    assert!(folder.load(&[]).unwrap().connections.contains_key("a"));
}

#[test]
fn redaction_rules_say_one_thing() {
    assert!(
        faults("[[redact]]\ntool = \"a\"\nfields = [\"/x\"]\nallow = [\"y\"]")[0].contains("both fields and allow")
    );
    assert!(faults("[[redact]]\ntool = \"a\"\nfields = []")[0].contains("nothing to hide"));
    assert!(faults("[[redact]]\ntool = \"a\"\nfields = [\"x\"]")[0].contains("JSON Pointer"));
}

#[test]
fn faults_in_hook_documents_stand_beside_those_of_the_file() {
    let folder = Folder::with("[server]\nlisten = \"0.0.0.0:1\"\n[hooks]\ndocuments = [\"a.json\", \"b.json\"]");
    folder.file("a.json", r#"{"version": 2, "hooks": {}}"#);
    folder.file("b.json", "[");
    let found = folder.faults(&[]);
    assert!(found[0].starts_with("hookgate.toml:2:10: server.listen: "), "{found:?}");
    assert!(found.iter().any(|fault| fault.starts_with("a.json:1:")), "{found:?}");
    assert!(found.iter().any(|fault| fault.starts_with("b.json:1:")), "{found:?}");
}
