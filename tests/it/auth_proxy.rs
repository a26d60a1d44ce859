//! The gate in front of the proxy's control surface.

use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookgate::auth::{KeysFile, Password, UsersFile};
use hookgate::host::pingora::Proxy;
use http_body_util::Full;
use tempfile::TempDir;

use crate::auth_paths::{PASSING, TRICKS, UNKNOWN};
use crate::pingora_kit::{Message, Upstream, Wire, json, pass, proxy_with, within};
use crate::pingora_tls_kit::{certificates, client};

const TOKEN: &str = "correct-token-0123456789";
const AUDIT: &str = "/hookgate/v1/audit";

/// A proxy whose control surface takes the token and the user ann.
struct Site {
    folder: TempDir,
    proxy: Proxy,
    upstream: Upstream,
    seen: Arc<Mutex<Vec<String>>>,
}

async fn site(mode: &str, more: &str) -> Site {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path()).add("ann", &Password::new("correct horse").unwrap()).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let upstream = Upstream::answering(move |request| {
        kept.lock().unwrap().push(request.head.clone());
        json("1")
    })
    .await;
    let text = format!("[auth]\nmode = \"{mode}\"\n{more}\n{}", pass(upstream.address));
    let proxy = proxy_with(folder.path(), &text, &[("HOOKGATE_TOKEN", TOKEN)]);
    Site { folder, proxy, upstream, seen }
}

fn users(folder: &Path) -> UsersFile {
    UsersFile::new(folder.join("users.toml"))
}

impl Site {
    async fn send(&self, request: &str) -> Message {
        let mut client = Wire::to(&self.proxy).await;
        client.send(request).await;
        client.answer().await
    }

    async fn get(&self, path: &str, headers: &str) -> Message {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: gate.example\r\n{headers}\r\n")).await
    }

    async fn log_in(&self, form: &str, headers: &str) -> Message {
        let length = form.len();
        self.send(&format!(
            "POST /hookgate/login HTTP/1.1\r\nhost: gate.example\r\n{headers}content-length: {length}\r\n\
             content-type: application/x-www-form-urlencoded\r\n\r\n{form}"
        ))
        .await
    }

    /// The header with the cookie of a login.
    async fn cookie(&self) -> String {
        cookie(&self.log_in("username=ann&password=correct+horse", "").await)
    }
}

fn cookie(answer: &Message) -> String {
    let cookie = answer.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {answer:?}"));
    format!("cookie: {}\r\n", cookie.split(';').next().unwrap())
}

