//! A client that does not read.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::testing::Message;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::stage::{Outcome, Setting, says};

/// What the upstream would write if it were let. Far more than the sockets on the way and hookgate may keep.
const FLOOD: usize = 128 << 20;
/// What they may: hookgate's limit here, and four socket buffers as large as Linux makes them.
const MOST: usize = 32 << 20;
/// A write that takes longer is stalled. Nothing is wrong when it is not: the upstream just goes on.
const STALL: Duration = Duration::from_millis(300);

/// How far the flood has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    written: usize,
    stalled: bool,
    left: bool,
}

/// Floods whoever says `flood` with one endless text, and gives everybody else a short answer.
struct Flooding {
    address: SocketAddr,
    progress: watch::Receiver<Progress>,
    _tasks: JoinSet<()>,
}

impl Flooding {
    async fn start(begin: &Message) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(64 << 10)?;
        socket.bind(([127, 0, 0, 1], 0).into())?;
        let listener: TcpListener = socket.listen(64)?;
        let address = listener.local_addr()?;
        let (tell, progress) = watch::channel(Progress::default());
        let (tell, begin) = (Arc::new(tell), begin.sse());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                serving.spawn(serve(stream, begin.clone(), tell.clone()));
            }
        });
        Ok(Flooding { address, progress, _tasks: tasks })
    }

    async fn reaches(&self, wanted: impl Fn(&Progress) -> bool) -> Result<Progress, hookgate::BoxError> {
        Ok(*self.progress.clone().wait_for(wanted).await?)
    }
}

async fn serve(mut stream: TcpStream, begin: Bytes, tell: Arc<watch::Sender<Progress>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(head.as_bytes()).await;
    if !request.windows(5).any(|window| window == b"flood") {
        let _ = stream.write_all(&says("msg_2", "Hello.").sse()).await;
        return;
    }
    // Without the end of the message, which must not come before the flood.
    let end = begin.windows(20).position(|window| window == b"event: message_delta").unwrap_or(begin.len());
    let _ = stream.write_all(&begin[..end]).await;
    let block = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
    let _ = stream.write_all(block.as_bytes()).await;
    let words = "words ".repeat(1_000);
    let flood = format!(
        "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{words}\"}}}}\n\n"
    );
    loop {
        match tokio::time::timeout(STALL, stream.write_all(flood.as_bytes())).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return tell.send_modify(|progress| progress.left = true),
            // What was written of it is lost, and so is the stream: it only has to be full.
            Err(_) => tell.send_modify(|progress| progress.stalled = true),
        }
        tell.send_modify(|progress| progress.written += flood.len());
        if tell.borrow().written >= FLOOD {
            return;
        }
    }
}

/// Asks and does not read.
async fn ask(url: &str) -> Result<TcpStream, hookgate::BoxError> {
    let url: http::Uri = url.parse()?;
    let address: SocketAddr = url.authority().ok_or("no authority")?.as_str().parse()?;
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(64 << 10)?;
    let mut client = socket.connect(address).await?;
    let body = r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"flood"}]}"#;
    let path = url.path().trim_end_matches('/');
    let head = format!(
        "POST {path}/v1/messages HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(client)
}

/// Its call is decided, the upstream is held back instead of the memory filled, others are served, and when it leaves the
/// upstream is left.
async fn stalls(at: Setting, begin: Message, asked: usize) -> Outcome {
    let upstream = Flooding::start(&begin).await?;
    let plan = at.model([] as [Message; 0]).upstream(&format!("http://{}", upstream.address)).hooks(["PreToolUse"]);
    let stage = plan.limits(|limits| limits.max_held_bytes = 256 << 10).start().await?;
    let client = ask(&stage.url).await?;
    stage.policy.at_least(asked).await;
    let full = upstream.reaches(|progress| progress.stalled || progress.written >= FLOOD).await?;
    assert!(full.written < MOST, "{full:?}");

    assert_eq!(stage.agent().request_for("hi").await?.text(), "Hello.");
    assert!(!upstream.progress.borrow().left);
    drop(client);
    let left = upstream.reaches(|progress| progress.left || progress.written >= FLOOD).await?;
    assert!(left.left && left.written < MOST, "{left:?}");
    assert_eq!(stage.policy.asked().len(), asked);
    Ok(())
}

pub(super) async fn a_client_that_never_reads_holds_up_itself_alone(at: Setting) -> Outcome {
    stalls(at, Message::new("msg_1").tool("toolu_1", "a", r#"{"x":1}"#), 1).await
}

/// The same where nothing was ever held.
pub(super) async fn nor_does_one_that_gets_text_alone(at: Setting) -> Outcome {
    stalls(at, says("msg_1", "Hello."), 0).await
}
