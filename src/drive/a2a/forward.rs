//! Calling the agent, and having its answer watched.

use http::{Request, Response, StatusCode};

use super::exchange::Exchange;
use super::refusal;
use super::watcher::Watcher;
use crate::Body;
use crate::drive::exchange::NoAnswer;
use crate::drive::tool::watch;
use crate::upstream::UpstreamError;
use crate::wire::a2a::Binding;
use crate::wire::jsonrpc::INTERNAL_ERROR;

/// Calls the agent.
pub(super) async fn run(exchange: Box<Exchange>, request: Request<Body>, mut watcher: Watcher) -> Response<Body> {
    let id = exchange.id.as_deref();
    let response = match exchange.upstream.call(request).await {
        Ok(response) => response,
        Err(failure) => {
            watcher.fail(&format!("the agent gave no answer: {failure}"));
            return unreachable(exchange.binding, id, &failure);
        }
    };
    if !watcher.is_needed() {
        return response;
    }
    watcher.status(response.status());
    match watch(response, watcher, exchange.plane.core.inner.limits.max_request_bytes).await {
        Ok(response) => response,
        Err(why) => {
            let message = format!("hookgate cannot read the agent's answer: {why}");
            refusal(exchange.binding, StatusCode::BAD_GATEWAY, id, INTERNAL_ERROR, &message)
        }
    }
}

/// The answer when the agent gave none.
pub(super) fn unreachable(binding: Binding, id: Option<&[u8]>, failure: &UpstreamError) -> Response<Body> {
    let message = format!("hookgate got no answer from the agent: {failure}");
    let mut response = refusal(binding, failure.status(), id, INTERNAL_ERROR, &message);
    response.extensions_mut().insert(NoAnswer);
    response
}
