//! A transport that keeps what it carried.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::dispatch::{AnswerBody, HandlerAnswer, HandlerTransport, TransportError};

/// Carries requests by another transport and keeps them with their answers.
#[derive(Clone)]
pub(super) struct Recorder {
    inner: Arc<dyn HandlerTransport>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

/// A request and what came of it. A request that was given up stays without an answer.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// The `idempotency-key`, which tells the handlers of one event apart.
    pub(super) key: String,
    pub(super) request: Bytes,
    pub(super) answer: Option<(u16, Bytes)>,
}

impl Recorder {
    pub(super) fn new(inner: Arc<dyn HandlerTransport>) -> Self {
        Recorder { inner, exchanges: Arc::default() }
    }

    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl HandlerTransport for Recorder {
    fn send(
        &self,
        request: http::Request<Bytes>,
        limit: usize,
    ) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
        let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok()).unwrap_or_default();
        let exchange = Exchange { key: key.to_owned(), request: request.body().clone(), answer: None };
        let exchanges = self.exchanges.clone();
        let index = {
            let mut exchanges = exchanges.lock().unwrap_or_else(PoisonError::into_inner);
            exchanges.push(exchange);
            exchanges.len() - 1
        };
        let sending = self.inner.send(request, limit);
        async move {
            let answer = sending.await?;
            let (AnswerBody::Complete(body) | AnswerBody::TooLarge(body)) = &answer.body;
            if let Some(exchange) = exchanges.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index) {
                exchange.answer = Some((answer.status.as_u16(), body.clone()));
            }
            Ok(answer)
        }
        .boxed()
    }
}