#[tokio::test]
async fn strangers_see_that_it_runs_and_nothing_else() {
    let site = site("token+password", "").await;
    for path in ["/healthz", "/readyz", "/hookgate/login"] {
        assert_eq!(site.get(path, "").await.status(), 200, "{path}");
    }
    for path in [
        AUDIT,
        "/metrics",
        "/hookgate",
        "/hookgate/",
        "/hookgate/nothing",
        "/api/sessions/s/hooks",
        "/hookgate/v1/sessions/s/hooks",
    ] {
        let answer = site.get(path, "").await;
        assert_eq!(answer.status(), 401, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(
            answer.head.contains("Bearer realm=\"hookgate\"") && answer.head.contains("Cookie realm=\"hookgate\""),
            "{}",
            answer.head
        );
        assert!(answer.text().contains("authorization: Bearer TOKEN"), "{}", answer.text());
    }
    assert_eq!(self::site("token", "metrics_open = true").await.get("/metrics", "").await.status(), 200);
}

#[tokio::test]
async fn browsers_are_sent_to_the_login_page_and_back() {
    let site = site("password", "").await;
    let html = "accept: text/html,*/*;q=0.8\r\n";
    let answer = site.get("/hookgate/v1/audit?outcome=deny&limit=5", html).await;
    let login = "/hookgate/login?next=%2Fhookgate%2Fv1%2Faudit%3Foutcome%3Ddeny%26limit%3D5";
    assert_eq!((answer.status(), answer.header("location")), (303, Some(login)));
    let page = site.get(login, html).await;
    assert_eq!(page.status(), 200);
    assert!(
        page.text().contains("name=\"next\" value=\"/hookgate/v1/audit?outcome=deny&amp;limit=5\""),
        "{}",
        page.text()
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'nonce-") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(page.text().contains(&format!("<style nonce=\"{nonce}\">")), "{}", page.text());
    assert!(!page.text().contains("<script") && !page.text().contains("http://") && !page.text().contains("https://"));

    let form = "username=ann&password=correct+horse&next=%2Fhookgate%2Fv1%2Faudit%3Flimit%3D5";
    let answer = site.log_in(form, html).await;
    assert_eq!((answer.status(), answer.header("location")), (303, Some("/hookgate/v1/audit?limit=5")));
    let flags = answer.header("set-cookie").unwrap().split_once("; ").unwrap().1;
    assert_eq!(flags, "Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure");
    let cookie = cookie(&answer);
    assert_eq!(site.get(AUDIT, &cookie).await.status(), 200);
    assert!(
        site.get("/hookgate/login", &format!("{html}{cookie}"))
            .await
            .text()
            .contains("logged in as <strong>ann</strong>")
    );
    let answer = site.get(login, &format!("{html}{cookie}")).await;
    assert_eq!((answer.status(), answer.header("location")), (303, Some("/hookgate/v1/audit?outcome=deny&limit=5")));
    // A POST is not repeated by a redirect.
    let post = site.send(&format!("POST {AUDIT} HTTP/1.1\r\nhost: a\r\n{html}content-length: 0\r\n\r\n")).await;
    assert_eq!(post.status(), 401);
}

#[tokio::test]
async fn the_next_page_is_one_of_this_host() {
    let site = site("token", "").await;
    for next in
        ["https://evil.example", "//evil.example", "/\\evil.example", "/%0d%0aset-cookie:%20a=b", "javascript:alert(1)"]
    {
        let answer = site.log_in(&format!("token={TOKEN}&next={next}"), "").await;
        assert_eq!((answer.status(), answer.header("location")), (303, Some("/hookgate/")), "{next}");
    }
    let page = site.get("/hookgate/login?next=%22%3E%3Cscript%3E", "").await;
    assert!(!page.text().contains("<script"), "{}", page.text());
    let page = site.get("/hookgate/login?next=/%22%3E%3Cscript%3E", "").await;
    assert!(page.text().contains("value=\"/&quot;&gt;&lt;script&gt;\""), "{}", page.text());
}

#[tokio::test]
async fn the_token_passes_and_nothing_like_it() {
    let site = site("token", "").await;
    for header in [format!("authorization: Bearer {TOKEN}"), format!("Authorization: bearer  {TOKEN}")] {
        assert_eq!(site.get(AUDIT, &format!("{header}\r\n")).await.status(), 200, "{header}");
    }
    for header in [
        format!("authorization: Bearer {TOKEN}x"),
        format!("authorization: Bearer {}", &TOKEN[1..]),
        "authorization: Bearer".to_owned(),
        "authorization: Bearer ".to_owned(),
        format!("authorization: Basic {TOKEN}"),
        format!("authorization: {TOKEN}"),
        format!("authorization: Bearer {TOKEN}\r\nauthorization: Bearer {TOKEN}"),
        format!("x-hookgate-key: {TOKEN}"),
        format!("cookie: hookgate_auth={TOKEN}"),
    ] {
        let answer = site.get(AUDIT, &format!("{header}\r\n")).await;
        assert_eq!(answer.status(), 401, "{header}");
        assert!(!answer.text().contains(&TOKEN[1..]), "{}", answer.text());
    }
    assert_eq!(site.get(&format!("{AUDIT}?token={TOKEN}"), "").await.status(), 401);
    // A wrong token is not helped by a login.
    let cookie = cookie(&site.log_in(&format!("token={TOKEN}"), "").await);
    assert_eq!(site.get(AUDIT, &cookie).await.status(), 200);
    assert_eq!(site.get(AUDIT, &format!("{cookie}authorization: Bearer wrong\r\n")).await.status(), 401);
    assert_eq!(site.log_in("token=wrong", "").await.status(), 401);
    assert_eq!(site.log_in("username=ann&password=correct+horse", "").await.status(), 400, "users are not asked for");
}

#[tokio::test]
async fn a_login_ends_with_logout_and_with_what_it_rests_on() {
    let site = site("token+password", "").await;
    let users = users(site.folder.path());
    let status = async |cookie: &str| site.get(AUDIT, cookie).await.status();

    let cookie = site.cookie().await;
    let other = site.cookie().await;
    let logout = format!("POST /hookgate/logout HTTP/1.1\r\nhost: gate.example\r\n{cookie}content-length: 0\r\n\r\n");
    let answer = site.send(&logout).await;
    assert_eq!((answer.status(), answer.header("location")), (303, Some("/hookgate/login")));
    assert!(answer.header("set-cookie").unwrap().starts_with("hookgate_auth=; Path=/; Max-Age=0;"));
    assert_eq!((status(&cookie).await, status(&other).await), (401, 200), "the one that was logged out, and it alone");

    users.set_disabled("ann", true).unwrap();
    assert_eq!(status(&other).await, 401);
    assert_eq!(site.log_in("username=ann&password=correct+horse", "").await.status(), 401);
    users.set_disabled("ann", false).unwrap();
    let cookie = site.cookie().await;
    users.set_password("ann", &Password::new("another horse").unwrap()).unwrap();
    assert_eq!(status(&cookie).await, 401);
    let cookie = self::cookie(&site.log_in("username=ann&password=another+horse", "").await);
    assert_eq!(status(&cookie).await, 200);
    users.remove("ann").unwrap();
    assert_eq!(status(&cookie).await, 401);
    assert_eq!(site.get("/hookgate/logout", "").await.status(), 405);
}

#[tokio::test]
async fn forms_of_other_sites_are_refused() {
    let site = site("password", "").await;
    let form = "username=ann&password=correct+horse";
    for (headers, status) in [
        ("sec-fetch-site: cross-site\r\n", 403),
        ("sec-fetch-site: same-site\r\n", 403),
        ("origin: https://evil.example\r\n", 403),
        ("origin: null\r\n", 403),
        ("sec-fetch-site: same-origin\r\norigin: https://gate.example\r\n", 303),
        ("origin: http://gate.example\r\n", 303),
    ] {
        assert_eq!(site.log_in(form, headers).await.status(), status, "{headers}");
        let cookie = site.cookie().await;
        let change = |path: &str| {
            format!("POST {path} HTTP/1.1\r\nhost: gate.example\r\n{cookie}{headers}content-length: 0\r\n\r\n")
        };
        let expected = if status == 403 { 403 } else { 405 };
        assert_eq!(site.send(&change(AUDIT)).await.status(), expected, "{headers}");
        assert_eq!(site.get(AUDIT, &format!("{cookie}{headers}")).await.status(), 200, "reading changes nothing");
        assert_eq!(site.send(&change("/hookgate/logout")).await.status(), status, "{headers}");
    }
    let answer = site
        .send(&format!(
            "POST /hookgate/login HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n{form}",
            form.len()
        ))
        .await;
    assert_eq!(answer.status(), 415);
    assert_eq!(site.log_in(&"a".repeat(20 << 10), "").await.status(), 413);
}

#[tokio::test]
async fn failed_logins_have_to_wait() {
    let site = site("token+password", "").await;
    let html = "accept: text/html\r\n";
    let mut statuses = Vec::new();
    for _ in 0..11 {
        statuses.push(site.log_in("username=ann&password=wrong", html).await.status());
    }
    assert_eq!(statuses, [&[401; 10][..], &[429]].concat(), "ten tries of one user");
    let answer = site.log_in("username=ann&password=correct+horse", html).await;
    assert_eq!(answer.status(), 429, "the right password has to wait too");
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() <= 7, "{}", answer.head);
    assert!(answer.text().contains("role=\"alert\"") && answer.text().contains("Try again in"), "{}", answer.text());
    // An unknown user is limited like a known one, and the address in the end.
    for _ in 0..10 {
        site.log_in("username=nobody&password=wrong", "").await;
    }
    let answer = site.log_in(&format!("token={TOKEN}"), "").await;
    assert_eq!((answer.status(), answer.header("content-type")), (429, Some("application/problem+json")));
    assert_eq!(site.get(AUDIT, "authorization: Bearer wrong\r\n").await.status(), 429);
    assert_eq!(site.get(AUDIT, &format!("authorization: Bearer {TOKEN}\r\n")).await.status(), 200);
}

#[tokio::test]
async fn a_broken_users_file_shuts_the_gate() {
    let site = site("token+password", "").await;
    let cookie = site.cookie().await;
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    let file = site.folder.path().join("users.toml");
    let good = std::fs::read(&file).unwrap();
    std::fs::write(&file, "users = 1").unwrap();
    for headers in ["", &cookie, &bearer, "accept: text/html\r\n"] {
        let answer = site.get(AUDIT, headers).await;
        assert_eq!(answer.status(), 503, "{headers}");
        assert!(answer.text().contains("log says why") && !answer.text().contains("users.toml"), "{}", answer.text());
    }
    assert_eq!(site.log_in(&format!("token={TOKEN}"), "").await.status(), 503);
    assert!(site.get("/hookgate/login", "accept: text/html\r\n").await.text().contains("lets nobody pass"));
    assert_eq!(site.get("/healthz", "").await.status(), 200);
    std::fs::write(&file, &good).unwrap();
    assert_eq!(site.get(AUDIT, &cookie).await.status(), 200);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(site.get(AUDIT, &bearer).await.status(), 503);
}

#[tokio::test]
async fn the_cookie_does_not_leave_with_requests_on_routes() {
    let site = site("password", "").await;
    let cookie = site.cookie().await;
    let value = cookie.trim().split_once('=').unwrap().1.to_owned();
    let answer = site.get("/x", &format!("cookie: a=1; hookgate_auth={value}; b=2\r\n")).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(site.get("/y", &cookie).await.status(), 200);
    assert_eq!(site.get("/z", "Cookie: a=1;b=2\r\n").await.status(), 200);
    let seen = site.seen.lock().unwrap().clone();
    assert!(seen[0].to_ascii_lowercase().contains("cookie: a=1; b=2\r\n"), "{}", seen[0]);
    assert!(!seen[1].to_ascii_lowercase().contains("cookie"), "{}", seen[1]);
    assert!(seen[2].contains("Cookie: a=1;b=2\r\n"), "what is not ours is as it was: {}", seen[2]);
}

/// Paths that only look like open ones, or like other ones than the control surface's.
const CONTROL_TRICKS: [&str; 28] = [
    "/hookgate/login/../v1/audit",
    "/hookgate/login/%2e%2e/v1/audit",
    "/hookgate/login;/v1/audit",
    "/hookgate/login/",
    "/hookgate/login/x",
    "/hookgate/login%2f..%2fv1/audit",
    "/hookgate//v1/audit",
    "/hookgate/v1//audit",
    "/hookgate/v1/audit/",
    "/hookgate/v1/audit%3f",
    "/hookgate/v1/%61udit",
    "/hookgate/LOGIN",
    "/healthz/../hookgate/v1/audit",
    "/healthz%2f..%2fhookgate/v1/audit",
    "/metrics",
    "/metrics?/healthz",
    "/api/sessions/healthz/hooks",
    "/api/sessions/..%2f..%2fhealthz/hooks",
    "http://other.example/hookgate/v1/audit",
    "HTTP://other.example/hookgate/v1/audit",
    "http://other.example/healthz/../hookgate/v1/audit",
    "/%68ookgate/v1/audit",
    "/hookgate%2fv1%2faudit",
    "//hookgate/v1/audit",
    "/./hookgate/v1/audit",
    "/x/../hookgate/v1/audit",
    "/x/..;/hookgate/v1/audit",
    "\\hookgate\\v1\\audit",
];

#[tokio::test]
async fn no_trick_with_the_path_passes_the_gate() {
    let site = site("token", "").await;
    for path in CONTROL_TRICKS {
        let answer = site.get(path, "").await;
        assert!(matches!(answer.status(), 400 | 401), "{path}: {}", answer.head);
    }
    assert_eq!(site.upstream.connections(), 0);
    // What looks like the control surface in another case is a route's business.
    assert_eq!(site.get("/HOOKGATE/v1/audit", "").await.status(), 200);
}

/// A proxy of which every path but callbacks needs a token or a key, with TLS.
fn shut(folder: &Path, upstream: &Upstream, tls: bool, callbacks: bool) -> Proxy {
    certificates(folder, "down", &["localhost"]);
    KeysFile::new(folder.join("keys.toml")).add("team").unwrap();
    let tls = if tls { "tls = { cert = \"down.pem\", key = \"down.key\" }\n" } else { "" };
    let text = format!(
        "{tls}[auth]\nmode = \"token\"\nprotect_routes = true\n[tmp_hooks]\nallow_unauthenticated = {callbacks}\n{}",
        pass(upstream.address)
    );
    proxy_with(folder, &text, &[("HOOKGATE_TOKEN", TOKEN)])
}

#[tokio::test]
async fn no_trick_gets_to_a_route_without_its_key() {
    let upstream = Upstream::answering(|_| json("1")).await;
    for callbacks in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let proxy = shut(folder.path(), &upstream, false, callbacks);
        let ask = async |target: &str| {
            let mut client = Wire::to(&proxy).await;
            // A target that names a host has to name the same one.
            let host = target.strip_prefix("http://").and_then(|rest| rest.split('/').next()).unwrap_or("a");
            client.send(format!("POST {target} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n")).await;
            let answer = client.answer().await;
            (answer.status(), answer.text().to_owned())
        };
        for target in TRICKS.iter().chain(&CONTROL_TRICKS) {
            let (status, _) = ask(target).await;
            assert!(matches!(status, 400 | 401), "{target}: {status}");
        }
        for target in PASSING {
            match callbacks {
                true => assert_eq!(ask(target).await, (404, UNKNOWN.to_owned()), "{target}"),
                false => assert_eq!(ask(target).await.0, 401, "{target}"),
            }
        }
    }
    assert_eq!(upstream.connections(), 0);
}

