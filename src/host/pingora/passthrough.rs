//! What passes uninspected goes through pingora's own phases, which stream both ways, and know trailers between two sides
//! that speak HTTP/2. Upgrades have a way of their own, see [`super::upgrade`].

use std::sync::Arc;

use http::{HeaderName, StatusCode, Version, header};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};

use super::gateway::Mount;
use super::upstream::headers;
use super::upstream::{Tried, failure};
use crate::drive::is_own;
use crate::upstream::UpstreamError;

/// How often a request is sent again after a connection from the pool turned out to be closed.
const MAX_RETRIES: usize = 2;

/// One request that passes: what its phases have to know of each other.
pub(super) struct Passing {
    pub(super) mount: Arc<Mount>,
    /// What is left of the path without the route's prefix, with the query.
    rest: String,
    tried: Tried,
    retries: usize,
    /// Where it goes now: the server's name, and the path there.
    destination: Option<(String, String)>,
    /// Why there was no connection, in words that are fit for the client.
    pub(super) failure: Option<UpstreamError>,
}

impl Passing {
    pub(super) fn new(mount: Arc<Mount>, rest: String) -> Self {
        Passing { mount, rest, tried: Tried::default(), retries: 0, destination: None, failure: None }
    }

    /// Chooses the server of the next attempt.
    pub(super) async fn peer(&mut self) -> Result<Box<HttpPeer>> {
        match self.mount.upstream.next_peer(&mut self.tried).await {
            Ok((target, peer)) => {
                self.destination = Some((target.authority().to_owned(), target.path(&self.rest)));
                Ok(peer)
            }
            Err(error) => {
                // A failure to connect says more than that there is nothing left to try.
                self.failure.get_or_insert(error);
                Error::e_explain(ErrorType::ConnectError, "no server of the route can be connected to")
                    .map_err(|error| error.into_up())
            }
        }
    }

    /// Makes the client's request the upstream's. pingora has removed what concerns the client's connection.
    pub(super) fn request(&self, request: &mut RequestHeader) -> Result<()> {
        let own: Vec<HeaderName> = request.headers.keys().filter(|name| is_own(name)).cloned().collect();
        for name in &own {
            request.remove_header(name);
        }
        if let Some((authority, path)) = &self.destination {
            request.set_raw_path(path.as_bytes())?;
            request.insert_header(header::HOST, authority.as_str())?;
        }
        // pingora reads the trailers of a request and drops them: none may be promised.
        request.remove_header(&header::TRAILER);
        headers::set_own(request, self.mount.upstream.own_headers())
    }

    /// Removes from an answer what concerns the upstream's connection, and the promise of trailers that will not come:
    /// pingora passes them on from HTTP/2 to HTTP/2 only. `client_http2`: the client speaks that.
    ///
    /// # Errors
    /// The upstream switched to another protocol, which it was not asked for.
    pub(super) fn response(response: &mut ResponseHeader, client_http2: bool) -> Result<()> {
        if response.status == StatusCode::SWITCHING_PROTOCOLS {
            return Error::e_explain(ErrorType::InvalidHTTPHeader, "an upgrade that was not asked for")
                .map_err(|error| error.into_up());
        }
        if !client_http2 || response.version != Version::HTTP_2 {
            response.remove_header(&header::TRAILER);
        }
        for name in headers::hop_by_hop(&response.headers) {
            if name != header::TRANSFER_ENCODING {
                response.remove_header(&name);
            }
        }
        Ok(())
    }

    /// Sends clients to our metadata of the route's server instead of its own.
    pub(super) fn challenges(&self, response: &mut ResponseHeader) -> Result<()> {
        let path = self.rest.split('?').next().unwrap_or_default();
        let public = self.mount.public.as_ref();
        let Some(challenges) = public.and_then(|public| public.challenges(response.status, &response.headers, path))
        else {
            return Ok(());
        };
        response.remove_header(&header::WWW_AUTHENTICATE);
        for challenge in challenges {
            response.append_header(header::WWW_AUTHENTICATE, challenge)?;
        }
        Ok(())
    }

    /// Whether another server may be tried: nothing was sent yet.
    pub(super) fn not_connected(&mut self, mut error: Box<Error>) -> Box<Error> {
        if let Some((authority, _)) = &self.destination {
            self.failure = Some(failure::explain(authority, &error));
        }
        error.set_retry(true);
        error
    }

    /// Whether a request whose exchange failed may be sent again. `repeatable`: pingora has all of its body still.
    pub(super) fn failed(&mut self, mut error: Box<Error>, reused: bool, repeatable: bool) -> Box<Error> {
        let retry = repeatable && self.retries < MAX_RETRIES && failure::may_retry(&error, reused);
        if retry {
            self.retries += 1;
            self.tried = Tried::default();
        } else if let (Some((authority, _)), pingora::ErrorSource::Upstream) = (&self.destination, error.esource()) {
            self.failure = Some(failure::explain(authority, &error));
        }
        error.set_retry(retry);
        error
    }
}
