//! `config show` and `config schema`.

use hookgate::config::schema;

use crate::config_support::Folder;

const TEXT: &str = "[server]\nlisten = [\n  \"127.0.0.1:9000\",\n]\n\n[limits]\nmax_sessions = 9\n\n\
                    [[routes]]\nname = \"a b\"\nkind = \"model\"\npath_prefix = \"/a\"\nupstream = \"https://a.example.com\"\n\
                    header_env = { x-api-key = \"KEY\" }\n\n[connections.\"the policy\"]\nbearer_env = \"KEY\"\n";

#[test]
fn values_are_shown_with_their_origin_and_without_secrets() {
    let folder = Folder::with(TEXT);
    let environment =
        [("KEY", "sk-secret"), ("HOOKGATE__LOG__LEVEL", "debug"), ("HOOKGATE_HOOKS", r#"{"version":1,"hooks":{}}"#)];
    let shown = folder.load(&environment).unwrap().show();
    let file = folder.path("hookgate.toml").display().to_string();
    for expected in [
        "# HOOKGATE_HOOKS holds one more hook document.\n".to_owned(),
        "redact = []  # default\n".to_owned(),
        format!("[server]\nlisten = [\"127.0.0.1:9000\"]  # {file}:2, {file}:3\ncontrol_listen = []  # default\n"),
        "shutdown_grace = \"30s\"  # default\n".to_owned(),
        format!("max_sessions = 9  # {file}:7\n"),
        format!("[[routes]]\nname = \"a b\"  # {file}:10\n"),
        format!("header_env = {{ x-api-key = \"KEY\" }}  # {file}:14\n"),
        format!("[connections.\"the policy\"]\nbearer_env = \"KEY\"  # {file}:17\n"),
        "level = \"debug\"  # HOOKGATE__LOG__LEVEL\n".to_owned(),
    ] {
        assert!(shown.contains(&expected), "{expected}\nis not in\n{shown}");
    }
    assert!(!shown.contains("sk-secret"), "{shown}");
}

#[test]
fn what_is_shown_is_a_file_that_means_the_same() {
    for text in ["", TEXT] {
        let first = Folder::with(text).load(&[("KEY", "k")]).unwrap().show();
        let second = Folder::with(&first).load(&[("KEY", "k")]).unwrap().show();
        let values =
            |shown: &str| shown.lines().map(|line| line.split("  # ").next().unwrap().to_owned()).collect::<Vec<_>>();
        assert_eq!(values(&first), values(&second));
    }
}

#[test]
fn the_schema_accepts_what_is_accepted_and_refuses_what_is_not() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let valid = |text: &str| {
        let table: toml::Table = text.parse().unwrap();
        validator.is_valid(&serde_json::to_value(table).unwrap())
    };
    for text in ["", TEXT, "[server]\nlisten = \"127.0.0.1:1\"", "[log]\nformat = \"json\""] {
        assert!(valid(text), "{text}");
    }
    for text in [
        "[server]\nlissten = 1",
        "[limits]\nmax_sessions = 0",
        "[log]\nformat = \"xml\"",
        "[[routes]]\nname = \"a\"",
        "[server]\nshutdown_grace = \"30\"",
        "[connections.a]\nbearer = \"x\"",
    ] {
        assert!(!valid(text), "{text}");
    }
}

/// An editor shows descriptions and a reader of the schema has nothing else.
#[test]
fn every_key_is_described() {
    fn check(schema: &serde_json::Value, path: &str) -> usize {
        let mut count = 0;
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            assert!(property["description"].as_str().is_some_and(|text| text.len() > 10), "{path}");
            count += 1 + check(property, &path);
        }
        for below in ["items", "additionalProperties"] {
            if schema[below].is_object() {
                count += check(&schema[below], path);
            }
        }
        count
    }
    assert!(check(&schema(), "") > 50);
}
