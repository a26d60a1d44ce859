//! The real command, in a folder of its own and with an environment of its own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

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

/// A policy service on loopback that gives every request the same answer.
pub(crate) fn policy(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            respond(stream.unwrap(), answer);
        }
    });
    address
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
