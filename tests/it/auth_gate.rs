//! The built-in gate by itself: expiry, and what it needs to let anybody pass.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use hookgate::auth::{Access, AuthGate, CallbackBypass, ClientAddress, Gate, GateOptions, Token, TokenSource};
use http::{Request, StatusCode};

const TOKEN: &str = "correct-token-0123456789";

fn token_options() -> GateOptions {
    let mut options = GateOptions::default();
    options.token = Some(TokenSource::Known(Token::new(TOKEN).unwrap()));
    options
}

/// The status of a refusal; 200 when the request passes.
async fn status(gate: &impl AuthGate, path: &str, header: (&str, &str)) -> StatusCode {
    let (head, ()) = Request::get(path).header(header.0, header.1).body(()).unwrap().into_parts();
    match gate.check(&head).await {
        Access::Granted(_) => StatusCode::OK,
        Access::Refused(answer) => answer.status(),
    }
}

async fn log_in(gate: &Gate, form: String, from: &str) -> http::Response<hookgate::Body> {
    let mut request = Request::post("/hookgate/login")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Bytes::from(form))
        .unwrap();
    request.extensions_mut().insert(ClientAddress(from.parse::<IpAddr>().unwrap()));
    gate.login(request).await
}

fn cookie(answer: &http::Response<hookgate::Body>) -> String {
    answer.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_login_expires_on_the_server() {
    let mut options = token_options();
    options.session_ttl = Duration::from_secs(3600);
    let gate = Gate::new(options).unwrap();
    let cookie = cookie(&log_in(&gate, format!("token={TOKEN}"), "192.0.2.1").await);
    assert_eq!(status(&gate, "/x", ("cookie", &cookie)).await, 200);
    tokio::time::advance(Duration::from_secs(3599)).await;
    assert_eq!(status(&gate, "/x", ("cookie", &cookie)).await, 200);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(status(&gate, "/x", ("cookie", &cookie)).await, 401);
}

#[tokio::test(start_paused = true)]
async fn one_address_does_not_spend_the_tries_of_another_but_a_network_is_one() {
    let gate = Gate::new(token_options()).unwrap();
    let wrong = async |from: &str| log_in(&gate, "token=wrong".to_owned(), from).await.status();
    for index in 0..20 {
        assert_eq!(wrong(&format!("2001:db8:0:1::{index:x}")).await, 401, "{index}");
    }
    assert_eq!(wrong("2001:db8:0:1:ffff::1").await, 429);
    assert_eq!(wrong("2001:db8:0:2::1").await, 401);
    assert_eq!(wrong("192.0.2.1").await, 401);
    let right = log_in(&gate, format!("token={TOKEN}"), "2001:db8:0:1::1").await;
    assert_eq!(
        (right.status(), &right.headers()["retry-after"]),
        (StatusCode::TOO_MANY_REQUESTS, &"4".parse().unwrap())
    );
    tokio::time::advance(Duration::from_secs(4)).await;
    assert_eq!(log_in(&gate, format!("token={TOKEN}"), "2001:db8:0:1::1").await.status(), 303);
}

#[tokio::test]
async fn a_gate_without_settings_or_with_missing_files_lets_nobody_pass() {
    let folder = tempfile::tempdir().unwrap();
    let mut missing_users = token_options();
    missing_users.users_file = Some(folder.path().join("users.toml"));
    let mut missing_token = GateOptions::default();
    missing_token.token = Some(TokenSource::File(folder.path().join("token")));
    for options in [GateOptions::default(), missing_users, missing_token] {
        let gate = CallbackBypass::new(Gate::new(options.clone()).unwrap(), "/api/tmp-hooks");
        assert_eq!(status(&gate, "/hookgate/v1/audit", ("authorization", &format!("Bearer {TOKEN}"))).await, 503);
        assert_eq!(status(&gate, "/metrics", ("accept", "text/html")).await, 503);
        assert_eq!(status(&gate, "/healthz", ("accept", "*/*")).await, 200);
        assert_eq!(status(&gate, "/api/tmp-hooks/a", ("accept", "*/*")).await, 200);
        assert_eq!(log_in(&Gate::new(options).unwrap(), format!("token={TOKEN}"), "192.0.2.1").await.status(), 503);
    }
}

#[tokio::test]
async fn a_token_file_is_read_again_and_ends_the_logins_of_the_old_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).unwrap();
    let mut options = GateOptions::default();
    options.token = Some(TokenSource::File(file.clone()));
    let gate = Gate::new(options).unwrap();
    let cookie = cookie(&log_in(&gate, format!("token={TOKEN}"), "192.0.2.1").await);
    assert_eq!(status(&gate, "/x", ("cookie", &cookie)).await, 200);
    std::fs::write(&file, "another-token-0123456789-longer").unwrap();
    assert_eq!(status(&gate, "/x", ("cookie", &cookie)).await, 401);
    assert_eq!(status(&gate, "/x", ("authorization", &format!("Bearer {TOKEN}"))).await, 401);
    assert_eq!(status(&gate, "/x", ("authorization", "Bearer another-token-0123456789-longer")).await, 200);
    std::fs::write(&file, "short").unwrap();
    assert_eq!(status(&gate, "/x", ("authorization", "Bearer another-token-0123456789-longer")).await, 503);
}

/// Callbacks need a login too when the operator says so; the caller is named when there is one.
#[tokio::test]
async fn the_bypass_is_the_operators_choice() {
    let gate = Gate::new(token_options()).unwrap();
    let closed = CallbackBypass::new(gate.clone(), "/api/tmp-hooks").allow_unauthenticated(false);
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(status(&closed, "/api/tmp-hooks/a", ("accept", "*/*")).await, 401);
    assert_eq!(status(&closed, "/api/tmp-hooks/a", ("authorization", &bearer)).await, 200);
    let (head, ()) = Request::get("/x").header("authorization", bearer).body(()).unwrap().into_parts();
    assert!(matches!(gate.check(&head).await, Access::Granted(caller) if caller.name() == Some("token")));
}
