//! What passes uninspected: both bodies are carried as they come, at the same time. Upgrades have a way of their own, see
//! [`super::upgrade`].

use std::result::Result as StdResult;

use bytes::Bytes;
use http::{StatusCode, Version, header, request};
use pingora::http::ResponseHeader;
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::client::HttpSession;
use pingora::{Error, ErrorSource, ErrorType, Result};

use super::gateway::Mount;
use super::respond;
use super::upstream::exchange::{LAST_WORDS, Times, write_head};
use super::upstream::headers::{self, Outline};
use super::upstream::{Lease, MAX_RETRIES, Target, failure};
use crate::upstream::UpstreamError;

/// Sends a request on and its answer back. `rest` is the path behind the route's prefix. `Ok(Err)`: the upstream failed; a part
/// of its answer may have been written.
///
/// # Errors
/// The client went away.
pub(super) async fn run(
    session: &mut ServerSession,
    mount: &Mount,
    head: request::Parts,
    rest: &str,
) -> Result<StdResult<(), UpstreamError>> {
    let length = if session.is_body_empty() { Some(0) } else { respond::declared_length(session) };
    let outline = mount.upstream.outline(head, length).passing();
    session.enable_retry_buffering();
    let mut retries = 0;
    loop {
        let (mut lease, target, reused) = match mount.upstream.connect().await {
            Ok(connected) => connected,
            Err(failure) => return Ok(Err(failure)),
        };
        let passing = Passing { mount, rest, outline: &outline, target, times: mount.upstream.times() };
        match passing.attempt(session, &mut lease).await {
            Ok(Upload::Done) => {
                lease.finish().await;
                return Ok(Ok(()));
            }
            // The upstream has said all that it will: nobody waits for what the client is still sending.
            Ok(Upload::Running | Upload::Broken(_)) => {
                drop(lease);
                respond::linger(session).await;
                return Ok(Ok(()));
            }
            Err(error) if *error.esource() == ErrorSource::Downstream => return Err(error),
            Err(error) if retries < MAX_RETRIES && repeatable(session) && failure::may_retry(&error, reused) => {
                retries += 1;
                lease.failed(&error);
            }
            Err(error) => return Ok(Err(failure::explain(target.authority(), &error))),
        }
    }
}

/// Whether the request can be sent once more: all of its body so far is there, and the client has no answer.
fn repeatable(session: &ServerSession) -> bool {
    !session.retry_buffer_truncated() && respond::answered(session).is_none()
}

/// One attempt.
struct Passing<'a> {
    mount: &'a Mount,
    rest: &'a str,
    outline: &'a Outline,
    target: &'a Target,
    times: Times,
}

impl Passing<'_> {
    /// Returns how far the request's body has come.
    async fn attempt(&self, session: &mut ServerSession, lease: &mut Lease) -> Result<Upload> {
        let upstream = lease.session().ok_or_else(|| Error::new(ErrorType::InternalError))?;
        upstream.set_write_timeout(Some(self.times.idle));
        upstream.set_read_timeout(Some(self.times.first_byte));
        let mut upload = Upload::begin(session, upstream, self).await.map_err(|error| error.into_up())?;
        self.pass_head(session, upstream, &mut upload).await?;
        upstream.set_read_timeout(Some(self.times.idle));
        pass_body(session, upstream, &mut upload).await?;
        Ok(upload)
    }

    /// Passes on heads until one is final.
    async fn pass_head(
        &self,
        session: &mut ServerSession,
        upstream: &mut HttpSession,
        upload: &mut Upload,
    ) -> Result<()> {
        loop {
            tokio::select! {
                biased;
                read = upstream.read_response_header() => read.map_err(|error| upload.why(error))?,
                piece = session.read_body_or_idle(upload.is_done()), if !upload.is_broken() => {
                    upload.take(piece, session, upstream).await?;
                    continue;
                }
            }
            let Some(mut head) = upstream.response_header().cloned() else { continue };
            if head.status == StatusCode::SWITCHING_PROTOCOLS {
                return Error::e_explain(ErrorType::InvalidHTTPHeader, "an upgrade that was not asked for")
                    .map_err(|error| error.into_up());
            }
            if !head.status.is_informational() {
                self.adapt(&mut head, session, upstream)?;
                return session.write_response_header(Box::new(head)).await.map_err(|error| error.into_down());
            }
            // HTTP/1.0 does not know them.
            if session.req_header().version >= Version::HTTP_11 {
                respond::inform(session, head).await?;
            }
        }
    }

    /// Removes from an answer what concerns the upstream's connection, frames its body for the client, and sends clients to our
    /// metadata of the route's server instead of its own.
    fn adapt(&self, head: &mut ResponseHeader, session: &ServerSession, upstream: &HttpSession) -> Result<()> {
        let chunks = session.req_header().version == Version::HTTP_11 && !respond::is_bodiless(session, head.status);
        for name in headers::hop_by_hop(&head.headers) {
            if name != header::TRANSFER_ENCODING || !chunks {
                head.remove_header(&name);
            }
        }
        // pingora passes trailers from HTTP/2 to HTTP/2 only: no others may be promised.
        if !session.is_http2() || upstream.as_http1().is_some() {
            head.remove_header(&header::TRAILER);
        }
        head.set_version(Version::HTTP_11);
        let is_framed =
            [header::CONTENT_LENGTH, header::TRANSFER_ENCODING].iter().any(|name| head.headers.contains_key(name));
        if chunks && !is_framed {
            head.insert_header(header::TRANSFER_ENCODING, "chunked")?;
        }
        let path = self.rest.split('?').next().unwrap_or_default();
        let public = self.mount.public.as_ref();
        if let Some(challenges) = public.and_then(|public| public.challenges(head.status, &head.headers, path)) {
            head.remove_header(&header::WWW_AUTHENTICATE);
            for challenge in challenges {
                head.append_header(header::WWW_AUTHENTICATE, challenge)?;
            }
        }
        Ok(())
    }
}

