use crate::hooks::{Dialect, Event, FailureMode, HookErrors, HookSet, HookSetBuilder, Matcher, Target};
use std::time::Duration;

const URL: &str = r#""url":"https://hooks.example.com/p""#;

fn builder() -> HookSetBuilder {
    HookSet::builder().allowed_hosts(["hooks.example.com", "127.0.0.1", "::1", "localhost"])
}

fn errors(builder: HookSetBuilder, document: &str) -> HookErrors {
    builder.document("h.json", document.as_bytes()).build().expect_err(document)
}

/// The (path, position) of all mistakes.
fn places(document: &str) -> Vec<(String, (usize, usize))> {
    let errors = errors(builder(), document);
    errors.errors().iter().map(|error| (error.path.clone(), error.position.unwrap())).collect()
}

fn one(event: &str, members: &str) -> String {
    format!(r#"{{"version":1,"hooks":{{"{event}":[{{{members}}}]}}}}"#)
}

/// The path of the one mistake of a handler with these members, and its sentence.
#[track_caller]
fn mistake(event: &str, members: &str) -> (String, String) {
    let errors = errors(builder(), &one(event, members));
    assert_eq!(errors.errors().len(), 1, "{errors}");
    (errors.errors()[0].path.clone(), errors.to_string())
}

#[test]
fn a_whole_document() {
    let document = format!(
        r#"{{"version": 1, "hooks": {{
            "PreToolUse": [
                {{"id": "a", "type": "http", {URL}, "matcher": ["Bash", "mcp__files__read"], "timeoutMs": 30000,
                  "failureMode": "open", "dialect": "claude-code", "connection": "policy"}},
                {{"id": "b", "type": "http", "url": "https://hooks.example.com:8443/q?x=1"}}],
            "PostToolUse": [{{"id": "c", "type": "http", {URL}, "failureMode": "open"}}],
            "Stop": []}}}}"#
    );
    let set = builder().connections(["policy"]).document("h.json", document.as_bytes()).build().unwrap();
    let [a, b] = set.handlers(Event::PreToolUse) else { panic!("{set:?}") };
    assert_eq!((&*a.id, &*b.id, &*a.source), ("a", "b", "h.json"));
    assert_eq!(a.matcher, Matcher::of(["Bash", "mcp__files__read"]));
    assert_eq!((a.timeout, b.timeout), (Duration::from_secs(30), Duration::from_secs(2)));
    assert_eq!((a.failure_mode, b.failure_mode), (FailureMode::Open, FailureMode::Closed));
    assert_eq!((a.dialect, b.dialect), (Dialect::ClaudeCode, Dialect::Native));
    assert_eq!((a.connection.as_deref(), &b.connection), (Some("policy"), &None));
    let Target::Http { url } = &b.target;
    assert_eq!(url.as_str(), "https://hooks.example.com:8443/q?x=1");
    assert_eq!(set.handlers(Event::PostToolUse)[0].failure_mode, FailureMode::Open);
    assert!(!set.has(Event::Stop) && !set.is_empty() && HookSet::empty().is_empty());
    assert_eq!(set.iter().count(), 3);
    let matching = |name| set.matching(Event::PreToolUse, name).map(|handler| &*handler.id).collect::<Vec<_>>();
    assert_eq!(matching(Some("Bash")), ["a", "b"]);
    assert_eq!(matching(Some("Edit")), ["b"]);
    assert_eq!(matching(None), ["a", "b"]);
}

#[test]
fn every_mistake_is_reported_with_its_place() {
    let document = r#"{
  "version": 2,
  "version": 1,
  "extra": true,
  "hooks": {
    "PreToolUse": [
      {"id": "", "type": "command", "url": "ftp://other.example/#x",
       "matcher": [], "timeoutMs": 0, "failureMode": "ajar", "dialect": "x", "connection": "none"},
      7
    ],
    "preToolUse": [],
    "Stop": {}
  }
}"#;
    let expected = [
        ("$.version", (2, 14)),
        ("$.version", (3, 3)),
        ("$.extra", (4, 3)),
        ("$.hooks.PreToolUse[0].id", (7, 14)),
        ("$.hooks.PreToolUse[0].type", (7, 26)),
        ("$.hooks.PreToolUse[0].url", (7, 44)),
        ("$.hooks.PreToolUse[0].url", (7, 44)),
        ("$.hooks.PreToolUse[0].url", (7, 44)),
        ("$.hooks.PreToolUse[0].matcher", (8, 19)),
        ("$.hooks.PreToolUse[0].timeoutMs", (8, 36)),
        ("$.hooks.PreToolUse[0].failureMode", (8, 54)),
        ("$.hooks.PreToolUse[0].dialect", (8, 73)),
        ("$.hooks.PreToolUse[0].connection", (8, 92)),
        ("$.hooks.PreToolUse[1]", (9, 7)),
        ("$.hooks.preToolUse", (11, 5)),
        ("$.hooks.Stop", (12, 13)),
    ];
    let expected = expected.map(|(path, position)| (path.to_owned(), position));
    assert_eq!(places(document), expected);
    let text = errors(builder(), document).to_string();
    assert_eq!(text.lines().count(), expected.len());
    assert!(
        text.contains("h.json:8:36: $.hooks.PreToolUse[0].timeoutMs: found 0; accepted is a whole number"),
        "{text}"
    );
}

