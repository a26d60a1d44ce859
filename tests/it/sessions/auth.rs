//! Sessions are behind the same gate as everything of the control surface.

use crate::pingora_kit::{Upstream, Wire, json, pass, proxy_with};

const TOKEN: &str = "correct-token-0123456789";

#[tokio::test]
async fn sessions_are_for_those_who_are_logged_in() {
    let upstream = Upstream::answering(|_| json("1")).await;
    let folder = tempfile::tempdir().unwrap();
    let text = format!("[auth]\nmode = \"token\"\n{}", pass(upstream.address));
    let proxy = proxy_with(folder.path(), &text, &[("HOOKGATE_TOKEN", TOKEN)]);
    let send = async |request: &str, headers: &str| {
        let mut wire = Wire::to(&proxy).await;
        let request = request.replacen(' ', " /hookgate/v1/", 1);
        wire.send(format!("{request} HTTP/1.1\r\nhost: gate.example\r\n{headers}content-length: 0\r\n\r\n")).await;
        wire.answer().await
    };
    let known = format!("authorization: Bearer {TOKEN}\r\n");
    assert_eq!(send("POST sessions/s1/tasks", &known).await.status(), 201);
    for request in [
        "GET sessions",
        "GET sessions/s1",
        "POST sessions/s1/archive",
        "POST sessions/s1/unarchive",
        "POST sessions/s1/tasks",
        "POST sessions/s1/tasks/t/stop",
        "DELETE sessions/s1",
    ] {
        for headers in ["", "authorization: Bearer wrong-token-0123456789\r\n"] {
            let answer = send(request, headers).await;
            assert_eq!(
                (answer.status(), answer.header("content-type")),
                (401, Some("application/problem+json")),
                "{request}"
            );
        }
    }
    assert_eq!(send("GET sessions/s1", &known).await.status(), 200, "nobody deleted it");
    assert_eq!(send("DELETE sessions/s1", &known).await.status(), 204);
    assert_eq!(upstream.connections(), 0);
}
