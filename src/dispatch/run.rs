//! Running the handlers of one event.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::ask::{Dispatch, Run};
use super::plan::{Chain, Ruling, failed, refusal};
use super::{AddedContext, Decision, DispatchKey, HandlerTransport, ToolSchema, Verdict, observe};
use crate::audit::{AuditLog, AuditOutcome, AuditRecord};
use crate::hooks::{Detail, Envelope, Event, Failure, FailureKind, Handler, HookSet, Occasion};
use crate::id::random_id;
use crate::limits::{Limits, MAX_OBSERVERS};
use crate::time::Timestamp;

/// What decides where no handler does.
const STATIC: &str = "[tools] deny";

/// Asks and tells handlers. Cheap to clone: all clones share one transport and one log.
///
/// 1. Handlers that can refuse or change something ([`Dispatcher::gate`]) are asked one after another, in their order;
///    a replacement is what the next one sees; the first refusal ends it.
/// 2. Handlers that observe are told all at once ([`Dispatcher::observe`], [`Dispatcher::observe_awaited`]).
/// 3. Each run of a handler leaves one audit record, whatever becomes of it.
/// 4. The call of a tool that is denied ([`HookSet::denies`]) is refused before anybody is asked.
/// 5. It does not know whether an event was decided before: callers ask once for one logical event.
#[derive(Clone)]
pub struct Dispatcher {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) transport: Arc<dyn HandlerTransport>,
    pub(super) audit: AuditLog,
    pub(super) key: DispatchKey,
    pub(super) observers: Arc<Semaphore>,
    max_gated_bytes: usize,
}

impl Dispatcher {
    /// A dispatcher that reaches handlers by `transport` and records in `audit`.
    pub fn new(transport: Arc<dyn HandlerTransport>, audit: AuditLog, token_key: DispatchKey, limits: &Limits) -> Self {
        Dispatcher {
            inner: Arc::new(Inner {
                transport,
                audit,
                key: token_key,
                observers: Arc::new(Semaphore::new(MAX_OBSERVERS)),
                max_gated_bytes: limits.max_gated_bytes,
            }),
        }
    }

    /// Asks the matching handlers one after another.
    ///
    /// `schema` is the tool's own, for `PreToolUse`: no replacement that it refuses is used. What is to be judged is never
    /// cut: above `max_gated_bytes` nobody is asked and the handlers' failure modes decide.
    ///
    /// Dropping the future cancels the handler that is being asked, and the audit says `cancelled`.
    pub async fn gate(
        &self,
        hooks: &Arc<HookSet>,
        occasion: &Occasion,
        detail: Detail,
        schema: Option<&ToolSchema>,
    ) -> Verdict {
        if let Some(denied) = self.denied(hooks, occasion) {
            return denied;
        }
        let handlers = hooks.concerned(occasion);
        if handlers.is_empty() {
            return Verdict::allow();
        }
        // Every exchange has room for what it awaits, and in most nobody is asked.
        Box::pin(self.ask(hooks, occasion, detail, schema, &handlers)).await
    }

    async fn ask(
        &self,
        hooks: &Arc<HookSet>,
        occasion: &Occasion,
        detail: Detail,
        schema: Option<&ToolSchema>,
        handlers: &[Arc<Handler>],
    ) -> Verdict {
        let dispatch = Dispatch::new(self, hooks, occasion, detail.attempt());
        let max = self.inner.max_gated_bytes;
        if let Some((what, len)) = detail.judged()
            && len > max
        {
            let what = format!("{what} has {len} bytes, more than max_gated_bytes = {max}");
            return Self::unasked(&dispatch, FailureKind::TooLargeInput, &what);
        }
        let tool = occasion.full_name().unwrap_or_default();
        let mut chain = Chain::new(occasion.event, detail, tool, hooks.redaction(), schema);
        for handler in handlers {
            let mut run = Run::start(&dispatch, handler);
            let shown = chain.shown();
            let envelope =
                Envelope { event_id: &dispatch.event_id, timestamp: dispatch.started_at, occasion, detail: &shown };
            let answer = run.ask(&dispatch, handler.dialect.request(&envelope)).await;
            let (ruling, verdict) = chain.take(handler, answer);
            run.finish(ruling);
            if let Some(verdict) = verdict {
                return verdict;
            }
        }
        chain.finish()
    }

    /// Decides without asking anybody, because the input cannot be judged: the failure mode of each matching handler,
    /// up to the first that refuses. `what` says in a few words what is wrong; it is part of the reason, so it holds
    /// nothing of the input.
    pub fn undecidable(&self, hooks: &Arc<HookSet>, occasion: &Occasion, kind: FailureKind, what: &str) -> Verdict {
        if let Some(denied) = self.denied(hooks, occasion) {
            return denied;
        }
        Self::unasked(&Dispatch::new(self, hooks, occasion, 1), kind, what)
    }

