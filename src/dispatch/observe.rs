//! Telling handlers that only observe.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::runtime::Handle;

use super::ask::{Dispatch, Run};
use super::plan::Chain;
use super::{AddedContext, Decision, Dispatcher, Verdict};
use crate::audit::AuditOutcome;
use crate::hooks::{Detail, Dialect, Envelope, Handler, HookSet, Occasion};

/// One event, ready to be told. The requests are printed (and cut to size) at once, so that a waiting observation does not
/// keep a whole received body in memory.
pub(super) struct Telling {
    dispatch: Dispatch,
    handlers: Vec<(Arc<Handler>, Bytes)>,
}

impl Telling {
    /// `None` when no handler is concerned.
    pub(super) fn prepare(
        dispatcher: &Dispatcher,
        hooks: &Arc<HookSet>,
        occasion: &Occasion,
        detail: &Detail,
    ) -> Option<Self> {
        let handlers = hooks.concerned(occasion);
        if handlers.is_empty() {
            return None;
        }
        let dispatch = Dispatch::new(dispatcher, hooks, occasion, detail.attempt());
        let shown = detail.redacted(hooks.redaction(), &occasion.full_name().unwrap_or_default());
        let envelope =
            Envelope { event_id: &dispatch.event_id, timestamp: dispatch.started_at, occasion, detail: &shown };
        let mut printed: Vec<(Dialect, Bytes)> = Vec::new();
        let handlers = handlers
            .into_iter()
            .map(|handler| {
                let known = printed.iter().find(|(dialect, _)| *dialect == handler.dialect);
                let body = match known {
                    Some((_, body)) => body.clone(),
                    None => {
                        let body = handler.dialect.request(&envelope);
                        printed.push((handler.dialect, body.clone()));
                        body
                    }
                };
                (handler, body)
            })
            .collect();
        Some(Telling { dispatch, handlers })
    }

    /// Tells all handlers at once; their context comes in their order, within the bound of one dispatch.
    pub(super) async fn tell(self) -> Vec<AddedContext> {
        let dispatch = &self.dispatch;
        let event = dispatch.occasion.event;
        // Nothing is shown to anybody from here on, so that a chain needs no detail of its own.
        let chain = || {
            let nothing = Detail::TaskStart { title: None };
            Chain::new(event, nothing, Cow::Borrowed(""), dispatch.hooks.redaction(), None)
        };
        let answers = join_all(self.handlers.into_iter().map(|(handler, body)| async move {
            let mut run = Run::start(dispatch, &handler);
            let answer = run.ask(dispatch, body).await;
            if event.accepts_context() {
                return Some((handler, run, answer));
            }
            // Nothing that the others answer can change what this one did: it is recorded at once.
            run.finish(chain().take(&handler, answer).0);
            None
        }))
        .await;
        let mut together = chain();
        for (handler, run, answer) in answers.into_iter().flatten() {
            run.finish(together.take(&handler, answer).0);
        }
        match together.finish() {
            Verdict { decision: Decision::Allow, context, .. } => context,
            _ => Vec::new(),
        }
    }
}

/// Tells in a task of its own, if there is room for one.
pub(super) fn in_background(dispatcher: &Dispatcher, hooks: &Arc<HookSet>, occasion: &Occasion, detail: &Detail) {
    let Some(telling) = Telling::prepare(dispatcher, hooks, occasion, detail) else { return };
    let room = dispatcher.inner.observers.clone().try_acquire_owned();
    match (room, Handle::try_current()) {
        (Ok(room), Ok(runtime)) => {
            runtime.spawn(async move {
                telling.tell().await;
                drop(room);
            });
        }
        (Err(_), _) => lost(&telling, "too many observations are under way"),
        (_, Err(_)) => lost(&telling, "there is no runtime to observe in"),
    }
}

/// Records that nobody was told.
fn lost(telling: &Telling, why: &str) {
    let event = telling.dispatch.occasion.event.name();
    metrics::counter!("hookgate_observations_dropped_total", "event" => event).increment(1);
    tracing::warn!(event, why, "observation dropped");
    telling.dispatch.dispatcher.audit().record(telling.dispatch.record(AuditOutcome::Gap).because(why));
}
