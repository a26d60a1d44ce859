//! Answers that stream.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_util::future::{AbortHandle, Abortable, BoxFuture, abortable};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use http::{Response, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::answer::uninspectable;
use super::body::GuardedBody;
use super::decode;
use super::exchange::Exchange;
use super::meter::{self, Held};
use super::rebodied;
use crate::Body;
use crate::audit::AuditOutcome;
use crate::hooks::Event;
use crate::intercept::round::{CallVerdict, StopVerdict};
use crate::intercept::stream::{Action, Stream};
use crate::ledger::{AnswerRecord, Attempt, Round};

/// Pieces that wait in the channel between the task and the host.
pub(super) const CHANNEL: usize = 32;

/// Begins to inspect a streamed answer.
pub(super) async fn run(
    exchange: Arc<Exchange>,
    response: Response<Body>,
    attempt: Option<Attempt>,
) -> Response<GuardedBody> {
    let (mut parts, body) = response.into_parts();
    let body = match decode::stream(&parts.headers, body) {
        Ok(body) => body,
        Err(unknown) => {
            return uninspectable(&exchange, Response::from_parts(parts, unknown.body), &unknown.why);
        }
    };
    let policy = exchange.policy();
    if policy.gated.is_some() || policy.stop_gated || decode::is_encoded(&parts.headers) {
        rebodied::strip_of_body(&mut parts.headers);
    }
    // Even where nothing is changed, an end of hookgate's own may have to be put to it, and no trailers are kept for it.
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::TRAILER);
    let resumed = attempt.and_then(|attempt| {
        let (id, model) = &attempt.head;
        Stream::resume(policy.clone(), attempt.rounds.clone(), id, model)
    });
    let stream = resumed.unwrap_or_else(|| Stream::new(policy));
    let driver = Driver::new(exchange, stream, body);
    Response::from_parts(parts, GuardedBody::driven(driver))
}

/// The machine with what it waits for.
pub(super) struct Driver {
    exchange: Arc<Exchange>,
    stream: Stream,
    /// The answer being read; `None` once it ended.
    input: Option<Body>,
    verdicts: FuturesUnordered<Abortable<BoxFuture<'static, (usize, CallVerdict)>>>,
    /// What is being asked, by call: giving a call up cancels its question.
    asked: HashMap<usize, AbortHandle>,
    stop: Option<BoxFuture<'static, StopVerdict>>,
    round: Option<BoxFuture<'static, Option<Response<Body>>>>,
    lineage_known: bool,
    observed: bool,
}

impl Driver {
    fn new(exchange: Arc<Exchange>, stream: Stream, input: Body) -> Self {
        Driver {
            exchange,
            stream,
            input: Some(input),
            verdicts: FuturesUnordered::new(),
            asked: HashMap::new(),
            stop: None,
            round: None,
            lineage_known: false,
            observed: false,
        }
    }

