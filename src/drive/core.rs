//! The core that both hosts share.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, request};

use super::body::GuardedBody;
use super::route::{self, Inspection, Plan, Route, Subagent};
use crate::Body;
use crate::audit::AuditLog;
use crate::dispatch::{DispatchKey, Dispatcher, HandlerTransport};
use crate::hooks::{Event, HookSet};
use crate::limits::Limits;
use crate::upstream::Upstream;
use crate::wire::protocol::Surface;

/// The core: hooks, what is remembered of sessions, and the audit. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Hookgate {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) hooks: ArcSwap<HookSet>,
    pub(super) dispatcher: Dispatcher,
    pub(super) limits: Limits,
    pub(super) subagents: Vec<Subagent>,
    pub(super) mode: HooksMode,
}

/// The emergency switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HooksMode {
    /// Hooks are dispatched.
    #[default]
    On,
    /// No hook is dispatched; each request says so in the log.
    Off,
}

/// Makes a [`Hookgate`].
pub struct HookgateBuilder {
    hooks: HookSet,
    limits: Limits,
    transport: Option<Arc<dyn HandlerTransport>>,
    subagents: Vec<Subagent>,
    mode: HooksMode,
}

impl HookgateBuilder {
    /// The hooks to begin with.
    #[must_use]
    pub fn hooks(mut self, hooks: HookSet) -> Self {
        self.hooks = hooks;
        self
    }

    /// The limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// How handlers are reached; without one, every handler fails as unreachable.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn HandlerTransport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The tools that start sub-agents.
    #[must_use]
    pub fn subagents(mut self, subagents: Vec<Subagent>) -> Self {
        self.subagents = subagents;
        self
    }

    /// The emergency switch.
    #[must_use]
    pub fn hooks_mode(mut self, mode: HooksMode) -> Self {
        self.mode = mode;
        self
    }

    /// The core.
    pub fn build(self) -> Hookgate {
        todo!()
    }
}

impl Hookgate {
    /// Begins to make a core.
    pub fn builder() -> HookgateBuilder {
        HookgateBuilder {
            hooks: HookSet::empty(),
            limits: Limits::default(),
            transport: None,
            subagents: Vec::new(),
            mode: HooksMode::On,
        }
    }

    /// The hooks in force.
    pub fn hooks(&self) -> Arc<HookSet> {
        self.inner.hooks.load_full()
    }

    /// Puts other hooks in force, for events from now on.
    pub fn set_hooks(&self, hooks: HookSet) {
        self.inner.hooks.store(Arc::new(hooks));
    }

    /// The audit records.
    pub fn audit(&self) -> &AuditLog {
        self.inner.dispatcher.audit()
    }

    /// Says from a request's head what is to be done with it. The path must be without the route's prefix.
    pub fn plan(&self, route: &Arc<Route>, head: &request::Parts) -> Plan {
        let _ = (route, head);
        todo!()
    }

    /// Removes hookgate's own headers from what goes upstream; hosts call it for [`Plan::Pass`].
    pub fn strip(&self, headers: &mut HeaderMap) {
        route::strip(headers);
    }

    /// Runs an inspected exchange. The answer's head is settled when this returns; its body may still be decided about
    /// while it streams.
    pub async fn exchange(
        &self,
        inspection: Inspection,
        request: Request<Bytes>,
        upstream: Arc<dyn Upstream>,
    ) -> Response<GuardedBody> {
        let _ = (inspection, request, upstream, StatusCode::OK, Event::Stop, Surface::Helper, Body::empty());
        todo!()
    }
}
