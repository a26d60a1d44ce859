//! Calling the server, and having its answer watched.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use tokio::runtime::Handle;

use super::exchange::Exchange;
use super::refusal;
use super::watcher::Watcher;
use crate::Body;
use crate::drive::core::Hookgate;
use crate::drive::exchange::NoAnswer;
use crate::drive::tool::watch;
use crate::wire::jsonrpc::INTERNAL_ERROR;
use crate::wire::mcp::Revision;

/// Calls the server. In legacy revisions a client that goes away has not given its calls up: they go on, and what comes of
/// them is told.
pub(super) async fn run(exchange: Box<Exchange>, request: Request<Body>, watcher: Watcher) -> Response<Body> {
    let core = exchange.plane.core.clone();
    let survives = exchange.revision != Revision::Modern && watcher.expects_calls();
    let answered = call(exchange, request, watcher).boxed();
    Survivor { answered: Some(answered), core, survives }.await
}

async fn call(exchange: Box<Exchange>, request: Request<Body>, mut watcher: Watcher) -> Response<Body> {
    let only_id = watcher.only_id();
    let id = only_id.as_deref();
    let response = match exchange.upstream.call(request).await {
        Ok(response) => response,
        Err(failure) => {
            watcher.fail(&format!("the tool server gave no answer: {failure}"));
            let message = format!("hookgate got no answer from the tool server: {failure}");
            let mut response = refusal(failure.status(), id, INTERNAL_ERROR, &message);
            response.extensions_mut().insert(NoAnswer);
            return response;
        }
    };
    if !watcher.is_needed() {
        return response;
    }
    watcher.status(response.status());
    let limit = exchange.plane.core.inner.limits.max_request_bytes;
    match watch(response, watcher, limit).await {
        Ok(response) => response,
        Err(why) => {
            let message = format!("hookgate cannot apply the configured policy to the tool server's answer: {why}");
            refusal(StatusCode::BAD_GATEWAY, id, INTERNAL_ERROR, &message)
        }
    }
}

/// A call that may go on without its client.
struct Survivor {
    answered: Option<BoxFuture<'static, Response<Body>>>,
    core: Hookgate,
    survives: bool,
}

impl Future for Survivor {
    type Output = Response<Body>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<Body>> {
        let Some(answered) = &mut self.answered else { return Poll::Pending };
        let response = std::task::ready!(answered.as_mut().poll(cx));
        self.answered = None;
        Poll::Ready(response)
    }
}

impl Drop for Survivor {
    fn drop(&mut self) {
        let Some(answered) = self.answered.take().filter(|_| self.survives) else { return };
        let detached = self.core.inner.mcp.detach().zip(Handle::try_current().ok());
        if let Some((permit, runtime)) = detached {
            runtime.spawn(async move {
                // The body, dropped at once, sees to it that it is read to its end.
                drop(answered.await);
                drop(permit);
            });
        }
    }
}
