//! One attempt at one exchange: the request out, the head of the answer in.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use pingora::prelude::timeout;
use pingora::protocols::http::client::HttpSession;
use pingora::{Error, ErrorType, Result};

use super::headers::Outline;
use super::lease::Lease;
use super::outgoing::Outgoing;
use super::target::Target;

/// A body goes out in pieces of this size, between which the upstream is listened to.
const PIECE: usize = 256 << 10;
/// After a request could not be written, how long the upstream may take to say why.
pub(in crate::host::pingora) const LAST_WORDS: Duration = Duration::from_secs(2);

/// The limits of time of one route.
#[derive(Clone, Copy)]
pub(in crate::host::pingora) struct Times {
    pub(in crate::host::pingora) first_byte: Duration,
    pub(in crate::host::pingora) idle: Duration,
}

/// Sends the request and reads the head of the final answer, which `lease` then holds.
pub(super) async fn send(
    lease: &mut Lease,
    outline: &Outline,
    target: &Target,
    body: &mut Outgoing,
    times: Times,
) -> Result<()> {
    let session = lease.session().ok_or_else(|| Error::new(ErrorType::InternalError))?;
    session.set_write_timeout(Some(times.idle));
    write_head(session, outline, target, body.is_empty()).await?;
    let switches = outline.switches;
    let answered = match write_body(session, body, switches).await {
        Ok(answered) => answered,
        Err(error)
            if matches!(error.etype(), ErrorType::WriteError | ErrorType::WriteTimedout | ErrorType::H2Error) =>
        {
            return last_words(session, switches, error).await;
        }
        Err(error) => return Err(error),
    };
    if answered {
        return Ok(());
    }
    match timeout(times.first_byte, read_head(session, switches)).await {
        Ok(read) => read,
        Err(_) => Error::e_explain(ErrorType::ReadTimedout, "no answer yet"),
    }
}

/// Sends the head. `bodiless`: it is all of the request.
pub(in crate::host::pingora) async fn write_head(
    session: &mut HttpSession,
    outline: &Outline,
    target: &Target,
    bodiless: bool,
) -> Result<()> {
    let (authority, path) = (target.authority(), outline.path(|rest| target.path(rest)));
    match session {
        HttpSession::H2(stream) => {
            let head = outline
                .http2(authority, &path)
                .map_err(|error| Error::because(ErrorType::InternalError, "building the request", error))?;
            stream.write_request_header(head, bodiless)
        }
        session => session.write_request_header(outline.http1(authority, &path)?).await,
    }
}

/// Sends the body; `true` when the final answer's head came meanwhile. A refusal that comes early ends the upload.
async fn write_body(session: &mut HttpSession, body: &mut Outgoing, switches: bool) -> Result<bool> {
    let mut answered = false;
    let mut index = 0;
    while let Some(piece) = body.piece(index).await {
        let mut piece =
            piece.map_err(|error| Error::because(ErrorType::ReadError, "the request's body", error).into_down())?;
        index += 1;
        while !piece.is_empty() {
            session.write_request_body(piece.split_to(piece.len().min(PIECE)), false).await?;
            if !answered && !piece.is_empty() {
                answered = head_is_there(session, switches)?;
            }
            if answered && refused(session) {
                return Ok(true);
            }
        }
    }
    session.finish_request_body().await?;
    Ok(answered)
}

fn refused(session: &HttpSession) -> bool {
    session.response_header().is_some_and(|head| head.status.is_client_error() || head.status.is_server_error())
}

/// Looks, without waiting, for the final answer's head.
fn head_is_there(session: &mut HttpSession, switches: bool) -> Result<bool> {
    // Without the budget of tokio's cooperative scheduling, which would say "not yet" of what is there.
    match tokio::task::unconstrained(read_head(session, switches)).now_or_never() {
        Some(read) => read.map(|()| true),
        None => Ok(false),
    }
}

/// Reads heads until one is final. Can be dropped and called again. `switches`: a switch of protocols was asked for.
async fn read_head(session: &mut HttpSession, switches: bool) -> Result<()> {
    loop {
        session.read_response_header().await?;
        let status = session.response_header().map(|head| head.status.as_u16());
        match status {
            Some(101) if switches => return Ok(()),
            Some(101) => return Error::e_explain(ErrorType::InvalidHTTPHeader, "an upgrade that was not asked for"),
            Some(100..=199) => {}
            _ => return Ok(()),
        }
    }
}

/// The upstream stopped reading: often it has answered already, with the reason.
async fn last_words(session: &mut HttpSession, switches: bool, error: Box<Error>) -> Result<()> {
    match tokio::time::timeout(LAST_WORDS, read_head(session, switches)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(read)) if matches!(read.etype(), ErrorType::ReadError | ErrorType::ConnectionClosed) => Err(read),
        _ => Err(error),
    }
}

/// What one read of an answer's body gave. The lease comes back as long as there is more to read.
pub(super) enum Read {
    Data(Bytes, Option<Lease>),
    Trailers(http::HeaderMap),
    End,
    Failed(Box<Error>),
}

/// Reads on. At the end the connection is kept for another exchange.
pub(super) async fn read(mut lease: Lease) -> Read {
    loop {
        let Some(session) = lease.session() else { return Read::End };
        match session.read_response_body().await {
            Ok(Some(data)) if data.is_empty() => {}
            Ok(Some(data)) => {
                // Only HTTP/1.1 knows its end here: an HTTP/2 stream may still have trailers.
                if matches!(session, HttpSession::H1(_)) && session.response_done() {
                    lease.finish().await;
                    return Read::Data(data, None);
                }
                return Read::Data(data, Some(lease));
            }
            Ok(None) => {
                let trailers = match session {
                    HttpSession::H2(stream) => stream.read_trailers().await,
                    _ => Ok(None),
                };
                return match trailers {
                    Ok(trailers) => {
                        lease.finish().await;
                        trailers.map_or(Read::End, Read::Trailers)
                    }
                    Err(error) => Read::Failed(error),
                };
            }
            Err(error) => return Read::Failed(error),
        }
    }
}
