//! Sockets for the proxy's tests: upstreams that do exactly what a test says, and clients that see every byte.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::config::Config;
use hookgate::host::pingora::Proxy;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Fails the test instead of waiting for ever.
pub(crate) async fn within<F: Future>(what: &str, future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

/// A proxy on a free port. `routes` is what stands in the file beside the listener.
pub(crate) fn proxy(routes: &str) -> Proxy {
    proxy_in(tempfile::tempdir().unwrap().path(), routes)
}

/// The same with a folder that the routes may refer to.
pub(crate) fn proxy_in(folder: &Path, routes: &str) -> Proxy {
    proxy_with(folder, routes, &[])
}

/// The same with an environment.
pub(crate) fn proxy_with(folder: &Path, routes: &str, environment: &[(&str, &str)]) -> Proxy {
    let file = folder.join("hookgate.toml");
    let text = format!("[server]\nlisten = [\"127.0.0.1:0\"]\n{routes}");
    std::fs::write(&file, text).unwrap();
    std::fs::write(folder.join("hooks.json"), HOOKS).unwrap();
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Proxy::start(Config::load(Some(&file), environment).unwrap()).unwrap()
}

/// A policy that is never asked in these tests, so that model routes are inspected.
const HOOKS: &str = r#"{"version": 1, "hooks": {"PreToolUse": [
    {"id": "never", "type": "http", "url": "https://policy.invalid/p", "matcher": ["never-called"]}]}}"#;

/// A passthrough route for everything.
pub(crate) fn pass(upstream: SocketAddr) -> String {
    format!(
        "[[routes]]\nname = \"pass\"\nkind = \"passthrough\"\npath_prefix = \"/\"\nupstream = \"http://{upstream}\"\n"
    )
}

/// An inspected route for everything.
pub(crate) fn model(upstream: SocketAddr) -> String {
    format!(
        "[hooks]\ndocuments = [\"hooks.json\"]\nallowed_hosts = [\"policy.invalid\"]\n\
         [[routes]]\nname = \"model\"\nkind = \"model\"\npath_prefix = \"/\"\nupstream = \"http://{upstream}\"\n"
    )
}

/// A connection on which HTTP/1.1 is written and read by hand.
pub(crate) struct Wire<S = TcpStream> {
    stream: S,
    unread: Vec<u8>,
}

/// The head of a message and its body as far as it is framed.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Message {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Wire<TcpStream> {
    pub(crate) async fn connect(to: SocketAddr) -> Self {
        Wire::new(within("a connection", TcpStream::connect(to)).await.unwrap())
    }

    pub(crate) async fn to(proxy: &Proxy) -> Self {
        Wire::connect(proxy.addresses()[0]).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Sends nothing more, and can still read.
    pub(crate) async fn finish(&mut self) {
        within("the end of sending", self.stream.shutdown()).await.unwrap();
    }

    pub(crate) fn new(stream: S) -> Self {
        Wire { stream, unread: Vec::new() }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        within("a write", self.stream.write_all(bytes.as_ref())).await.unwrap();
        within("a flush", self.stream.flush()).await.unwrap();
    }

    /// Like [`Wire::send`], when the other side may have closed already.
    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = within("a write", self.stream.write_all(bytes.as_ref())).await;
        let _ = within("a flush", self.stream.flush()).await;
    }

    async fn more(&mut self, what: &str) -> bool {
        let mut buffer = vec![0; 64 << 10];
        let read = within(what, self.stream.read(&mut buffer)).await.unwrap_or(0);
        self.unread.extend_from_slice(&buffer[..read]);
        read > 0
    }

    /// Up to and with `end`; `None` when the connection closed before.
    pub(crate) async fn until(&mut self, end: &str) -> Option<String> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end.as_bytes()) {
                let taken: Vec<u8> = self.unread.drain(..at + end.len()).collect();
                return Some(String::from_utf8(taken).unwrap());
            }
            if !self.more(end).await {
                return None;
            }
        }
    }

    async fn exactly(&mut self, len: usize) -> Option<Vec<u8>> {
        while self.unread.len() < len {
            if !self.more("a body").await {
                return None;
            }
        }
        Some(self.unread.drain(..len).collect())
    }

    /// One chunk; `None` when the connection closed before it was complete.
    pub(crate) async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = self.until("\r\n").await?;
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let mut chunk = self.exactly(size + 2).await?;
        chunk.truncate(size);
        Some(chunk)
    }

    pub(crate) async fn head(&mut self) -> Option<String> {
        self.until("\r\n\r\n").await
    }

    /// A whole request; `None` when the connection closed before.
    pub(crate) async fn request(&mut self) -> Option<Message> {
        let head = self.head().await?;
        self.body(head, false).await
    }

    /// A whole answer.
    pub(crate) async fn answer(&mut self) -> Message {
        self.try_answer().await.expect("the connection closed within the answer")
    }

    pub(crate) async fn try_answer(&mut self) -> Option<Message> {
        let head = self.head().await?;
        self.body(head, true).await
    }

    async fn body(&mut self, head: String, answer: bool) -> Option<Message> {
        let mut body = Vec::new();
        if header(&head, "transfer-encoding").is_some() {
            loop {
                let chunk = self.chunk().await?;
                if chunk.is_empty() {
                    break;
                }
                body.extend(chunk);
            }
        } else if let Some(length) = header(&head, "content-length") {
            body = self.exactly(length.parse().unwrap()).await?;
        } else if answer && !head.starts_with("HTTP/1.1 204") {
            while self.more("the end of the connection").await {}
            body = std::mem::take(&mut self.unread);
        }
        Some(Message { head, body })
    }

    /// Waits until the other side has closed.
    pub(crate) async fn closed(&mut self) {
        while self.more("the other side to close").await {}
    }
}

