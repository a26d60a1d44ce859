//! MCP servers behind the proxy's address: OAuth metadata and challenges speak of it, and web pages do not get through it.

use hookgate::host::pingora::Proxy;
use serde_json::{Value, json};

use crate::pingora_kit::{Message, Upstream, Wire, json as json_answer, pass, proxy};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// With it the routes are inspected.
const HOOKS: &str = "[hooks]\ndocuments = [\"hooks.json\"]\nallowed_hosts = [\"policy.invalid\"]\n";

/// An MCP server at `/mcp` that wants a login; its metadata is where it stands in `metadata`.
async fn server(metadata: &'static str) -> Upstream {
    Upstream::answering(move |request: Message| {
        let path = request.head.split(' ').nth(1).unwrap_or_default().to_owned();
        let host = request.header("host").unwrap_or_default();
        if path == metadata || path == format!("{metadata}/sub") {
            let resource = format!("http://{host}/mcp");
            return json_answer(&format!(
                r#"{{"resource": "{resource}", "authorization_servers": ["https://as.example"], "seen": "{path}"}}"#
            ));
        }
        if path.starts_with(WELL_KNOWN) {
            return "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
        }
        format!(
            "HTTP/1.1 401 Unauthorized\r\nx-path: {path}\r\nwww-authenticate: Basic\r\n\
             www-authenticate: Bearer scope=\"a\", resource_metadata=\"http://{host}{WELL_KNOWN}/mcp\"\r\ncontent-length: 0\r\n\r\n"
        )
    })
    .await
}

fn mcp(name: &str, upstream: &Upstream, keys: &str) -> String {
    format!(
        "[[routes]]\nname = \"{name}\"\nkind = \"mcp\"\npath_prefix = \"/mcp/{name}\"\nupstream = \"http://{}/mcp\"\n{keys}\n",
        upstream.address
    )
}

const PUBLIC: &str = "public_origin = \"https://agents.example.com\"";

async fn ask(proxy: &Proxy, method: &str, path: &str, headers: &str) -> Message {
    let mut client = Wire::to(proxy).await;
    let body = if method == "POST" { "{}" } else { "" };
    let host = if headers.to_ascii_lowercase().contains("host:") { "" } else { "host: localhost\r\n" };
    client
        .send(format!("{method} {path} HTTP/1.1\r\n{host}{headers}content-length: {}\r\n\r\n{body}", body.len()))
        .await;
    client.answer().await
}

async fn metadata(proxy: &Proxy, path: &str) -> Value {
    let answer = ask(proxy, "GET", path, "").await;
    assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
    serde_json::from_str(answer.text()).unwrap()
}

#[tokio::test]
async fn metadata_names_the_public_address() {
    let upstream = server("/.well-known/oauth-protected-resource/mcp").await;
    let proxy = proxy(&format!("{}{}", mcp("files", &upstream, PUBLIC), mcp("other", &upstream, "")));
    for (path, resource, seen) in [
        ("/mcp/files", "/mcp/files", "/mcp"),
        ("/mcp/files/", "/mcp/files", "/mcp"),
        ("/mcp/files/sub", "/mcp/files/sub", "/mcp/sub"),
        // A client that finds none there looks at the root; there is one such route.
        ("", "/mcp/files", "/mcp"),
    ] {
        let found = metadata(&proxy, &format!("{WELL_KNOWN}{path}")).await;
        assert_eq!(
            found,
            json!({"resource": format!("https://agents.example.com{resource}"),
                "authorization_servers": ["https://as.example"], "seen": format!("{WELL_KNOWN}{seen}")}),
            "{path}"
        );
    }
    for path in ["/mcp/other", "/mcp", "/mcp/filesystem"] {
        assert_eq!(ask(&proxy, "GET", &format!("{WELL_KNOWN}{path}"), "").await.status(), 404, "{path}");
    }
    assert_eq!(ask(&proxy, "POST", WELL_KNOWN, "").await.status(), 404);
    assert_eq!(ask(&proxy, "GET", &format!("{WELL_KNOWN}/mcp/%66iles"), "").await.status(), 404);
}