    /// The next piece, as long as nothing must be waited for but the upstream and the client: `Ready(Err)` gives the
    /// driver up to a task of its own.
    pub(super) fn poll_plain(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, NeedsTask>> {
        loop {
            self.commit_lineage();
            if let Some(bytes) = self.stream.output() {
                return Poll::Ready(Ok(Some(bytes)));
            }
            self.act();
            if let Some(bytes) = self.stream.output() {
                return Poll::Ready(Ok(Some(bytes)));
            }
            if self.is_waiting() {
                return Poll::Ready(Err(NeedsTask));
            }
            let Some(input) = self.input.as_mut().filter(|_| self.stream.wants_input()) else {
                self.observe_end();
                return Poll::Ready(Ok(None));
            };
            match Pin::new(input).poll_frame(cx) {
                Poll::Ready(frame) => self.input(frame),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Whether something besides the upstream's bytes is waited for, so that time matters.
    fn is_waiting(&self) -> bool {
        !self.verdicts.is_empty() || self.stop.is_some() || self.round.is_some() || self.stream.is_holding()
    }

    /// Runs to the end of the answer on its own, whether or not the client reads: verdicts, keep-alives and records do not
    /// wait for a slow reader. Ends early when the client goes away.
    pub(super) async fn run(mut self: Box<Self>, out: mpsc::Sender<Bytes>) {
        let _held = Held::begin();
        let most = self.exchange.core.inner.limits.max_held_bytes;
        let mut pending: std::collections::VecDeque<Bytes> = std::collections::VecDeque::new();
        let mut pending_bytes = 0;
        loop {
            self.act();
            self.commit_lineage();
            while let Some(bytes) = self.stream.output() {
                pending_bytes += bytes.len();
                pending.push_back(bytes);
            }
            let reading = self.stream.wants_input() && self.input.is_some();
            if pending.is_empty() && !reading && !self.is_waiting() {
                self.observe_end();
                return;
            }
            let deadline = self.stream.deadline().map(tokio::time::Instant::from_std);
            tokio::select! {
                () = out.closed() => return,
                permit = out.reserve(), if !pending.is_empty() => {
                    let (Ok(permit), Some(bytes)) = (permit, pending.pop_front()) else { return };
                    pending_bytes -= bytes.len();
                    permit.send(bytes);
                }
                Some(decided) = self.verdicts.next(), if !self.verdicts.is_empty() => {
                    if let Ok((slot, verdict)) = decided {
                        self.asked.remove(&slot);
                        self.stream.verdict(now(), slot, verdict);
                    }
                }
                verdict = wait(&mut self.stop), if self.stop.is_some() => {
                    self.stop = None;
                    self.stream.stop_verdict(now(), verdict);
                }
                response = wait(&mut self.round), if self.round.is_some() => {
                    self.round = None;
                    self.begin_round(response);
                }
                frame = frame(&mut self.input), if reading && pending_bytes < most => self.input(frame),
                () = sleep_until(deadline), if deadline.is_some() => self.stream.timeout(now()),
            }
        }
    }

    fn input(&mut self, frame: Option<Result<http_body::Frame<Bytes>, crate::BoxError>>) {
        match frame {
            Some(Ok(frame)) => {
                if let Ok(bytes) = frame.into_data() {
                    self.stream.chunk(now(), bytes);
                }
            }
            Some(Err(error)) => {
                self.input = None;
                self.stream.end_of_input(now(), Some(&error.to_string()));
            }
            None => {
                self.input = None;
                self.stream.end_of_input(now(), None);
            }
        }
    }

    /// Does what the machine asks for, as far as it can be done at once, and begins the rest.
    fn act(&mut self) {
        while let Some(action) = self.stream.action() {
            let exchange = self.exchange.clone();
            match action {
                Action::Decide { slot, call } => {
                    let decide = async move { (slot, exchange.decide_call(&call).await) };
                    let (decide, handle) = abortable(decide.boxed());
                    self.asked.insert(slot, handle);
                    self.verdicts.push(decide);
                }
                Action::Undecidable { slot, call, why } => {
                    if let Some(asked) = self.asked.remove(&slot) {
                        asked.abort();
                    }
                    self.stream.verdict(now(), slot, exchange.decide_unjudgeable(&call, &why));
                }
                Action::AskStop { response, stop_reason } => {
                    let decide = async move { exchange.decide_stop(response, stop_reason).await };
                    self.stop = Some(Box::pin(decide));
                }
                Action::GiveUp => self.give_up(),
                Action::Commit { record, released_call } => {
                    self.commit(record, released_call);
                    self.stream.committed(now());
                }
                Action::Continue { rounds } => self.go_on(rounds),
                Action::Truncated { call } => {
                    let why = "the call was cut off by the limit of tokens";
                    exchange.note(Event::PreToolUse, Some(&call), AuditOutcome::Truncated, why);
                }
                Action::NotScanned => {
                    let why = "the answer has events or data that this version does not know; they were passed on";
                    exchange.note(Event::PreToolUse, None, AuditOutcome::NotScanned, why);
                }
                Action::Failed { kind, message } => exchange.observe_failure(&kind, None, &message),
            }
        }
    }

    fn commit(&self, record: AnswerRecord, released_call: bool) {
        if released_call {
            self.exchange.forget_attempt();
        }
        let id = self.stream.head().map_or("", |(id, _)| id);
        self.exchange.commit(record, id, self.stream.last_id());
    }

    /// With server-side history the answer's id must be known before the client can name it.
    fn commit_lineage(&mut self) {
        if let (false, Some((id, _))) = (self.lineage_known, self.stream.head()) {
            self.lineage_known = true;
            self.exchange.commit_lineage(id, self.stream.last_id(), &AnswerRecord::default());
        }
    }

    fn go_on(&mut self, rounds: Vec<Round>) {
        let last_id = self.stream.last_id().to_owned();
        if let Some(head) = self.stream.head() {
            self.exchange.keep_attempt(rounds.clone(), head, &last_id);
        }
        let exchange = self.exchange.clone();
        self.input = None;
        let call = async move { exchange.next_round(&rounds, &last_id, "text/event-stream").await };
        self.round = Some(Box::pin(call));
    }

    fn begin_round(&mut self, response: Option<Response<Body>>) {
        let body = response.and_then(|response| {
            let (parts, body) = response.into_parts();
            decode::stream(&parts.headers, body).ok()
        });
        match body {
            Some(body) => {
                self.input = Some(body);
                self.stream.round(now());
            }
            None => self.stream.round_failed(now()),
        }
    }

    fn give_up(&mut self) {
        if self.stop.take().is_some() {
            self.stream.stop_verdict(now(), self.exchange.give_up_stop());
        }
        if self.round.take().is_some() {
            self.stream.round_failed(now());
        }
    }

    fn observe_end(&mut self) {
        if self.stream.is_ended() && !std::mem::replace(&mut self.observed, true) {
            let record = self.stream.record();
            if self.exchange.conversation.server_history {
                let id = self.stream.head().map_or("", |(id, _)| id);
                self.exchange.commit_lineage(id, self.stream.last_id(), &record);
            }
            self.exchange.observe_answer(&record);
            meter::billed(&self.exchange, self.stream.billed());
        }
    }
}

/// The driver must go on in a task of its own.
#[derive(Debug)]
pub(super) struct NeedsTask;

/// The runtime's clock, so that tests can run on virtual time.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn wait<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

async fn frame(input: &mut Option<Body>) -> Option<Result<http_body::Frame<Bytes>, crate::BoxError>> {
    match input {
        Some(input) => input.frame().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