/// An upstream that lives as long as the test.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Upstream {
    /// Runs `serve` for every connection, with its number from 0.
    pub(crate) async fn start<F, R>(serve: F) -> Self
    where
        F: Fn(usize, Wire) -> R + Send + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                serving.spawn(serve(number, Wire::new(stream)));
            }
        });
        Upstream { address, connections, _tasks: tasks }
    }

    /// Answers every request with what `answer` makes of it.
    pub(crate) async fn answering(answer: impl Fn(Message) -> String + Clone + Send + Sync + 'static) -> Self {
        Upstream::start(move |_, mut wire| {
            let answer = answer.clone();
            async move {
                while let Some(request) = wire.request().await {
                    wire.send(answer(request)).await;
                }
            }
        })
        .await
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// An upstream that answers its first request whole, its second one only in part, and counts them.
pub(crate) async fn half_answering(whole: &'static str) -> (Upstream, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = requests.clone();
    let upstream = Upstream::start(move |_, mut wire| {
        let count = count.clone();
        async move {
            while wire.request().await.is_some() {
                if count.fetch_add(1, Ordering::SeqCst) == 1 {
                    wire.send("HTTP/1.1 200 OK\r\ncontent-").await;
                    return;
                }
                wire.send(json(whole)).await;
            }
        }
    })
    .await;
    (upstream, requests)
}

/// An upstream that answers with `prefix` only, and then says when its connection was closed on it.
pub(crate) struct Closing {
    pub(crate) upstream: Upstream,
    /// The request has come.
    pub(crate) asked: oneshot::Receiver<()>,
    pub(crate) closed: oneshot::Receiver<()>,
}

pub(crate) async fn closing(prefix: &'static str) -> Closing {
    let (tell_asked, asked) = oneshot::channel();
    let (tell_closed, closed) = oneshot::channel();
    let tell = Arc::new(Mutex::new(Some((tell_asked, tell_closed))));
    let upstream = Upstream::start(move |_, mut wire| {
        let tell = tell.clone();
        async move {
            wire.request().await.unwrap();
            let (asked, closed) = tell.lock().unwrap().take().unwrap();
            let _ = asked.send(());
            wire.send(prefix).await;
            wire.closed().await;
            let _ = closed.send(());
        }
    })
    .await;
    Closing { upstream, asked, closed }
}

/// A JSON answer with a length.
pub(crate) fn json(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// The head of an event stream.
pub(crate) const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

pub(crate) fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// A text delta of an Anthropic stream.
pub(crate) fn delta(text: &str) -> String {
    format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":\
         {{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
    )
}

/// What comes before the deltas.
pub(crate) const BEGIN: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\
    \"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":\
    {\"input_tokens\":1,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\
    \"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";

/// What comes after them.
pub(crate) const END: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":\
    {\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

/// A whole answer that is no stream.
pub(crate) const WHOLE: &str = "{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\
    \"content\":[{\"type\":\"text\",\"text\":\"hello\"}],\"stop_reason\":\"end_turn\",\
    \"usage\":{\"input_tokens\":1,\"output_tokens\":1}}";

/// An Anthropic request.
pub(crate) fn messages(stream: bool) -> String {
    let body = format!(
        "{{\"model\":\"m\",\"max_tokens\":9,\"stream\":{stream},\"messages\":[{{\"role\":\"user\",\"content\":\"hi\"}}]}}"
    );
    format!(
        "POST /v1/messages HTTP/1.1\r\nHost: agent.example\r\nContent-Type: application/json\r\n\
         X-Api-Key: k\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
