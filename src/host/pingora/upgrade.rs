//! Upgrades: what a client may switch its connection to, and the connection after that.

use std::result::Result as StdResult;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Version, header, request};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::ServerSession;
use pingora::protocols::http::client::HttpSession;
use pingora::{Error, ErrorType, Result};

use super::respond;
use super::upstream::{Lease, RouteUpstream, Switched};
use crate::upstream::UpstreamError;

/// Under these names HTTP itself goes on after the switch (RFC 9110, section 7.8, RFC 2817): requests would follow that
/// are neither routed nor inspected, and get past everything that a route says.
const HTTP_ITSELF: [&str; 3] = ["h2c", "HTTP", "TLS"];

/// The protocols that a request asks to switch to, in its order, without those that may not pass; `None` when none is
/// left, or when the request has a body: then it is answered as if it had not asked, which every client must expect.
pub(super) fn asked_for(session: &mut ServerSession) -> Option<HeaderValue> {
    session.is_body_done().then(|| protocols(session.req_header())).flatten()
}

/// Only HTTP/1.1 has upgrades.
fn protocols(request: &RequestHeader) -> Option<HeaderValue> {
    if request.version != Version::HTTP_11 {
        return None;
    }
    let values = request.headers.get_all(header::UPGRADE).iter();
    let protocols: Vec<&str> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|protocol| !protocol.is_empty() && !is_http(protocol))
        .collect();
    (!protocols.is_empty()).then(|| HeaderValue::try_from(protocols.join(", ")).ok()).flatten()
}

/// Asks the upstream for a switch, and joins both sides until one of them closes. An upstream that does not want to switch
/// has its answer passed on. `Ok(Err)`: there was no answer.
///
/// # Errors
/// The client went away, or the connection broke after its answer had begun.
pub(super) async fn run(
    session: &mut ServerSession,
    upstream: &RouteUpstream,
    head: request::Parts,
    protocols: HeaderValue,
) -> Result<StdResult<(), UpstreamError>> {
    let switched = respond::unless_gone(session, || upstream.switch(head, protocols)).await?;
    match switched {
        Err(error) => return Ok(Err(error)),
        Ok(Switched::Refused(response)) => respond::answer(session, response).await?,
        Ok(Switched::Done(head, lease)) => join(session, head, lease, upstream.silence()).await?,
    }
    Ok(Ok(()))
}

fn is_http(protocol: &str) -> bool {
    let name = protocol.split('/').next().unwrap_or_default().trim();
    HTTP_ITSELF.iter().any(|http| http.eq_ignore_ascii_case(name))
}

/// Carries bytes both ways until one side closes.
async fn join(
    session: &mut ServerSession,
    head: Box<ResponseHeader>,
    mut lease: Lease,
    silence: Duration,
) -> Result<()> {
    let client = session;
    let Some(HttpSession::H1(upstream)) = lease.session() else {
        return Error::e_explain(ErrorType::InternalError, "an upgrade without HTTP/1.1");
    };
    client.write_response_header(head).await.map_err(|error| error.into_down())?;
    upstream.maybe_upgrade_body_writer();
    loop {
        let said = tokio::select! {
            said = client.read_request_body() => Said::Client(said.map_err(|error| error.into_down())?),
            said = upstream.read_body_bytes() => Said::Upstream(said.map_err(|error| error.into_up())?),
            () = tokio::time::sleep(silence) => return Error::e_explain(ErrorType::ReadTimedout, "after an upgrade"),
        };
        match said {
            Said::Client(Some(data)) => {
                upstream.write_body(&data).await.map_err(|error| error.into_up())?;
            }
            Said::Upstream(Some(data)) => {
                client.write_response_body(data, false).await.map_err(|error| error.into_down())?;
            }
            // The end of one direction is the end of both: no protocol in use goes on half closed.
            Said::Client(None) | Said::Upstream(None) => {
                return client.write_response_body(Bytes::new(), true).await.map_err(|error| error.into_down());
            }
        }
    }
}

/// What came from which side; `None`: it closed.
enum Said {
    Client(Option<Bytes>),
    Upstream(Option<Bytes>),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(values: &[&str], version: Version) -> Option<String> {
        let mut request = RequestHeader::build("GET", b"/", None).unwrap();
        request.set_version(version);
        for value in values {
            request.append_header(header::UPGRADE, *value).unwrap();
        }
        protocols(&request).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn every_protocol_passes_but_http() {
        for (values, expected) in [
            (&[] as &[_], None),
            (&["websocket"], Some("websocket")),
            (&["WebSocket , foo/2", "bar"], Some("WebSocket, foo/2, bar")),
            (&["h2c"], None),
            (&["H2C, HTTP/2.0, tls/1.2, HTTP /3, ,"], None),
            (&["h2c, foo"], Some("foo")),
            (&["h2c-like, httpx/1"], Some("h2c-like, httpx/1")),
        ] {
            assert_eq!(asked(values, Version::HTTP_11).as_deref(), expected, "{values:?}");
        }
        assert_eq!(asked(&["websocket"], Version::HTTP_10), None);
        assert_eq!(asked(&["websocket"], Version::HTTP_2), None);
    }
}
