//! Writes an answer to the client, and notices when the client goes away.

use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version, header};
use http_body::Body;
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;
use pingora::{Error, ErrorType, Result};

use super::upstream::headers::{remove, strip_hop_by_hop};
use crate::body::BoxError;
use crate::linger::{LINGER_BYTES, LINGER_TIME};

/// Frames that are ready together are written together up to this many bytes.
const MAX_WRITE: usize = 64 << 10;
/// A request body this small is read before a refusal is written, so that the connection can go on.
const SMALL_BODY: u64 = 64 << 10;

/// Writes a whole answer, frame by frame as they come. The client's going away ends it and drops the body.
///
/// # Errors
/// The client went away, or the body broke off: then the connection (or stream) must not be used any more, so that the
/// client can tell that the answer is not complete.
pub(super) async fn answer<B>(session: &mut ServerSession, response: Response<B>) -> Result<()>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    let (parts, mut body) = response.into_parts();
    let bodiless = is_bodiless(session, parts.status);
    let head = head(session, parts, body.size_hint().exact(), bodiless)?;
    session.write_response_header(Box::new(head)).await.map_err(|error| error.into_down())?;
    // While a request body is unread, looking for the client would take a byte of it.
    let can_watch = session.is_body_done();
    loop {
        let batch = tokio::select! {
            biased;
            batch = next_batch(&mut body) => batch,
            gone = client_gone(session), if can_watch => return Err(gone),
        };
        let end = batch.end.is_some();
        let data = if bodiless { Bytes::new() } else { batch.data };
        match batch.end {
            Some(End::Failed(error)) => {
                write(session, data, false).await?;
                return Err(Error::because(ErrorType::Custom("the answer broke off"), "", error).into_up());
            }
            // pingora writes no trailers on HTTP/1.1; there the body ends as if there were none.
            Some(End::Trailers(trailers)) if session.is_http2() => {
                write(session, data, false).await?;
                session.write_response_trailers(trailers).await.map_err(|error| error.into_down())?;
            }
            _ => write(session, data, end).await?,
        }
        if end {
            return Ok(());
        }
    }
}

/// Writes a refusal to a request whose body was not read, and lets the client read it.
pub(super) async fn refuse(session: &mut ServerSession, response: Response<crate::body::Body>) -> Result<()> {
    let declared = declared_length(session);
    let waits = waits_for_continue(session);
    if !waits && declared.is_some_and(|length| length <= SMALL_BODY) {
        linger(session).await;
    }
    // With a body still unread, pingora announces `connection: close`.
    answer(session, response).await?;
    if !waits {
        linger(session).await;
    }
    Ok(())
}

/// Like [`refuse`], but the answer does not wait for any of the body, and the connection ends with it. `sending`: the client
/// has begun to send, or will without being asked.
pub(super) async fn refuse_at_once(
    session: &mut ServerSession,
    response: Response<crate::body::Body>,
    sending: bool,
) -> Result<()> {
    session.set_keepalive(None);
    answer(session, response).await?;
    if sending {
        linger(session).await;
    }
    Ok(())
}

/// The status of the answer, once it has begun.
pub(super) fn answered(session: &ServerSession) -> Option<StatusCode> {
    session.response_written().map(|head| head.status).filter(|status| !status.is_informational())
}

