//! Where something happened to a session beside its model traffic.

use std::sync::Arc;

use super::core::Hookgate;
use crate::hooks::{Event, HookSet, Occasion, Plane};
use crate::id::{Digest, SessionKey};
use crate::ledger::Sighting;
use crate::time::Timestamp;
use crate::wire::trace::TraceParent;

/// The route that events of the control surface carry.
const API: &str = "api";

/// Where something happened to a session, and what its handlers are told with it.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) plane: Plane,
    /// The name of the route, or of what stands for one.
    pub(crate) route: Arc<str>,
    pub(crate) trace: Option<TraceParent>,
    /// A handler did it: hooks are not told of what hooks do.
    pub(crate) silent: bool,
}

impl Origin {
    /// The control surface, or the program that hookgate is a part of.
    pub(crate) fn api() -> Self {
        Origin { plane: Plane::Api, route: API.into(), trace: None, silent: false }
    }

    /// A request to the control surface.
    #[cfg(feature = "control")]
    pub(crate) fn request(core: &Hookgate, headers: &http::HeaderMap) -> Self {
        Origin { trace: TraceParent::of(headers), silent: core.is_own_traffic(headers), ..Origin::api() }
    }

    /// An event there: of a task with its turn, or of the session alone.
    pub(super) fn occasion(&self, event: Event, session: &SessionKey, task: Option<(&Arc<str>, Digest)>) -> Occasion {
        Occasion {
            turn_id: task.map(|(_, turn)| turn.to_uuid().into()),
            task_id: task.map(|(id, _)| id.clone()),
            trace: self.trace.clone(),
            ..Occasion::new(event, session.clone(), self.plane, self.route.clone())
        }
    }
}

impl Hookgate {
    /// The hooks to be told of an event that was not found in traffic.
    pub(super) fn hooks_for(&self, event: Event) -> Arc<HookSet> {
        if self.is_off() {
            tracing::warn!(event = event.name(), "hooks are switched off: nobody is told");
            return Arc::default();
        }
        self.hooks()
    }
}

/// A session is seen now.
pub(super) fn seen_now() -> Sighting<'static> {
    Sighting::at(std::time::Instant::now(), Timestamp::now())
}
