//! Routes to tools, as they are configured.

use hookgate::RouteKind;

use crate::config_support::Folder;

fn route(keys: &str) -> String {
    let named = "name = \"billing\"\nkind = \"http-tool\"\npath_prefix = \"/b\"\nupstream = \"http://127.0.0.1:9\"\n";
    format!("[[routes]]\n{named}{keys}")
}

fn faults(keys: &str) -> Vec<String> {
    Folder::with(&route(keys)).faults(&[])
}

#[test]
fn a_table_of_tools_reaches_its_route() {
    let folder = Folder::with(&route(
        r#"allow_uninspected = ["/health"]
        tools = [{ name = "show", method = "GET", path = "/c/{id}" },
                 { name = "refund", method = "POST", path = "/c/{id}/refund", schema = "refund.json" }]"#,
    ));
    folder.file("refund.json", r#"{"type": "object"}"#);
    let config = folder.load(&[]).unwrap();
    let route = &config.routes[0].route;
    assert_eq!((route.kind, &route.allow_uninspected), (RouteKind::HttpTool, &vec!["/health".to_owned()]));
    let tools = format!("{:?}", route.tools);
    assert!(tools.contains("refund") && tools.contains("show"), "{tools}");
}

#[test]
fn a_table_at_fault_says_where() {
    for (keys, says) in [
        ("", "needs its tools, such as"),
        ("tools = []", "needs its tools, such as"),
        (
            r#"tools = [{ name = "a", method = "get", path = "/" }]"#,
            "tools[0].method: found \"get\"; expected a method",
        ),
        (r#"tools = [{ name = "a", method = "GET" }]"#, "tools[0].path"),
        (
            r#"tools = [{ name = "a", method = "GET", path = "/x{y}" }]"#,
            "tools[0].path: found \"/x{y}\": a parameter is a whole",
        ),
        (r#"tools = [{ name = "a", method = "GET", path = "/", schemas = "x" }]"#, "schemas"),
        (
            r#"tools = [{ name = "a", method = "GET", path = "/{x}" }, { name = "b", method = "GET", path = "/{y}/" }]"#,
            "tools[1].path: GET /{y}/ is the path of the tool at",
        ),
        (
            r#"tools = [{ name = "a", method = "GET", path = "/", schema = "none.json" }]"#,
            "tools[0].schema: none.json cannot be read",
        ),
        ("tools = [{ name = \"a\", method = \"GET\", path = \"/\" }]\non_deny = \"end\"", "on_deny has no effect"),
    ] {
        let faults = faults(keys);
        assert!(faults.len() == 1 && faults[0].contains(says), "{keys}: {faults:?}");
    }
}

#[test]
fn a_schema_at_fault_says_where() {
    let keys = r#"tools = [{ name = "a", method = "GET", path = "/", schema = "s.json" }]"#;
    for (schema, says) in [
        ("{", "s.json is no usable JSON Schema: it is not JSON: EOF while parsing an object at line 1 column 1"),
        (r#"{"properties": {"body": {"type": 1}}}"#, "s.json is no usable JSON Schema: at /properties/body/type"),
        (r#"{"$ref": "https://schemas.example.com/x"}"#, "s.json is no usable JSON Schema: at"),
    ] {
        let folder = Folder::with(&route(keys));
        folder.file("s.json", schema);
        let faults = folder.faults(&[]);
        assert!(faults.len() == 1 && faults[0].contains(says), "{schema}: {faults:?}");
    }
}

#[test]
fn tools_have_no_effect_elsewhere() {
    let keys = r#"tools = [{ name = "a", method = "GET", path = "/" }]"#;
    let faults = Folder::with(&route(keys).replace("http-tool", "passthrough")).faults(&[]);
    assert!(faults.len() == 1 && faults[0].contains("tools has no effect"), "{faults:?}");
}

#[test]
fn denied_tools_outlive_a_reload_of_the_documents() {
    let folder = Folder::with("[tools]\ndeny = [\"wipe\", \"mcp__files__write\"]\n");
    let config = folder.load(&[]).unwrap();
    for hooks in [config.hooks, config.hook_sources.load().unwrap()] {
        assert!(hooks.denies("wipe") && hooks.denies("mcp__files__write") && !hooks.denies("write"));
    }
    let off = folder.load(&[("HOOKGATE_HOOKS_MODE", "off")]).unwrap();
    assert!(!off.hooks.denies("wipe"), "the emergency switch switches off all of it");
}

#[test]
fn streams_that_wait_may_be_silent_for_longer() {
    for (kind, keys, seconds) in [
        ("model", "", 300),
        ("passthrough", "", 300),
        ("mcp", "", 86_400),
        ("a2a", "", 86_400),
        ("mcp", "idle_timeout = \"5s\"", 5),
    ] {
        let route = format!(
            "[[routes]]\nname = \"r\"\nkind = {kind:?}\npath_prefix = \"/r\"\nupstream = \"http://127.0.0.1:9\"\n{keys}"
        );
        let config = Folder::with(&route).load(&[]).unwrap();
        assert_eq!(config.routes[0].idle_timeout.as_secs(), seconds, "{kind}");
    }
}

#[test]
fn a_public_origin_is_one() {
    let mcp = |keys: &str| {
        format!(
            "[[routes]]\nname = \"m\"\nkind = \"mcp\"\npath_prefix = \"/m\"\nupstream = \"http://127.0.0.1:9\"\n{keys}"
        )
    };
    let config = Folder::with(&mcp("public_origin = \"https://Agents.example.com:443/\"")).load(&[]).unwrap();
    assert_eq!(config.routes[0].route.public_origin.as_deref(), Some("https://agents.example.com"));
    for origin in ["agents.example.com", "https://a/x", "https://a?x", "https://u@a", "ftp://a", ""] {
        let faults = Folder::with(&mcp(&format!("public_origin = \"{origin}\""))).faults(&[]);
        assert!(faults.len() == 1 && faults[0].contains("origin without a path"), "{faults:?}");
    }
    let other = mcp("public_origin = \"https://a\"").replace("\"mcp\"", "\"passthrough\"");
    assert!(Folder::with(&other).faults(&[])[0].contains("public_origin has no effect"));
}
