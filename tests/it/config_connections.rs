//! A configured credential reaches its policy service, and no other.

use std::sync::Arc;

use bytes::Bytes;
use hookgate::dispatch::{ConnectionName, HandlerTransport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::config_support::Folder;

/// The head of the request that a service at loopback gets.
async fn received(transport: &dyn HandlerTransport, connection: Option<&str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut request =
        http::Request::post(format!("http://{}/", listener.local_addr().unwrap())).body(Bytes::new()).unwrap();
    if let Some(name) = connection {
        request.extensions_mut().insert(ConnectionName(Arc::from(name)));
    }
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        String::from_utf8(head).unwrap().to_ascii_lowercase()
    };
    let (answer, head) = tokio::join!(transport.send(request, 100), serve);
    answer.unwrap();
    head
}

#[tokio::test]
async fn credentials_are_sent_by_name() {
    let folder = Folder::with(
        "[connections.a]\nbearer_env = \"TOKEN\"\n[connections.b]\nbasic_env = \"USER_PASSWORD\"\n\
         [connections.c]\nheader = { name = \"x-team\", env = \"TEAM\" }\n",
    );
    let environment = [("TOKEN", "t0ken"), ("USER_PASSWORD", "ann:secret"), ("TEAM", "red")];
    let transport = folder.load(&environment).unwrap().transport();
    assert!(received(&transport, Some("a")).await.contains("\r\nauthorization: bearer t0ken\r\n"));
    assert!(received(&transport, Some("b")).await.contains("\r\nauthorization: basic yw5uonnly3jlda==\r\n"));
    assert!(received(&transport, Some("c")).await.contains("\r\nx-team: red\r\n"));
    assert!(!received(&transport, None).await.contains("authorization"));
}
