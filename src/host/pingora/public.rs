//! A route as the outside knows it, where an MCP server behind it speaks of its own address: in the metadata that clients look
//! for to log in, and in the challenge that sends them there (RFC 9728).

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header, request};
use http_body_util::{BodyExt as _, Limited};

use super::upstream::RouteUpstream;
use super::upstream::headers::Place;
use crate::body::Body;
use crate::drive::rebodied;
use crate::problem::problem;
use crate::upstream::Upstream as _;
use crate::wire::mcp::{PROTECTED_RESOURCE, with_metadata_at, with_resource};

/// The largest metadata, in bytes.
const MAX_METADATA: usize = 1 << 20;

/// Where the outside reaches a route.
#[derive(Clone, Debug)]
pub(super) struct Public {
    /// Scheme, host and port.
    origin: String,
    /// The route's path prefix: empty for `/`.
    prefix: String,
}

impl Public {
    pub(super) fn new(origin: &str, prefix: &str) -> Self {
        Public { origin: origin.to_owned(), prefix: prefix.to_owned() }
    }

    /// The address of what is at `rest` behind the prefix.
    fn resource(&self, rest: &str) -> String {
        format!("{}{}{}", self.origin, self.prefix, without_slash(rest))
    }

    /// The address of its metadata.
    fn metadata(&self, rest: &str) -> String {
        format!("{}{PROTECTED_RESOURCE}{}{}", self.origin, self.prefix, without_slash(rest))
    }

    /// The challenges of an answer to a request for `rest`, if they send clients to another address than this one.
    pub(super) fn challenges(&self, status: StatusCode, headers: &HeaderMap, rest: &str) -> Option<Vec<HeaderValue>> {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return None;
        }
        let url = self.metadata(rest);
        let mut changed = false;
        let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter().map(|challenge| {
            let rewritten = challenge.to_str().ok().and_then(|text| with_metadata_at(text, &url));
            match rewritten.and_then(|text| HeaderValue::try_from(text).ok()) {
                Some(rewritten) => {
                    changed = true;
                    rewritten
                }
                None => challenge.clone(),
            }
        });
        let challenges: Vec<_> = challenges.collect();
        changed.then_some(challenges)
    }

    /// Puts the challenges into an answer.
    pub(super) fn rewrite<B>(&self, response: &mut Response<B>, rest: &str) {
        if let Some(challenges) = self.challenges(response.status(), response.headers(), rest) {
            let headers = response.headers_mut();
            headers.remove(header::WWW_AUTHENTICATE);
            for challenge in challenges {
                headers.append(header::WWW_AUTHENTICATE, challenge);
            }
        }
    }

    /// Asks the server for the metadata of what is at `rest`, and puts our address of it in the place of its own. Where the
    /// server has metadata of its root only, it is that.
    pub(super) async fn serve(&self, upstream: &RouteUpstream, head: &request::Parts, rest: &str) -> Response<Body> {
        let rest = without_slash(rest);
        let mut response = ask(upstream, head, rest, Place::Behind(PROTECTED_RESOURCE)).await;
        if response.status() == StatusCode::NOT_FOUND {
            let root = ask(upstream, head, "", Place::At(PROTECTED_RESOURCE)).await;
            response = if root.status().is_success() { root } else { response };
        }
        if response.status() != StatusCode::OK || head.method == Method::OPTIONS {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        rebodied::strip_of_body(&mut parts.headers);
        if head.method == Method::HEAD {
            return Response::from_parts(parts, body);
        }
        let read = Limited::new(body, MAX_METADATA).collect().await.map(|body| body.to_bytes());
        let rewritten = read.map_err(|error| error.to_string()).and_then(|metadata| self.rewritten(&metadata, rest));
        match rewritten {
            Ok(metadata) => {
                parts.headers.insert(header::CONTENT_LENGTH, metadata.len().into());
                Response::from_parts(parts, metadata.into())
            }
            Err(why) => {
                let detail =
                    format!("the server's OAuth metadata cannot be told with this hookgate's address in it: {why}");
                problem(StatusCode::BAD_GATEWAY, &detail)
            }
        }
    }

    fn rewritten(&self, metadata: &Bytes, rest: &str) -> Result<Bytes, String> {
        with_resource(metadata, &self.resource(rest)).map_err(|error| error.to_string())
    }
}

/// The path behind the metadata's place, if a request is for metadata.
pub(super) fn metadata_of<'a>(method: &Method, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(PROTECTED_RESOURCE)?;
    let asks = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    (asks && (rest.is_empty() || rest.starts_with('/'))).then_some(rest)
}

async fn ask(upstream: &RouteUpstream, head: &request::Parts, rest: &str, place: Place) -> Response<Body> {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = head.method.clone();
    *request.headers_mut() = head.headers.clone();
    for name in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE] {
        request.headers_mut().remove(name);
    }
    request.headers_mut().insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    match Uri::try_from(if rest.is_empty() { "/" } else { rest }) {
        Ok(uri) => *request.uri_mut() = uri,
        Err(_) => return problem(StatusCode::BAD_REQUEST, super::gateway::NO_URI),
    }
    request.extensions_mut().insert(place);
    match upstream.call(request).await {
        Ok(response) => response,
        Err(failure) => problem(failure.status(), &failure.to_string()),
    }
}

fn without_slash(rest: &str) -> &str {
    if rest == "/" { "" } else { rest }
}