#[tokio::test]
async fn a_server_may_have_metadata_at_its_root_only() {
    let upstream = server(WELL_KNOWN).await;
    let two = format!("{}{}", mcp("files", &upstream, PUBLIC), mcp("mail", &upstream, PUBLIC));
    let both = proxy(&two);
    let found = metadata(&both, &format!("{WELL_KNOWN}/mcp/mail")).await;
    assert_eq!(
        (&found["resource"], &found["seen"]),
        (&json!("https://agents.example.com/mcp/mail"), &json!(WELL_KNOWN))
    );
    assert_eq!(ask(&both, "GET", WELL_KNOWN, "").await.status(), 404, "whose it is cannot be told");
    // A route that has the root keeps it.
    let at_root = proxy(&format!("{}{}", mcp("files", &upstream, PUBLIC), pass(upstream.address)));
    assert_eq!(metadata(&at_root, WELL_KNOWN).await["resource"], format!("http://{}/mcp", upstream.address));
}

#[tokio::test]
async fn metadata_that_cannot_be_rewritten_is_not_told() {
    let upstream = Upstream::answering(|_| json_answer("{\"authorization_servers\": []}")).await;
    let proxy = proxy(&mcp("files", &upstream, PUBLIC));
    let answer = ask(&proxy, "GET", &format!("{WELL_KNOWN}/mcp/files"), "").await;
    assert_eq!(answer.status(), 502);
    assert!(answer.text().contains("resource"), "{}", answer.text());
}

#[tokio::test]
async fn challenges_lead_to_the_public_metadata() {
    let upstream = server("").await;
    for hooks in ["", HOOKS] {
        let proxy = proxy(&format!("{hooks}{}{}", mcp("files", &upstream, PUBLIC), mcp("other", &upstream, "")));
        for (path, seen) in [("/mcp/files", "/mcp"), ("/mcp/files/sub?x", "/mcp/sub?x")] {
            let answer = ask(&proxy, "GET", path, "accept: text/event-stream\r\n").await;
            assert_eq!((answer.status(), answer.header("x-path")), (401, Some(seen)), "{hooks}");
            let public = format!("https://agents.example.com{WELL_KNOWN}{}", path.trim_end_matches("?x"));
            let challenge = format!("Bearer scope=\"a\", resource_metadata=\"{public}\"");
            assert!(answer.head.contains(&challenge) && answer.head.contains(": Basic\r\n"), "{}", answer.head);
        }
        let answer = ask(&proxy, "GET", "/mcp/other", "").await;
        assert!(answer.head.contains(&format!("http://{}{WELL_KNOWN}/mcp", upstream.address)), "{}", answer.head);
    }
}

#[tokio::test]
async fn web_pages_do_not_reach_mcp_servers() {
    let upstream = server("").await;
    let named = mcp("named", &upstream, "host = \"tools.example.com\"");
    let routes =
        format!("{}{named}{}", mcp("files", &upstream, PUBLIC), pass(upstream.address).replace("\"/\"", "\"/p\""));
    for hooks in ["", HOOKS] {
        // The kit's text ends within [server].
        let proxy = proxy(&format!("trusted_hosts = [\"gate.internal\", \"gate.other:8443\"]\n{hooks}{routes}"));
        for (headers, status) in [
            ("host: evil.example\r\n", 403),
            ("host: 127.0.0.1.evil.example:8787\r\n", 403),
            ("host: gate.other\r\n", 403),
            ("origin: https://evil.example\r\n", 403),
            ("origin: null\r\n", 403),
            ("host: localhost:8787\r\norigin: http://localhost:6274\r\n", 401),
            ("host: 10.0.0.7\r\n", 401),
            ("host: gate.internal:9\r\norigin: https://gate.internal\r\n", 401),
            ("host: gate.other:8443\r\n", 401),
            ("host: agents.example.com\r\n", 401),
        ] {
            let answer = ask(&proxy, "GET", "/mcp/files", headers).await;
            assert_eq!(answer.status(), status, "{headers} {}", answer.text());
            assert!(status != 403 || answer.text().contains("[server] trusted_hosts = ["), "{}", answer.text());
        }
        assert_eq!(ask(&proxy, "GET", "/mcp/named", "host: tools.example.com\r\n").await.status(), 401);
        assert_eq!(
            ask(&proxy, "GET", &format!("{WELL_KNOWN}/mcp/files"), "host: evil.example\r\n").await.status(),
            403
        );
        // Other routes have no such rule.
        assert_eq!(ask(&proxy, "GET", "/p/x", "host: evil.example\r\n").await.status(), 401);
    }
}
