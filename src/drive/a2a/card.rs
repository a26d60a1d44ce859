//! Cards of agents, whose addresses become those of the route.

use std::sync::Arc;

use bytes::Bytes;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderName, Response, StatusCode, Version, header, request};
use http_body_util::{BodyExt, Limited};

use super::forward::unreachable;
use super::refusal;
use crate::Body;
use crate::drive::core::Hookgate;
use crate::drive::decode;
use crate::drive::outgoing;
use crate::drive::rebodied;
use crate::drive::route::Route;
use crate::upstream::Upstream;
use crate::wire::a2a::{Binding, Place, rewrite};
use crate::wire::json::Span;

/// The largest card, in bytes.
const MAX_CARD_BYTES: usize = 1 << 20;

/// With these a client asks for less than the whole card, which may be an older one with other addresses.
const IN_PART: [HeaderName; 5] =
    [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE, header::IF_MATCH, header::IF_RANGE, header::RANGE];

/// A route, and how a client got to it.
#[derive(Clone, Debug)]
pub(super) struct OwnPlace {
    origin: String,
    route: Arc<Route>,
}

/// How a client got to a route: the origin that its operator names, else the one that the request itself is for. `None`: the
/// request names none, or hookgate is on the client's side, where all addresses are right as they are.
pub(super) fn place(route: &Arc<Route>, head: &request::Parts) -> Option<OwnPlace> {
    let origin = match &route.public_origin {
        Some(origin) => origin.to_string(),
        None => {
            let (uri, extensions) = (&head.uri, &head.extensions);
            let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
            // A server gets whole addresses by HTTP/2 only, or with a host beside them.
            let named = uri.authority().filter(|_| head.version >= Version::HTTP_2 || host.is_some());
            let authority =
                extensions.get::<Authority>().or(named).or(host.as_ref().filter(|_| uri.authority().is_none()))?;
            let scheme = extensions.get::<Scheme>().or(uri.scheme()).unwrap_or(&Scheme::HTTP);
            if authority.as_str().contains('@') {
                return None;
            }
            format!("{scheme}://{authority}")
        }
    };
    Some(OwnPlace { origin, route: route.clone() })
}

/// A card with the route's addresses, if that changes it. The agent's name is learned; `of` is its path on the route.
pub(super) fn rewritten(core: &Hookgate, place: &OwnPlace, of: &str, text: &[u8], card: Span) -> Option<Bytes> {
    let OwnPlace { origin, route } = place;
    let at = Place { origin, prefix: &route.path_prefix, bases: &route.upstream_prefixes };
    let card = rewrite(text, card, &at)?;
    if let Some(name) = &card.name {
        core.inner.a2a.learn(&route.name, of, name);
    }
    if card.loses_signatures {
        tracing::info!(
            route = &*route.name,
            "an agent's card lost its signatures: its addresses are those of the route"
        );
    }
    (!card.edits.is_empty()).then(|| card.edits.apply(&Bytes::copy_from_slice(text)).to_bytes())
}

/// Answers a request for the card of the agent at a path of the route.
pub(super) async fn pass(
    core: &Hookgate,
    route: &Arc<Route>,
    of: &str,
    mut head: request::Parts,
    sent: Bytes,
    upstream: Arc<dyn Upstream>,
) -> Response<Body> {
    let place = place(route, &head);
    if place.is_some() {
        IN_PART.iter().for_each(|name| drop(head.headers.remove(name)));
    } else {
        tracing::debug!(
            route = &*route.name,
            "an agent's card passes as it is: nothing says how clients get to the route"
        );
    }
    let request = outgoing::request(&head, sent.into(), place.is_some(), false);
    let response = match upstream.call(request).await {
        Ok(response) => response,
        Err(failure) => return unreachable(Binding::Rest, None, &failure),
    };
    let Some(place) = place.filter(|_| response.status().is_success()) else { return response };
    let (mut head, body) = response.into_parts();
    match read(&head.headers, body).await {
        // Whatever its media type is: clients do not look at it.
        Ok((sent, text)) => match rewritten(core, &place, of, &text, Span { start: 0, end: text.len() }) {
            Some(changed) => {
                rebodied::strip_of_body(&mut head.headers);
                rebodied::whole(head, changed)
            }
            None => rebodied::whole(head, sent),
        },
        Err(why) => {
            let message = format!("hookgate cannot have the agent's card lead to its route: {why}");
            refusal(Binding::Rest, StatusCode::BAD_GATEWAY, None, 0, &message)
        }
    }
}

/// A card as it came, and without its content coding.
async fn read(headers: &HeaderMap, body: Body) -> Result<(Bytes, Bytes), String> {
    let sent = Limited::new(body, MAX_CARD_BYTES).collect().await;
    let sent =
        sent.map_err(|error| format!("it broke off, or is larger than {MAX_CARD_BYTES} bytes: {error}"))?.to_bytes();
    let text = decode::whole(headers, sent.clone(), MAX_CARD_BYTES).await?;
    Ok((sent, text))
}
