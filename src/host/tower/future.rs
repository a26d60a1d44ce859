use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use http::Response;

use crate::GuardedBody;

/// The answer of a [`HookService`](super::HookService) under way. Dropping it gives up the exchange: pending hooks are
/// cancelled and the upstream's connection is closed.
#[must_use = "futures do nothing unless polled"]
pub struct HookFuture<E>(BoxFuture<'static, Result<Response<GuardedBody>, E>>);

impl<E> HookFuture<E> {
    pub(super) fn new(future: impl Future<Output = Result<Response<GuardedBody>, E>> + Send + 'static) -> Self {
        HookFuture(Box::pin(future))
    }
}

impl<E> Future for HookFuture<E> {
    type Output = Result<Response<GuardedBody>, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl<E> fmt::Debug for HookFuture<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HookFuture")
    }
}
