//! A connection whose heads go out with their bodies.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::{SslDigest, TlsRef};
use pingora::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What is written waits for what follows up to this many bytes: a head with a small body.
const MAX_WAITING: usize = 16 << 10;

/// What is written goes out when it is flushed. pingora flushes the head of a request before its body, which costs a call of
/// the kernel, a packet, and a wake-up of the server for a request that it cannot answer yet: that flush is passed over, so that
/// the head waits until the body is written or the answer is read.
#[derive(Debug)]
pub(super) struct Corked {
    stream: Stream,
    waiting: Vec<u8>,
    /// The next flush is that of a head.
    corked: bool,
}

impl Corked {
    /// A connection to a server.
    pub(super) fn new(stream: Stream) -> Self {
        Corked { stream, waiting: Vec::new(), corked: true }
    }

    /// A connection from a client, which waits for what is flushed.
    pub(super) fn uncorked(stream: Stream) -> Self {
        Corked { stream, waiting: Vec::new(), corked: false }
    }

    /// Makes it ready for another request.
    pub(super) fn cork(&mut self) {
        self.corked = true;
    }

    /// Whether nothing has come and the other side has not closed it. Of what has come, a byte is lost.
    pub(super) fn is_quiet(&mut self) -> bool {
        let mut byte = [0];
        let mut context = Context::from_waker(std::task::Waker::noop());
        Pin::new(&mut self.stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte)).is_pending()
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.waiting))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.waiting.drain(..written);
        }
        // A connection on which nothing is written takes no memory for it.
        self.waiting = Vec::new();
        Poll::Ready(Ok(()))
    }

    fn poll_uncorked(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_waiting(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }
}

impl AsyncRead for Corked {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.waiting.is_empty() {
            ready!(self.poll_uncorked(cx))?;
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Corked {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.waiting.len() + buf.len() <= MAX_WAITING {
            self.waiting.extend_from_slice(buf);
            return Poll::Ready(Ok(buf.len()));
        }
        ready!(self.poll_waiting(cx))?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.corked) {
            return Poll::Ready(Ok(()));
        }
        self.poll_uncorked(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_waiting(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

// What else pingora asks of a connection is asked of the one within.

#[async_trait]
impl Shutdown for Corked {
    async fn shutdown(&mut self) {
        // What cannot be written any more is lost with the connection.
        let _ = std::future::poll_fn(|cx| self.poll_waiting(cx)).await;
        self.stream.shutdown().await;
    }
}

impl UniqueID for Corked {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl Ssl for Corked {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.stream.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.selected_alpn_proto()
    }
}

#[async_trait]
impl Peek for Corked {
    async fn try_peek(&mut self, buf: &mut [u8]) -> io::Result<bool> {
        self.stream.try_peek(buf).await
    }
}

impl GetTimingDigest for Corked {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }
}

impl GetProxyDigest for Corked {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl GetSocketDigest for Corked {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}

#[cfg(test)]
mod tests {
    use pingora::protocols::l4::stream::Stream as Plain;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn pair() -> (Corked, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (far, _) = listener.accept().await.unwrap();
        (Corked::new(Box::new(Plain::from(near))), far)
    }

    /// What has come to the other side so far.
    async fn came(far: &mut TcpStream) -> Vec<u8> {
        let mut all = vec![0; 1 << 20];
        let len = far.read(&mut all).await.unwrap();
        all.truncate(len);
        all
    }

    #[tokio::test]
    async fn a_head_goes_with_its_body() {
        let (mut near, mut far) = pair().await;
        for _ in 0..2 {
            near.cork();
            near.write_all(b"head ").await.unwrap();
            near.flush().await.unwrap();
            assert_eq!(far.try_read(&mut [0; 8]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            near.write_all(b"body").await.unwrap();
            near.flush().await.unwrap();
            assert_eq!(came(&mut far).await, b"head body");
            near.write_all(b"later").await.unwrap();
            near.flush().await.unwrap();
            assert_eq!(came(&mut far).await, b"later");
        }
    }

    #[tokio::test]
    async fn a_head_goes_when_the_answer_is_waited_for() {
        let (mut near, mut far) = pair().await;
        near.write_all(b"head").await.unwrap();
        near.flush().await.unwrap();
        let answer = tokio::spawn(async move {
            assert_eq!(came(&mut far).await, b"head");
            far.write_all(b"yes").await.unwrap();
        });
        let mut read = [0; 3];
        near.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"yes");
        answer.await.unwrap();
    }

    #[tokio::test]
    async fn much_does_not_wait_and_stays_in_order() {
        let (mut near, mut far) = pair().await;
        let body: Vec<u8> = (0..MAX_WAITING * 3).map(|at| at as u8).collect();
        let reader = tokio::spawn(async move {
            let mut all = Vec::new();
            far.read_to_end(&mut all).await.unwrap();
            all
        });
        near.write_all(b"head").await.unwrap();
        near.flush().await.unwrap();
        near.write_all(&body).await.unwrap();
        AsyncWriteExt::shutdown(&mut near).await.unwrap();
        let all = reader.await.unwrap();
        assert!(all.starts_with(b"head") && all[4..] == body);
    }

    #[tokio::test]
    async fn a_quiet_connection_is_told_from_a_closed_one() {
        let (mut near, far) = pair().await;
        assert!(near.is_quiet());
        drop(far);
        let closed = async {
            while near.is_quiet() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), closed).await.unwrap();
    }
}
