//! Whatever is shown to the gate, right or wrong, no log line of any level repeats it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;

use hookgate::auth::{KeysFile, Password, UsersFile};

use crate::cli_support::command;
use crate::config_support::Folder;
use crate::pingora_kit::{Upstream, Wire, json, pass};

const TOKEN: &str = "correct-token-0123456789";

/// Ends the process whatever becomes of the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command with everything logged.
struct Running {
    child: Ended,
    address: std::net::SocketAddr,
    /// Reads the log to its end, so that writing it never waits.
    log: JoinHandle<String>,
}

impl Running {
    fn start(folder: &Folder) -> Self {
        let mut command = command(&folder.path(""), &["run", "--log", "trace"]);
        let command = command.env("HOOKGATE_TOKEN", TOKEN).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = Ended(command.spawn().unwrap());
        let mut log = BufReader::new(child.0.stderr.take().unwrap());
        let mut begun = String::new();
        let address = loop {
            let start = begun.len();
            assert_ne!(log.read_line(&mut begun).unwrap(), 0, "{begun}");
            if let Some((_, address)) = begun[start..].split_once("listening address=") {
                break address.split_whitespace().next().unwrap().parse().unwrap();
            }
        };
        let log = std::thread::spawn(move || {
            log.read_to_string(&mut begun).unwrap();
            begun
        });
        Running { child, address, log }
    }

    async fn send(&self, request: String) -> crate::pingora_kit::Message {
        let mut client = Wire::connect(self.address).await;
        client.send(request).await;
        client.answer().await
    }

    /// Ends it and gives the whole log.
    fn log(self) -> String {
        let Running { child, log, .. } = self;
        drop(child);
        log.join().unwrap()
    }
}

fn login(form: &str) -> String {
    format!(
        "POST /hookgate/login HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-www-form-urlencoded\r\n\
         content-length: {}\r\n\r\n{form}",
        form.len()
    )
}

#[tokio::test]
async fn nothing_that_is_shown_is_logged() {
    let upstream = Upstream::answering(|_| json("1")).await;
    let folder = Folder::with(&format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[auth]\nmode = \"token+password\"\nprotect_routes = true\n{}",
        pass(upstream.address)
    ));
    let users = UsersFile::new(folder.path("users.toml"));
    users.add("ann", &Password::new("correct horse").unwrap()).unwrap();
    let key = KeysFile::new(folder.path("keys.toml")).add("team").unwrap();
    let running = Running::start(&folder);

    let mut secrets = vec![TOKEN.to_owned(), key.clone(), "wrong-secret".to_owned(), "horse".to_owned()];
    for (form, status) in [
        (format!("token={TOKEN}"), 303),
        ("token=wrong-secret".to_owned(), 401),
        ("username=ann&password=correct+horse".to_owned(), 303),
        ("username=ann&password=wrong-secret".to_owned(), 401),
        ("username=wrong-secret&password=correct+horse".to_owned(), 401),
    ] {
        let answer = running.send(login(&form)).await;
        assert_eq!(answer.status(), status, "{form}");
        assert!(!answer.text().contains("wrong-secret"), "{}", answer.text());
        if let Some(cookie) = answer.header("set-cookie") {
            let cookie = cookie.split(';').next().unwrap();
            secrets.push(cookie.split_once('=').unwrap().1.split_once('.').unwrap().0.to_owned());
            let audit = format!("GET /hookgate/v1/audit HTTP/1.1\r\nhost: a\r\ncookie: {cookie}\r\n\r\n");
            assert_eq!(running.send(audit).await.status(), 200);
        }
    }
    for (path, header, status) in [
        ("/hookgate/v1/audit", format!("authorization: Bearer {TOKEN}"), 200),
        ("/hookgate/v1/audit", "authorization: Bearer wrong-secret".to_owned(), 401),
        ("/hookgate/v1/audit?token=wrong-secret", "x-other: 1".to_owned(), 401),
        ("/x", format!("x-hookgate-key: {key}"), 200),
        ("/x", "x-hookgate-key: wrong-secret".to_owned(), 401),
    ] {
        let answer = running.send(format!("GET {path} HTTP/1.1\r\nhost: a\r\n{header}\r\n\r\n")).await;
        assert_eq!(answer.status(), status, "{path} {header}");
        assert!(!answer.text().contains("wrong-secret"), "{}", answer.text());
    }
    std::fs::write(users.path(), "wrong-secret").unwrap();
    let bearer = format!("GET /hookgate/ HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n\r\n");
    assert_eq!(running.send(bearer).await.status(), 503);

    let log = running.log();
    for secret in secrets.iter().map(String::as_str).chain(["argon2id$"]) {
        assert!(!log.contains(secret), "{secret} is in {log}");
    }
    for told in ["127.0.0.1", "logged in", "user=ann", "user=unknown", "a wrong token was shown", "is not TOML"] {
        assert!(log.contains(told), "{told} is not in {log}");
    }
}
