//! Running the handlers of one event.

use std::sync::Arc;

use super::{AddedContext, DispatchKey, HandlerTransport, ToolSchema, Verdict};
use crate::audit::AuditLog;
use crate::hooks::{Detail, FailureKind, HookSet, Occasion};
use crate::limits::Limits;
use crate::time::Timestamp;

/// Asks and tells handlers. Cheap to clone: all clones share one transport and one log.
#[derive(Clone)]
pub struct Dispatcher {
    inner: Arc<Inner>,
}

struct Inner {
    transport: Arc<dyn HandlerTransport>,
    audit: AuditLog,
    key: DispatchKey,
    max_gated_bytes: usize,
}

impl Dispatcher {
    /// A dispatcher.
    pub fn new(transport: Arc<dyn HandlerTransport>, audit: AuditLog, token_key: DispatchKey, limits: &Limits) -> Self {
        let max_gated_bytes = limits.max_gated_bytes;
        Dispatcher { inner: Arc::new(Inner { transport, audit, key: token_key, max_gated_bytes }) }
    }

    /// Asks the matching gating handlers one after another. Dropping the future cancels the handler that is being asked
    /// and says so in the audit.
    pub async fn gate(
        &self,
        hooks: &Arc<HookSet>,
        occasion: &Occasion,
        detail: Detail,
        schema: Option<&ToolSchema>,
    ) -> Verdict {
        let _ = (hooks, occasion, detail, schema, &self.inner.transport, self.inner.max_gated_bytes);
        todo!()
    }

    /// No handler is asked, because the input cannot be judged: the failure mode of each matching handler decides.
    /// `what` says in a few words what is wrong with the input.
    pub fn undecidable(&self, hooks: &Arc<HookSet>, occasion: &Occasion, kind: FailureKind, what: &str) -> Verdict {
        let _ = (hooks, occasion, kind, what);
        todo!()
    }

    /// Tells the matching handlers in the background; nothing waits for them.
    pub fn observe(&self, hooks: &Arc<HookSet>, occasion: Occasion, detail: Detail) {
        let _ = (hooks, occasion, detail);
        todo!()
    }

    /// Tells the matching handlers all at once and waits for their context, which comes in their order.
    pub async fn observe_awaited(
        &self,
        hooks: &Arc<HookSet>,
        occasion: &Occasion,
        detail: Detail,
    ) -> Vec<AddedContext> {
        let _ = (hooks, occasion, detail);
        todo!()
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