#[tokio::test]
async fn no_trick_passes_over_http_2() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = Upstream::answering(|_| json("1")).await;
    let proxy = shut(folder.path(), &upstream, true, true);
    let client = client(folder.path(), true);
    let mut asked = 0;
    for target in PASSING.iter().chain(&TRICKS).chain(&CONTROL_TRICKS).filter(|target| target.starts_with('/')) {
        let uri = format!("https://localhost:{}{target}", proxy.addresses()[0].port()).parse::<http::Uri>();
        // This client cannot send every trick.
        let Some(uri) = uri.ok().filter(|uri| uri.path_and_query().is_some_and(|path| path == target)) else {
            continue;
        };
        asked += 1;
        let request = http::Request::post(uri).body(Full::<Bytes>::default()).unwrap();
        let answer = within("an answer", client.request(request)).await.unwrap();
        assert_eq!(answer.version(), http::Version::HTTP_2);
        let status = answer.status().as_u16();
        match PASSING.contains(target) {
            true => assert_eq!(status, 404, "{target}"),
            false => assert!(matches!(status, 400 | 401), "{target}: {status}"),
        }
    }
    assert!(asked > 50, "{asked}");
    assert_eq!(upstream.connections(), 0);

    // A form of hookgate's own page passes: HTTP/2 has the host elsewhere, and is compared with the origin all the same.
    let origin = format!("https://localhost:{}", proxy.addresses()[0].port());
    for (from, status) in [(origin.as_str(), 303), ("https://evil.example", 403)] {
        let request = http::Request::post(format!("{origin}/hookgate/login"))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("origin", from)
            .body(Full::from(format!("token={TOKEN}")))
            .unwrap();
        assert_eq!(within("an answer", client.request(request)).await.unwrap().status(), status, "{from}");
    }
}
