//! What the dispatch tests share: a policy server on a raw socket, scripted transports, occasions and hook sets.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hookgate::audit::{AuditLog, AuditQuery, AuditRecord};
use hookgate::dispatch::{AnswerBody, DispatchKey, Dispatcher, HandlerAnswer, HandlerTransport, TransportError};
use hookgate::hooks::{Detail, Event, HookSet, Occasion, Plane};
use hookgate::id::SessionKey;
use hookgate::limits::Limits;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// No step of a test takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A request as the policy server read it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the envelope is JSON")
    }
}

/// What the policy server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// 200 with this JSON.
    Json(String),
    /// Any status, further header lines, a body.
    Http(u16, String, Vec<u8>),
    /// These bytes as they are, then the connection is closed.
    Raw(Vec<u8>),
    /// Nothing, ever.
    Silence,
    /// A head and then endless bytes; how many were taken is counted.
    Flood,
    /// A byte of a good answer now and then, too slow to be in time.
    Trickle,
}

impl Reply {
    pub(crate) fn pass() -> Self {
        Reply::json(r#""outcome":"pass""#)
    }

    pub(crate) fn json(rest: &str) -> Self {
        Reply::Json(format!(r#"{{"schemaVersion":1,{rest}}}"#))
    }
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

/// A policy service on a loopback socket that shows every byte.
pub(crate) struct PolicyServer {
    pub(crate) address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    flooded: AtomicUsize,
    flood_over: tokio::sync::Notify,
}

impl PolicyServer {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // Small, so that what the server could write tells what the client took.
        socket.set_send_buffer_size(16 * 1024).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(64).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let script: Arc<Script> = Arc::new(script);
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(stream, shared.clone(), script.clone()));
            }
        });
        PolicyServer { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// Waits for the end of a flood and says how many bytes of body were written.
    pub(crate) async fn flooded(&self) -> usize {
        tokio::time::timeout(PATIENCE, self.state.flood_over.notified()).await.expect("the flood was cut off");
        self.state.flooded.load(Ordering::SeqCst)
    }

    /// Waits until so many requests came in.
    pub(crate) async fn wait_for(&self, requests: usize) {
        let enough = async {
            while self.seen().len() < requests {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, enough).await.expect("the requests came");
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>, script: Arc<Script>) {
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer).await {
        let reply = script(&seen);
        state.seen.lock().unwrap().push(seen);
        let sent = match reply {
            Reply::Json(json) => {
                stream.write_all(&http(200, "content-type: application/json\r\n", json.as_bytes())).await
            }
            Reply::Http(status, headers, body) => stream.write_all(&http(status, &headers, &body)).await,
            Reply::Raw(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Silence => std::future::pending().await,
            Reply::Flood => return flood(stream, &state).await,
            Reply::Trickle => {
                let answer =
                    http(200, "content-type: application/json\r\n", br#"{"schemaVersion":1,"outcome":"deny"}"#);
                for byte in answer {
                    if stream.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                return;
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

pub(crate) fn http(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// The size that a flood announces, in bytes.
pub(crate) const FLOOD: usize = 256 << 20;

async fn flood(mut stream: TcpStream, state: &State) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {FLOOD}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut beginning = br#"{"schemaVersion":1,"outcome":"deny","reason":"flooded","x":""#.to_vec();
    beginning.resize(4096, b'x');
    let mut written = 0;
    while written < FLOOD && stream.write_all(&beginning).await.is_ok() {
        written += beginning.len();
        beginning.fill(b'x');
    }
    state.flooded.store(written, Ordering::SeqCst);
    state.flood_over.notify_one();
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    loop {
        if let Some((seen, used)) = parse(buffer) {
            buffer.drain(..used);
            return Some(seen);
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn parse(buffer: &[u8]) -> Option<(Seen, usize)> {
    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&buffer[..end]).expect("a head in ASCII");
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<_> = lines
        .map(|line| line.split_once(':').expect("a header line"))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut seen = Seen { line, headers, body: Bytes::new() };
    let length: usize = seen.header("content-length").parse().expect("a content-length");
    seen.body = Bytes::copy_from_slice(buffer.get(end + 4..end + 4 + length)?);
    Some((seen, end + 4 + length))
}

/// One request of a blocking stream, for the TLS server.
pub(crate) fn read_blocking(stream: &mut impl std::io::Read) -> Option<Seen> {
    let mut buffer = Vec::new();
    loop {
        if let Some((seen, _)) = parse(&buffer) {
            return Some(seen);
        }
        let mut chunk = [0; 4096];
        match stream.read(&mut chunk) {
            Ok(0) => return None,
            Ok(count) => buffer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Answers by a function, without a network.
pub(crate) struct Scripted<F>(pub(crate) F);

impl<F> HandlerTransport for Scripted<F>
where
    F: Fn(http::Request<Bytes>) -> BoxFuture<'static, Reply> + Send + Sync + 'static,
{
    fn send(
        &self,
        request: http::Request<Bytes>,
        _: usize,
    ) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
        let reply = (self.0)(request);
        async move {
            match reply.await {
                Reply::Json(json) => Ok(HandlerAnswer {
                    status: http::StatusCode::OK,
                    headers: http::HeaderMap::new(),
                    body: AnswerBody::Complete(json.into()),
                }),
                other => Err(TransportError::new(format!("{other:?}"))),
            }
        }
        .boxed()
    }
}

pub(crate) fn dispatcher(transport: impl HandlerTransport) -> Dispatcher {
    Dispatcher::new(Arc::new(transport), AuditLog::new(10_000, 100), DispatchKey::random(), &Limits::default())
}

/// A set of handlers of one event: (id, url, further members).
pub(crate) fn hooks(event: Event, handlers: &[(&str, &str, &str)]) -> Arc<HookSet> {
    let list: Vec<_> = handlers
        .iter()
        .map(|(id, url, more)| {
            let comma = if more.is_empty() { "" } else { "," };
            format!(r#"{{"id":"{id}","type":"http","url":"{url}"{comma}{more}}}"#)
        })
        .collect();
    let document = format!(r#"{{"version":1,"hooks":{{"{}":[{}]}}}}"#, event.name(), list.join(","));
    let set = HookSet::builder()
        .allowed_hosts(["127.0.0.1", "localhost", "hooks.example.com"])
        .allow_insecure_loopback(true)
        .connections(["policy", "unknown"])
        .document("test.json", document.as_bytes())
        .build();
    Arc::new(set.unwrap_or_else(|errors| panic!("{errors}")))
}

pub(crate) fn occasion(event: Event) -> Occasion {
    Occasion {
        event,
        session: session(),
        turn_id: Some("turn-1".into()),
        tool_call_id: Some("call-1".into()),
        task_id: None,
        agent_id: None,
        parent_agent_id: None,
        model: Some("m".into()),
        plane: Plane::Model,
        route: "anthropic".into(),
        name: (event.names() != hookgate::hooks::Names::None).then(|| "Bash".into()),
        server: None,
        trace: None,
    }
}

pub(crate) fn session() -> SessionKey {
    SessionKey { tenant: "default".into(), session: "s-1".into() }
}

pub(crate) fn tool_input(json: &str) -> Detail {
    Detail::PreToolUse { tool_name: "Bash".into(), input: Bytes::from(json.to_owned()), server: None, declared: false }
}

/// A small detail of each gating event.
pub(crate) fn gated(event: Event) -> Detail {
    match event {
        Event::PreToolUse => tool_input(r#"{"command":"ls"}"#),
        Event::SubagentStart => Detail::SubagentStart { subagent: "Bash".into(), prompt: "look".into() },
        Event::Stop => {
            Detail::Stop { response: "done".into(), stop_reason: "end_turn".into(), attempt: 2, max_attempts: 4 }
        }
        _ => Detail::UserPromptSubmit {
            prompt: "hello".into(),
            attachments: vec![],
            client_context: vec![],
            replayed: false,
            side: false,
            source: None,
        },
    }
}

/// All audit records so far.
pub(crate) fn records(dispatcher: &Dispatcher) -> Vec<AuditRecord> {
    dispatcher.audit().session(&session(), &AuditQuery::default()).items
}