/// The length that the request declares.
pub(super) fn declared_length(session: &ServerSession) -> Option<u64> {
    session.req_header().headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// Whether the client holds its body back until it is asked for it.
pub(super) fn waits_for_continue(session: &ServerSession) -> bool {
    let request = session.req_header();
    request.version == Version::HTTP_11
        && request
            .headers
            .get(header::EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Asks a client that waits for it to send its body.
///
/// # Errors
/// The client went away.
pub(super) async fn ask_for_body(session: &mut ServerSession) -> Result<()> {
    inform(session, ResponseHeader::build(StatusCode::CONTINUE, Some(0))?).await
}

/// Writes a head that comes before the answer (1xx).
///
/// # Errors
/// The client went away.
pub(super) async fn inform(session: &mut ServerSession, head: ResponseHeader) -> Result<()> {
    // pingora would take it for an answer to a request that was not read to its end, after which the connection must close.
    session.set_close_on_response_before_downstream_finish(false);
    let written = session.write_response_header(Box::new(head)).await;
    session.set_close_on_response_before_downstream_finish(true);
    written.map_err(|error| error.into_down())
}

/// Waits for an answer, as long as the client does.
///
/// # Errors
/// The client went away; the answer was given up.
pub(super) async fn unless_gone<F: Future>(
    session: &mut ServerSession,
    answer: impl FnOnce() -> F,
) -> Result<F::Output> {
    // A future that is an argument would take its room twice.
    let mut answer = pin!(answer());
    tokio::select! {
        biased;
        answer = &mut answer => Ok(answer),
        gone = client_gone(session) => Err(gone),
    }
}

/// Resolves when the client has closed the connection or reset the stream. The request's body must have been read.
pub(super) async fn client_gone(session: &mut ServerSession) -> Box<Error> {
    match session.read_body_or_idle(true).await {
        Err(error) => error.into_down(),
        Ok(_) => Error::new(ErrorType::ConnectionClosed).into_down(),
    }
}

/// Writes a piece of an answer; `end`: its last.
pub(super) async fn write(session: &mut ServerSession, data: Bytes, end: bool) -> Result<()> {
    session.write_response_body(data, end).await.map_err(|error| error.into_down())
}

/// Reads on for a while, so that a client that is still sending gets to read its answer.
pub(super) async fn linger(session: &mut ServerSession) {
    if session.is_http2() {
        return; // Dropping the stream tells the client to stop, without harm to what was written.
    }
    let drain = async {
        let mut left = LINGER_BYTES;
        while let Ok(Some(data)) = session.read_request_body().await {
            left = left.saturating_sub(data.len());
            if left == 0 {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(LINGER_TIME, drain).await;
}

/// Whether an answer with that status has no body.
pub(super) fn is_bodiless(session: &ServerSession, status: StatusCode) -> bool {
    session.req_header().method == Method::HEAD || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The answer's head with the framing that the client understands.
fn head(
    session: &ServerSession,
    mut parts: http::response::Parts,
    length: Option<u64>,
    bodiless: bool,
) -> Result<ResponseHeader> {
    strip_hop_by_hop(&mut parts.headers);
    if !session.is_http2() {
        // They are not written there (see `answer`), so that they must not be promised.
        remove(&mut parts.headers, &[header::TRAILER]);
    }
    parts.version = Version::HTTP_11;
    if !bodiless && !parts.headers.contains_key(header::CONTENT_LENGTH) {
        match length {
            Some(length) => drop(parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length))),
            // HTTP/1.0 knows no chunks: there the connection's end is the body's end.
            None if session.req_header().version == Version::HTTP_11 => {
                drop(parts.headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked")));
            }
            None => {}
        }
    }
    Ok(ResponseHeader::from(parts))
}

/// What can be written at once.
struct Batch {
    data: Bytes,
    end: Option<End>,
}

enum End {
    Complete,
    Trailers(HeaderMap),
    Failed(BoxError),
}

/// Waits for a frame, then takes what is ready with it. Loses nothing when it is dropped while waiting.
async fn next_batch<B>(body: &mut B) -> Batch
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    std::future::poll_fn(|cx| poll_batch(body, cx)).await
}

fn poll_batch<B>(body: &mut B, cx: &mut Context<'_>) -> Poll<Batch>
where
    B: Body<Data = Bytes, Error = BoxError> + Unpin,
{
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let end = loop {
        let taken = first.len() + joined.len();
        if taken >= MAX_WRITE {
            break None;
        }
        let frame = match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending if taken > 0 => break None,
            pending_or_frame => ready!(pending_or_frame),
        };
        match frame {
            None => break Some(End::Complete),
            Some(Err(error)) => break Some(End::Failed(error)),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if taken == 0 => first = data,
                Ok(data) => {
                    if joined.is_empty() {
                        joined.reserve((first.len() + data.len()).max(MAX_WRITE / 4));
                        joined.extend_from_slice(&std::mem::take(&mut first));
                    }
                    joined.extend_from_slice(&data);
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        break Some(End::Trailers(trailers));
                    }
                }
            },
        }
    };
    let data = if joined.is_empty() { first } else { joined.freeze() };
    Poll::Ready(Batch { data, end })
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    type Item = std::result::Result<Frame<Bytes>, BoxError>;

    fn data(len: usize) -> Item {
        Ok(Frame::data(Bytes::from(vec![b'x'; len])))
    }

    async fn batches(items: Vec<Item>) -> Vec<(usize, bool)> {
        let mut body = StreamBody::new(stream::iter(items));
        let mut batches = Vec::new();
        loop {
            let batch = next_batch(&mut body).await;
            batches.push((batch.data.len(), batch.end.is_some()));
            if batch.end.is_some() {
                return batches;
            }
        }
    }

    #[tokio::test]
    async fn what_is_ready_together_is_one_write() {
        assert_eq!(batches((0..200).map(|_| data(100)).collect()).await, [(20_000, true)]);
        assert_eq!(batches(vec![]).await, [(0, true)]);
        assert_eq!(batches(vec![data(3), Err("gone".into())]).await, [(3, true)]);
    }

    #[tokio::test]
    async fn a_write_is_bounded_and_large_frames_go_alone() {
        assert_eq!(batches(vec![data(MAX_WRITE), data(1)]).await, [(MAX_WRITE, false), (1, true)]);
        let many = batches((0..100).map(|_| data(1000)).collect()).await;
        assert!(many.iter().all(|(len, _)| *len < MAX_WRITE + 1000));
        assert_eq!(many.iter().map(|(len, _)| len).sum::<usize>(), 100_000);
    }

    #[tokio::test]
    async fn what_is_there_does_not_wait_for_what_is_not() {
        let never = stream::pending::<Item>();
        let mut body = StreamBody::new(stream::iter(vec![data(5)]).chain(never));
        let batch = next_batch(&mut body).await;
        assert_eq!((batch.data.len(), batch.end.is_some()), (5, false));
    }
}
