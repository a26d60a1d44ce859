//! The real command, in a folder of its own and with an environment of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use crate::config_support::Folder;

pub(crate) struct Output {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The command, without the environment of whoever runs the tests.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookgate"));
    command.args(arguments).current_dir(folder).env_clear().stdin(Stdio::null());
    command
}

impl Folder {
    pub(crate) fn hookgate(&self, arguments: &[&str]) -> Output {
        self.hookgate_with(&[], arguments)
    }

    pub(crate) fn hookgate_with(&self, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
        let mut command = command(&self.path(""), arguments);
        let output = command.envs(environment.iter().copied()).output().unwrap();
        Output {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// `hookgate run` with a log in JSON. It ends with the test, whatever becomes of that.
pub(crate) struct Running {
    pub(crate) process: Child,
    log: Receiver<serde_json::Value>,
    address: String,
}

impl Running {
    pub(crate) fn start(folder: &Folder) -> Self {
        let mut command = command(&folder.path(""), &["run"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let (send, log) = sync_channel(1024);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let record = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"));
                let _ = send.send(record);
            }
        });
        let mut running = Running { process, log, address: String::new() };
        running.address = running.logged("listening")["address"].as_str().unwrap().to_owned();
        running
    }

    /// Waits for the record with that message.
    pub(crate) fn logged(&self, message: &str) -> serde_json::Value {
        loop {
            let record =
                self.log.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("nothing was logged of {message:?}"));
            if record["message"] == message {
                return record;
            }
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// The whole answer to a request on a connection of its own.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A policy service on loopback that gives every request the same answer.
pub(crate) fn policy(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    serve(listener, answer);
    address
}

/// Gives every request to that listener the same answer.
pub(crate) fn serve(listener: TcpListener, answer: &'static str) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            respond(stream.unwrap(), answer);
        }
    });
}

fn respond(mut stream: TcpStream, answer: &str) {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    // The end of the body is where its declared length says.
    let whole = |received: &[u8]| {
        let text = String::from_utf8_lossy(received).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
        let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        body.len() >= length.unwrap_or(0)
    };
    while !whole(&received) {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
        }
    }
    let length = answer.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(answer.as_bytes()));
}