/// Passes on the body of an answer.
async fn pass_body(session: &mut ServerSession, upstream: &mut HttpSession, upload: &mut Upload) -> Result<()> {
    let is_http1 = upstream.as_http1().is_some();
    // Only HTTP/1.1 knows its end before it is read: an HTTP/2 stream may still have trailers.
    let mut over = is_http1 && upstream.response_done();
    if over {
        return respond::write(session, Bytes::new(), true).await;
    }
    while !over {
        tokio::select! {
            biased;
            data = upstream.read_response_body() => {
                let data = data.map_err(|error| upload.why(error))?;
                over = data.is_none() || is_http1 && upstream.response_done();
                respond::write(session, data.unwrap_or_default(), over && is_http1).await?;
            }
            piece = session.read_body_or_idle(upload.is_done()), if !upload.is_broken() => {
                upload.take(piece, session, upstream).await?;
            }
        }
    }
    if let HttpSession::H2(stream) = upstream {
        match stream.read_trailers().await.map_err(|error| error.into_up())? {
            Some(trailers) if session.is_http2() => {
                session.write_response_trailers(trailers).await.map_err(|error| error.into_down())?;
            }
            _ => respond::write(session, Bytes::new(), true).await?,
        }
    }
    Ok(())
}

/// How far the request's body has come.
enum Upload {
    Running,
    Done,
    /// The upstream did not take it. Often it has said why.
    Broken(Box<Error>),
}

impl Upload {
    /// Sends the head, and of the body what an earlier attempt has read.
    async fn begin(session: &mut ServerSession, upstream: &mut HttpSession, passing: &Passing<'_>) -> Result<Self> {
        let is_empty = session.is_body_empty();
        write_head(upstream, passing.outline, passing.target, is_empty).await?;
        let mut upload = Upload::Running;
        let over = session.is_body_done();
        upload.send(session.get_retry_buffer(), over, upstream).await;
        Ok(upload)
    }

    fn is_done(&self) -> bool {
        matches!(self, Upload::Done)
    }

    fn is_broken(&self) -> bool {
        matches!(self, Upload::Broken(_))
    }

    /// Passes on what was read from the client.
    ///
    /// # Errors
    /// The client went away, or sent what is not valid HTTP.
    async fn take(
        &mut self,
        piece: Result<Option<Bytes>>,
        session: &mut ServerSession,
        upstream: &mut HttpSession,
    ) -> Result<()> {
        let piece = piece.map_err(|error| error.into_down())?;
        if self.is_done() {
            return Err(Error::new(ErrorType::ConnectionClosed).into_down());
        }
        // Before the end of an HTTP/2 body there may be trailers, which pingora skips.
        let over = piece.is_none() || session.is_body_done();
        self.send(piece, over, upstream).await;
        Ok(())
    }

    async fn send(&mut self, piece: Option<Bytes>, over: bool, upstream: &mut HttpSession) {
        let sent = async {
            if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                upstream.write_request_body(piece, false).await?;
            }
            if over {
                upstream.finish_request_body().await?;
                return Ok(Upload::Done);
            }
            Ok(Upload::Running)
        };
        *self = sent.await.unwrap_or_else(|error: Box<Error>| {
            upstream.set_read_timeout(Some(LAST_WORDS));
            Upload::Broken(error)
        });
    }

    /// Why there is no answer, or no more of it.
    fn why(&mut self, read: Box<Error>) -> Box<Error> {
        let is_closed = matches!(read.etype(), ErrorType::ReadError | ErrorType::ConnectionClosed);
        match std::mem::replace(self, Upload::Running) {
            Upload::Broken(write) if !is_closed => write,
            _ => read,
        }
        .into_up()
    }
}
