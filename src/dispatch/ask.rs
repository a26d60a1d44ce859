//! Asking one handler once: the request, the wait, the record.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use tokio::time::{Instant, timeout};

use super::Dispatcher;
use super::plan::Ruling;
use super::token::DISPATCH_HEADER;
use super::transport::{AnswerBody, ConnectionName, HandlerAnswer};
use crate::audit::{AuditLog, AuditOutcome, AuditRecord};
use crate::hooks::{Answer, Failure, FailureKind, Handler, HookSet, Occasion, Received, Target};
use crate::id::{Hasher, random_id};
use crate::limits::{DISPATCH_TOKEN_GRACE, MAX_HANDLER_ANSWER_BYTES};
use crate::time::Timestamp;
use crate::wire::trace::TraceParent;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const USER_AGENT_VALUE: &str = concat!("hookgate/", env!("CARGO_PKG_VERSION"));

/// What all handlers of one dispatch share.
#[derive(Clone)]
pub(super) struct Dispatch {
    pub(super) dispatcher: Dispatcher,
    pub(super) hooks: Arc<HookSet>,
    pub(super) occasion: Arc<Occasion>,
    pub(super) event_id: Arc<str>,
    pub(super) started_at: Timestamp,
    attempt: u32,
}

impl Dispatch {
    pub(super) fn new(dispatcher: &Dispatcher, hooks: &Arc<HookSet>, occasion: &Occasion, attempt: u32) -> Self {
        Dispatch {
            dispatcher: dispatcher.clone(),
            hooks: hooks.clone(),
            occasion: Arc::new(occasion.clone()),
            event_id: random_id().into(),
            started_at: Timestamp::now(),
            attempt,
        }
    }

    /// A record of this dispatch.
    pub(super) fn record(&self, outcome: AuditOutcome) -> AuditRecord {
        let mut record = AuditRecord::of(&self.occasion, self.event_id.clone(), outcome, Timestamp::now());
        record.attempt = self.attempt;
        record
    }
}

/// One run of one handler. It leaves exactly one audit record: if it is dropped before its end, `cancelled`.
pub(super) struct Run {
    handler: Arc<Handler>,
    audit: AuditLog,
    record: Option<AuditRecord>,
    started: Instant,
    took: Option<std::time::Duration>,
}

impl Run {
    pub(super) fn start(dispatch: &Dispatch, handler: &Arc<Handler>) -> Self {
        let mut record = dispatch.record(AuditOutcome::Cancelled);
        record.handler_id = Some(handler.id.clone());
        Run {
            handler: handler.clone(),
            audit: dispatch.dispatcher.audit().clone(),
            record: Some(record),
            started: Instant::now(),
            took: None,
        }
    }

    /// Sends the request and reads the answer, within the handler's time.
    pub(super) async fn ask(&mut self, dispatch: &Dispatch, body: Bytes) -> Result<Answer, Failure> {
        if let Some(record) = &mut self.record {
            record.request_bytes = body.len() as u64;
        }
        let answer = self.exchange(dispatch, body).await;
        self.took = Some(self.started.elapsed());
        let answer = answer?;
        let (body, complete) = match &answer.body {
            AnswerBody::Complete(body) => (body, true),
            AnswerBody::TooLarge(beginning) => (beginning, false),
        };
        if let Some(record) = &mut self.record {
            record.response_bytes = body.len() as u64;
        }
        let encoded = answer.headers.get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        let received = Received {
            status: answer.status.as_u16(),
            content_type: answer.headers.get(CONTENT_TYPE).map(|value| value.as_bytes()),
            encoded,
            body,
            // A transport of somebody else's may not mind the limit.
            complete: complete && body.len() <= MAX_HANDLER_ANSWER_BYTES,
        };
        self.handler.dialect.answer(self.handler.event, received)
    }

    async fn exchange(&self, dispatch: &Dispatch, body: Bytes) -> Result<HandlerAnswer, Failure> {
        let request = self.request(dispatch, body)?;
        let time = self.handler.timeout;
        match timeout(time, dispatch.dispatcher.inner.transport.send(request, MAX_HANDLER_ANSWER_BYTES)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Failure::new(FailureKind::Transport, error.to_string())),
            Err(_) => Err(Failure::new(FailureKind::Timeout, format!("timeout after {} ms", time.as_millis()))),
        }
    }

    /// The whole request, built from nothing: no header of the agent's can be in it but where it stands in a trace.
    fn request(&self, dispatch: &Dispatch, body: Bytes) -> Result<http::Request<Bytes>, Failure> {
        let handler = &self.handler;
        let Target::Http { url } = &handler.target;
        // The set was checked when it was compiled; this is the last place before anything leaves.
        if !dispatch.hooks.allows_host(url) {
            let host = url.host_str().unwrap_or_default();
            let cause = format!("its host {host} is not one of the allowed hosts");
            return Err(Failure::new(FailureKind::BlockedHost, cause));
        }
        let expires = Timestamp::now().unix_millis() + (handler.timeout + DISPATCH_TOKEN_GRACE).as_millis() as i64;
        let token = dispatch.dispatcher.inner.key.issue(&dispatch.event_id, Timestamp::from_unix_millis(expires));
        let key = Hasher::new().with(dispatch.event_id.as_bytes()).with(handler.id.as_bytes()).finish().to_uuid();
        let request = http::Request::post(url.as_str())
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE))
            .header(IDEMPOTENCY_KEY, key)
            .header(DISPATCH_HEADER, token);
        let request = match dispatch.occasion.trace.as_ref().and_then(TraceParent::header) {
            Some(trace) => request.header("traceparent", trace),
            None => request,
        };
        let request = match &handler.connection {
            Some(name) => request.extension(ConnectionName(name.clone())),
            None => request,
        };
        request.body(body).map_err(|error| Failure::new(FailureKind::Transport, format!("its address: {error}")))
    }

    /// Ends the run with what it came to.
    pub(super) fn finish(mut self, ruling: Ruling) {
        if let Some(mut record) = self.record.take() {
            record.outcome = ruling.outcome;
            record.failure = ruling.failure;
            let record = match ruling.reason {
                Some(reason) => record.because(&reason),
                None => record,
            };
            self.write(record);
        }
    }

    fn write(&self, mut record: AuditRecord) {
        let took = self.took.unwrap_or_else(|| self.started.elapsed());
        record.duration_ms = took.as_millis() as u64;
        let (event, outcome) = (record.event.name(), record.outcome.name());
        let failure = record.failure.map_or("", FailureKind::name);
        metrics::counter!("hookgate_dispatches_total", "event" => event, "outcome" => outcome, "failure" => failure)
            .increment(1);
        metrics::histogram!("hookgate_handler_seconds", "handler" => self.handler.id.to_string())
            .record(took.as_secs_f64());
        // Reasons may quote what the handler judged, so that they go to the audit alone.
        if failure.is_empty() {
            tracing::debug!(handler = %self.handler.id, event, outcome, duration_ms = record.duration_ms, "hook");
        } else {
            tracing::warn!(
                handler = %self.handler.id, event, outcome, failure, duration_ms = record.duration_ms, "hook failed"
            );
        }
        self.audit.record(record);
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            self.write(record);
        }
    }
}