#[test]
fn what_is_no_document() {
    for (document, path) in [
        ("", "$"),
        ("[]", "$"),
        ("{", "$"),
        (r#"{"version":1,"hooks":{}} x"#, "$"),
        ("\u{feff}{}", "$"),
        (r#"{"version":1}"#, "$"),
        (r#"{"hooks":{}}"#, "$"),
        (r#"{"version":1.0,"hooks":{}}"#, "$.version"),
        (r#"{"version":"1","hooks":{}}"#, "$.version"),
        (r#"{"version":1,"hooks":[]}"#, "$.hooks"),
        (r#"{"version":1,"hooks":{"PreToolUse":null}}"#, "$.hooks.PreToolUse"),
        (r#"{"version":1,"hooks":{},"weird key":1}"#, r#"$["weird key"]"#),
    ] {
        let found: Vec<_> = places(document).into_iter().map(|(path, _)| path).collect();
        assert_eq!(found, [path], "{document}");
    }
    builder().document("h.json", br#"{"version":1,"hooks":{}}"#).build().unwrap();
}

#[test]
fn duplicate_keys_are_found_anywhere() {
    let document = format!(
        r#"{{"version":1,"hooks":{{"Stop":[{{"id":"a","\u0069d":"b","type":"http",{URL}}}],"Stop":[],"x":{{"y":[{{"z":1,"z":2}}]}}}}}}"#
    );
    let paths: Vec<_> = places(&document).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, ["$.hooks.Stop[0].id", "$.hooks.Stop", "$.hooks.x", "$.hooks.x.y[0].z"]);
}

#[test]
fn ids_are_unique_over_all_documents() {
    let one = one("Stop", &format!(r#""id":"a","type":"http",{URL}"#));
    let two = one.replace("Stop", "SessionEnd");
    let built = builder().document("one.json", one.as_bytes()).document("two.json", two.as_bytes()).build();
    let errors = built.unwrap_err();
    assert_eq!(errors.errors().len(), 1, "{errors}");
    let text = errors.to_string();
    assert!(text.starts_with("two.json:1:") && text.contains("declared at one.json:1:"), "{text}");
}

#[test]
fn ids_are_bounded() {
    let with = |id: &str| one("Stop", &format!(r#""id":"{id}","type":"http",{URL}"#));
    let fits = "é".repeat(128);
    builder().document("h.json", with(&fits).as_bytes()).build().unwrap();
    for id in [format!("{fits}x"), "a\\nb".into()] {
        assert_eq!(errors(builder(), &with(&id)).errors()[0].path, "$.hooks.Stop[0].id");
    }
    let number = one("Stop", &format!(r#""id":7,"type":"http",{URL}"#));
    assert_eq!(errors(builder(), &number).errors()[0].found, "found 7");
}

#[test]
fn required_members() {
    let errors = errors(builder(), &one("Stop", ""));
    let found: Vec<_> = errors.errors().iter().map(|error| error.found.as_str()).collect();
    assert_eq!(found, [r#"found no "id""#, r#"found no "type""#, r#"found no "url""#]);
}

#[test]
fn timeouts_have_bounds() {
    for (text, good) in [("1", true), ("30000", true), ("0", false), ("30001", false), ("-1", false)] {
        let document = one("Stop", &format!(r#""id":"a","type":"http",{URL},"timeoutMs":{text}"#));
        assert_eq!(builder().document("h.json", document.as_bytes()).build().is_ok(), good, "{text}");
    }
    for text in ["1.5", "2e3", "\"2000\"", "null", "99999999999999999999"] {
        let (path, _) = mistake("Stop", &format!(r#""id":"a","type":"http",{URL},"timeoutMs":{text}"#));
        assert_eq!(path, "$.hooks.Stop[0].timeoutMs", "{text}");
    }
}

#[test]
fn a_fixed_failure_mode_cannot_be_closed() {
    for event in Event::ALL {
        for mode in ["open", "closed"] {
            let members = format!(r#""id":"a","type":"http",{URL},"failureMode":"{mode}""#);
            let document = one(event.name(), &members);
            let built = builder().document("h.json", document.as_bytes()).build();
            assert_eq!(built.is_err(), mode == "closed" && event.failure_mode_is_fixed(), "{event:?} {mode}");
        }
    }
    let (path, text) = mistake("PostToolUse", &format!(r#""id":"a","type":"http",{URL},"failureMode":"closed""#));
    assert_eq!(path, "$.hooks.PostToolUse[0].failureMode");
    assert!(text.contains("only observes"), "{text}");
}

#[test]
fn matchers_are_exact_names_where_there_are_names() {
    let with = |event: Event, matcher: &str| {
        let document = one(event.name(), &format!(r#""id":"a","type":"http",{URL},"matcher":{matcher}"#));
        builder().document("h.json", document.as_bytes()).build()
    };
    for event in Event::ALL {
        let named = event.names() != crate::hooks::Names::None;
        assert_eq!(with(event, r#"["researcher"]"#).is_ok(), named, "{event:?}");
    }
    for matcher in ["[]", "\"Bash\"", "[7]", r#"[""]"#, r#"["*"]"#, r#"["Write|Edit"]"#, r#"["mcp__x__.*"]"#, "null"] {
        assert!(with(Event::PreToolUse, matcher).is_err(), "{matcher}");
    }
}

#[test]
fn addresses() {
    let with = |insecure: bool, url: &str| {
        let document = one("Stop", &format!(r#""id":"a","type":"http","url":"{url}""#));
        builder().allow_insecure_loopback(insecure).document("h.json", document.as_bytes()).build()
    };
    for url in [
        "https://hooks.example.com",
        "https://HOOKS.example.com:8443/a?b=c",
        "https://127.0.0.1/",
        "https://localhost:1/",
    ] {
        with(false, url).unwrap();
    }
    let loopback = ["http://127.0.0.1:9000/h", "http://[::1]/", "http://localhost:9000/", "http://0x7f.1/"];
    for url in loopback {
        with(true, url).unwrap();
        assert!(with(false, url).unwrap_err().to_string().contains("allow_insecure_loopback"), "{url}");
    }
    for url in [
        "http://hooks.example.com/",
        "http://127.0.0.2:9000/",
        "http://localhost.example/",
        "https://other.example/",
        "https://hooks.example.com.evil.example/",
        "https://user@hooks.example.com/",
        "https://:s3cret@hooks.example.com/",
        "https://hooks.example.com/#part",
        "https://hooks.example.com/?api_key=s3cret",
        "https://hooks.example.com/?a=1&Access-Token=s3cret",
        "hooks.example.com/p",
        "/p",
        "",
        "https://",
        "file:///etc/passwd",
        "data:,x",
        "https:\\\\\\\\hooks.example.com/",
        "https://hooks.example.com/a b",
        "https://hooks.exa\\tmple.com/",
        " https://hooks.example.com/",
    ] {
        let errors = with(true, url).expect_err(url);
        assert!(!errors.to_string().contains("s3cret"), "{errors}");
        assert!(errors.errors().iter().all(|error| error.path == "$.hooks.Stop[0].url"), "{errors}");
    }
}

#[test]
fn a_secret_in_a_document_points_to_connections() {
    for key in ["authorization", "Authorization", "headers", "token", "apiKey", "x-api-key", "secret", "password"] {
        let (_, text) = mistake("Stop", &format!(r#""id":"a","type":"http",{URL},"{key}":"s3cret""#));
        assert!(text.contains("[connections.NAME]") && !text.contains("s3cret"), "{text}");
    }
    let members = format!(r#""id":"a","type":"http",{URL},"connection":"policy""#);
    let (path, text) = mistake("Stop", &members);
    assert!(path.ends_with(".connection") && text.contains("there is none"), "{text}");
    let listed = errors(builder().connections(["other"]), &one("Stop", &members)).to_string();
    assert!(listed.contains("other"), "{listed}");
}

#[test]
fn mistakes_in_the_hosts_are_reported_too() {
    let document = one("Stop", &format!(r#""id":"a","type":"http",{URL}"#));
    let errors = errors(HookSet::builder().allowed_hosts(["*.example.com"]), &document);
    assert_eq!(errors.errors().len(), 2, "{errors}");
    assert!(errors.to_string().starts_with("[hooks] allowed_hosts: \"*.example.com\": "), "{errors}");
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(
        bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
        json in "[{}\\[\\]\":,\\\\a-z0-9 ]{0,60}",
        text in "\\PC{0,40}",
    ) {
        let _ = builder().document("h", &bytes).build();
        let _ = builder().document("h", json.as_bytes()).build();
        let nested = one("PreToolUse", &format!(r#""id":{json},"url":{json},"matcher":{json}"#));
        let _ = builder().document("h", nested.as_bytes()).build();
        let quoted = crate::wire::json::quote(&text);
        let texts = one("PreToolUse", &format!(r#""id":{quoted},"type":"http","url":{quoted},"matcher":[{quoted}],{quoted}:1"#));
        assert!(builder().document("h", texts.as_bytes()).build().is_err());
        let _ = HookSet::builder().allowed_hosts([text.as_str()]).build();
    }
}
