//! Tokens stay where they belong: in the URL, in the answer that issues it, and in the message that spends it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use super::stage::SESSION;
use crate::cli_support::command;
use crate::config_support::Folder;
use crate::pingora_kit::{Message, Wire, within};

/// A credential that a client sends along.
const BEARER: &str = "a-secret-of-the-client";

/// The command, and everything that it logs.
struct Running {
    process: Child,
    address: SocketAddr,
    log: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Running {
    fn start(folder: &Folder) -> Self {
        let mut command = command(&folder.path(""), &["run", "--log", "trace"]);
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(String::new()));
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let record: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            (record["message"] == "listening").then(|| record["address"].as_str().unwrap().parse().unwrap())
        });
        let kept = log.clone();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let mut log = kept.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Running { process, address: address.unwrap(), log, reader: Some(reader) }
    }

    async fn send(&self, request: &str, body: &[u8]) -> Message {
        let mut wire = Wire::connect(self.address).await;
        wire.send(format!("{request}\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len())).await;
        wire.try_send(body).await;
        wire.answer().await
    }

    async fn issue(&self, ttl_seconds: u32) -> String {
        let request = format!("POST /hookgate/v1/sessions/{SESSION}/tmp-hooks HTTP/1.1");
        let body = format!("{{\"ttl_seconds\": {ttl_seconds}}}");
        let issued: serde_json::Value =
            serde_json::from_slice(&self.send(&request, body.as_bytes()).await.body).unwrap();
        issued["token"].as_str().unwrap().to_owned()
    }

    /// The answer to a call of a tool.
    async fn mcp(&self, tool: &str, arguments: &str) -> serde_json::Value {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        );
        let head = format!(
            "POST /hookgate/mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nx-hookgate-session: {SESSION}\r\nauthorization: Bearer {BEARER}\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut wire = Wire::connect(self.address).await;
        wire.send(head).await;
        let answer = wire.answer().await;
        let data = answer.text().lines().find_map(|line| line.strip_prefix("data: "));
        serde_json::from_str(data.unwrap_or_else(|| panic!("{}", answer.head))).unwrap()
    }

    async fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1"), b"").await.text().to_owned()
    }

    /// Everything that was logged until the end.
    fn end(mut self) -> String {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.reader.take().unwrap().join().unwrap();
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn no_token_is_in_anything_that_a_run_produces() {
    let folder = Folder::with(
        "[server]\nlisten = \"127.0.0.1:0\"\n[log]\nformat = \"json\"\n[tmp_hooks]\nbase_url = \"https://a.example\"\n\
         min_ttl_seconds = 1\nmax_body_bytes = 100\nbody_read_timeout_ms = 100\n",
    );
    let running = Running::start(&folder);
    let mut produced = String::new();
    let (received, refused, expired) = (running.issue(600).await, running.issue(600).await, running.issue(1).await);
    let post = |token: &str, more: &str| format!("POST /api/tmp-hooks/{token}{more}");

    let mut statuses = Vec::new();
    for (request, body) in [
        (post(&refused, "?x=1 HTTP/1.1"), vec![b'x'; 101]),
        (post(&refused, "/more HTTP/1.1"), vec![]),
        (post(&refused, "%2f HTTP/1.1"), vec![]),
        (post(&refused, "/.. HTTP/1.1"), vec![]),
        (format!("POST /%61pi/tmp-hooks/{refused} HTTP/1.1"), vec![]),
        (format!("POST //api//tmp-hooks/{refused} HTTP/1.1"), vec![]),
        (format!("POST /elsewhere/{refused} HTTP/1.1"), vec![]),
        (
            format!("GET /api/tmp-hooks/{refused} HTTP/1.1\r\nreferer: https://a.example/api/tmp-hooks/{refused}"),
            vec![],
        ),
        (post(&refused, " HTTP/1.1\r\ncontent-encoding: br"), vec![]),
        (post(&refused, " HTTP/1.1\r\ncontent-encoding: gzip"), b"no".to_vec()),
        (post(&received, " HTTP/1.1"), b"done".to_vec()),
        (post(&received, " HTTP/1.1"), b"done".to_vec()),
        (post(&received.replace('-', "0"), " HTTP/1.1"), vec![]),
    ] {
        let answer = running.send(&request, &body).await;
        statuses.push(answer.status());
        produced.push_str(&format!("{}{}\n", answer.head, answer.text()));
    }
    assert_eq!(statuses, [413, 404, 404, 404, 404, 404, 404, 405, 415, 400, 200, 410, 404]);
    let mut slow = Wire::connect(running.address).await;
    slow.send(format!("{}\r\nhost: x\r\ncontent-length: 9\r\n\r\nx", post(&refused, " HTTP/1.1"))).await;
    assert_eq!(slow.answer().await.status(), 408);
    // Nor does the MCP server log them, however much is asked for; its answer is where this one is shown.
    let requested = running.mcp("request_tmp_hook", "{}").await;
    let given = &requested["result"]["structuredContent"]["token"];
    let asked = given.as_str().unwrap_or_else(|| panic!("{requested}")).to_owned();
    assert_eq!(running.send(&post(&asked, " HTTP/1.1"), b"done").await.status(), 200);
    let waited = running.mcp("await_tmp_hook", &format!("{{\"url\":\"https://a.example/x/{asked}\"}}")).await;
    assert_eq!(waited["result"]["isError"], false, "{waited}");
    let expiry = async {
        let list = format!("/hookgate/v1/sessions/{SESSION}/tmp-hooks");
        while !running.get(&list).await.contains("\"expired\"") {}
    };
    within("a token to expire", expiry).await;
    assert_eq!(running.send(&post(&expired, " HTTP/1.1"), b"").await.status(), 410);
    for path in [
        "/metrics",
        "/hookgate/v1/audit",
        &format!("/hookgate/v1/sessions/{SESSION}/hooks"),
        &format!("/hookgate/v1/sessions/{SESSION}/tmp-hooks"),
    ] {
        produced.push_str(&running.get(path).await);
    }
    let inbox = running.get(&format!("/hookgate/v1/sessions/{SESSION}/inbox")).await;
    assert!(inbox.contains(&format!("Token: {received}")), "the message shows the token that it spent: {inbox}");
    let log = running.end();
    assert!(log.contains("hookgate::callback") && log.contains("hookgate::access"), "{log}");
    produced.push_str(&log);
    assert!(!produced.contains(BEARER), "a credential is logged");
    for token in [&received, &refused, &expired, &asked] {
        let shown: Vec<&str> = produced.lines().filter(|line| line.contains(token.as_str())).collect();
        assert!(shown.is_empty(), "a token is shown:\n{}", shown.join("\n"));
    }
}