    /// Refuses the call of a tool that is denied without asking anybody, and records that; `None` for everything else.
    /// [`Dispatcher::gate`] and [`Dispatcher::undecidable`] begin with it.
    pub fn denied(&self, hooks: &HookSet, occasion: &Occasion) -> Option<Verdict> {
        let name = occasion.full_name().filter(|_| occasion.event == Event::PreToolUse)?;
        if !hooks.denies(&name) {
            return None;
        }
        let reason = format!("the tool {name} is denied by the configuration");
        let record = AuditRecord::of(occasion, random_id().into(), AuditOutcome::Deny, Timestamp::now());
        self.inner.audit.record(record.because(&reason));
        Some(refusal(Decision::Deny { reason, handler: STATIC.into() }, false))
    }

    fn unasked(dispatch: &Dispatch, kind: FailureKind, what: &str) -> Verdict {
        for handler in dispatch.hooks.concerned(&dispatch.occasion) {
            let run = Run::start(dispatch, &handler);
            let (mut ruling, decision) = failed(handler.event, &handler, Failure::new(kind, what));
            if kind == FailureKind::MalformedInput {
                ruling = Ruling { outcome: AuditOutcome::MalformedInput, failure: None, ..ruling };
            }
            run.finish(ruling);
            if let Some(decision) = decision {
                return refusal(decision, true);
            }
        }
        Verdict::allow()
    }

    /// Tells the matching handlers in the background; nothing waits for them and their answers change nothing.
    ///
    /// At most [`MAX_OBSERVERS`] dispatches are under way at once. One more is dropped, counted in
    /// `hookgate_observations_dropped_total` and recorded as a `gap`, and so is one outside of a tokio runtime.
    pub fn observe(&self, hooks: &Arc<HookSet>, occasion: Occasion, detail: Detail) {
        observe::in_background(self, hooks, &occasion, &detail);
    }

    /// Tells the matching handlers all at once and waits for their context, which comes in the handlers' order.
    ///
    /// It takes as long as the slowest of them, at most its timeout. Dropping the future cancels them all.
    pub async fn observe_awaited(
        &self,
        hooks: &Arc<HookSet>,
        occasion: &Occasion,
        detail: Detail,
    ) -> Vec<AddedContext> {
        match observe::Telling::prepare(self, hooks, occasion, &detail) {
            Some(telling) => telling.tell().await,
            None => Vec::new(),
        }
    }

    /// Waits until no observing dispatch is under way, for an orderly end.
    pub async fn drained(&self) {
        // An error means that the semaphore was closed, which nothing does.
        let _ = self.inner.observers.acquire_many(MAX_OBSERVERS as u32).await;
    }

    /// The log of what was decided.
    pub fn audit(&self) -> &AuditLog {
        &self.inner.audit
    }

    /// Whether this `x-hookgate-dispatch` header is one that a handler of ours was given, and still holds.
    pub fn is_own_traffic(&self, header: &[u8]) -> bool {
        self.inner.key.verify(header, Timestamp::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{HandlerAnswer, TransportError};
    use crate::hooks::Plane;
    use crate::id::SessionKey;
    use bytes::Bytes;
    use futures_util::future::BoxFuture;

    /// A transport that must not be used.
    struct Never;

    impl HandlerTransport for Never {
        fn send(
            &self,
            request: http::Request<Bytes>,
            _: usize,
        ) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
            panic!("sent to {}", request.uri())
        }
    }

    #[tokio::test]
    async fn nothing_is_sent_to_a_host_that_is_not_allowed() {
        for (mode, outcome) in [("open", AuditOutcome::FailedOpen), ("closed", AuditOutcome::FailedClosed)] {
            let document = format!(
                r#"{{"version":1,"hooks":{{"Stop":[
                    {{"id":"h","type":"http","url":"https://hooks.example.com/","failureMode":"{mode}"}}]}}}}"#
            );
            let hooks = HookSet::builder().allowed_hosts(["hooks.example.com"]).document("d", document.as_bytes());
            let hooks = Arc::new(hooks.build().unwrap().without_allowed_hosts());
            let log = AuditLog::new(10, 10);
            let dispatcher = Dispatcher::new(Arc::new(Never), log, DispatchKey::random(), &Limits::default());
            let session = SessionKey { tenant: "default".into(), session: "s".into() };
            let occasion = Occasion::new(Event::Stop, session.clone(), Plane::Model, "r");
            let detail =
                Detail::Stop { response: "r".into(), stop_reason: "end_turn".into(), attempt: 1, max_attempts: 4 };
            let verdict = dispatcher.gate(&hooks, &occasion, detail, None).await;
            assert_eq!(matches!(verdict.decision, Decision::Deny { .. }), mode == "closed");
            let records = dispatcher.audit().session(&session, &crate::audit::AuditQuery::default()).items;
            assert_eq!((records[0].outcome, records[0].failure), (outcome, Some(FailureKind::BlockedHost)));
            assert!(records[0].reason.as_deref().unwrap().contains("hooks.example.com"));
        }
    }
}
