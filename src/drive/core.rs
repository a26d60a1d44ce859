//! The core that both hosts share.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use http::{HeaderMap, Request, Response, request};

use super::a2a;
use super::body::GuardedBody;
use super::callbacks::Callbacks;
use super::correlation::Correlation;
use super::exchange;
use super::http_tool;
use super::mcp;
use super::meter::Inspected;
use super::route::{self, Inspection, Plan, Route, RouteKind, Subagent, Target};
use crate::audit::AuditLog;
use crate::callback::TmpHooks;
use crate::dispatch::{
    DISPATCH_HEADER, DispatchKey, Dispatcher, HandlerAnswer, HandlerTransport, ToolSchemas, TransportError,
};
use crate::hooks::{Event, HookSet};
use crate::ledger::Ledger;
use crate::limits::Limits;
use crate::upstream::Upstream;
use crate::wire::protocol::Surface;

/// Compiled tool schemas that are kept.
const SCHEMAS: usize = 256;

/// The core: hooks, what is remembered of sessions, and the audit. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct Hookgate {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) hooks: ArcSwap<HookSet>,
    pub(super) dispatcher: Dispatcher,
    pub(super) ledger: Ledger,
    pub(super) schemas: ToolSchemas,
    pub(super) limits: Limits,
    pub(super) subagents: Vec<Subagent>,
    pub(super) mode: HooksMode,
    pub(super) callbacks: Option<Callbacks>,
    pub(super) inspected: Inspected,
    pub(super) mcp: mcp::State,
    pub(super) a2a: a2a::State,
    pub(super) correlation: Correlation,
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
    callbacks: Option<Callbacks>,
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

    /// One-time callbacks: on routes that [offer](Route::tmp_hooks) them the model can ask for one, and what they bring
    /// becomes part of the session's next request. While some of a session are open, the end of its turn is held for up to
    /// `hold_stop` (not longer than an answer may be held), so that the model goes on with what comes. This core's handlers
    /// judge what they bring, also when the MCP server of the control surface gives it to a tool.
    #[must_use]
    pub fn callbacks(mut self, hooks: TmpHooks, hold_stop: Duration) -> Self {
        self.callbacks = Some(Callbacks { hooks, hold_stop });
        self
    }

    /// The core.
    pub fn build(self) -> Hookgate {
        let audit = AuditLog::new(self.limits.audit_per_session, self.limits.max_sessions);
        let transport = self.transport.unwrap_or_else(|| Arc::new(NoTransport));
        let dispatcher = Dispatcher::new(transport, audit, DispatchKey::random(), &self.limits);
        let gate = Hookgate {
            inner: Arc::new(Inner {
                hooks: ArcSwap::from_pointee(self.hooks),
                dispatcher,
                ledger: Ledger::new(self.limits.clone()),
                schemas: ToolSchemas::new(SCHEMAS),
                limits: self.limits,
                subagents: self.subagents,
                mode: self.mode,
                callbacks: self.callbacks,
                inspected: Inspected::default(),
                mcp: mcp::State::default(),
                a2a: a2a::State::default(),
                correlation: Correlation::default(),
            }),
        };
        if let Some(callbacks) = &gate.inner.callbacks {
            gate.watch(&callbacks.hooks);
            #[cfg(feature = "mcp")]
            callbacks.hooks.screen_by(Arc::new(super::screen::Policy(Arc::downgrade(&gate.inner))));
        }
        gate
    }
}

/// Stands in where no transport was given.
struct NoTransport;

impl HandlerTransport for NoTransport {
    fn send(&self, _: Request<Bytes>, _: usize) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
        Box::pin(ready(Err(TransportError::new("this build has no transport to handlers"))))
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
            callbacks: None,
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

    /// Says from a request's head what is to be done with it. `path` is the head's, without the route's prefix and without
    /// a query.
    pub fn plan(&self, route: &Arc<Route>, head: &request::Parts, path: &str) -> Plan {
        let inner = &self.inner;
        // Which requests the route takes at all, whether there are hooks or not.
        let called = match route.kind {
            RouteKind::HttpTool => match http_tool::find(route, head, path) {
                Ok(Some(called)) => Some(called),
                Ok(None) => return Plan::Pass,
                Err(refusal) => return Plan::Refuse(refusal),
            },
            _ => None,
        };
        let inspect = |target| {
            let body_limit = inner.limits.max_request_bytes;
            Plan::Inspect(Inspection { route: route.clone(), target, body_limit })
        };
        let agent = (route.kind == RouteKind::A2a).then(|| a2a::Target::of(head, path));
        if let Some(card) = agent.as_ref().filter(|target| target.is_card()) {
            return inspect(Target::A2a(card.clone()));
        }
        if self.is_off() {
            tracing::warn!(route = &*route.name, "hooks are switched off: nothing is inspected");
            return Plan::Pass;
        }
        let callbacks = route.tmp_hooks && inner.callbacks.is_some();
        // What an agent answers may be a card, even where there are no hooks.
        let nothing_to_do = agent.is_none() && !callbacks && inner.hooks.load().is_empty() && inner.ledger.is_blank();
        if route.kind == RouteKind::Passthrough || nothing_to_do {
            return Plan::Pass;
        }
        if self.is_own_traffic(&head.headers) {
            return Plan::Pass;
        }
        if let Some(target) = agent {
            return match a2a::is_grpc(head) {
                true if self.gates() => Plan::Refuse(a2a::refuse_grpc()),
                false if !target.is_nothing(head, self.gates()) => inspect(Target::A2a(target)),
                _ => Plan::Pass,
            };
        }
        if route.kind == RouteKind::Mcp {
            return inspect(Target::Mcp);
        }
        if let Some(called) = called {
            return inspect(Target::HttpTool(called));
        }
        match Surface::of(&head.method, path) {
            Surface::Conversation(protocol) => inspect(Target::Model { protocol, counting: false }),
            Surface::Count(protocol) => inspect(Target::Model { protocol, counting: true }),
            Surface::Helper => Plan::Pass,
            Surface::Unknown if !self.gates() || route.allows_uninspected(path) => Plan::Pass,
            Surface::Unknown => Plan::Refuse(route.refuse_uninspected(&head.method, path)),
        }
    }

    /// Whether the emergency switch is set.
    pub(super) fn is_off(&self) -> bool {
        self.inner.mode == HooksMode::Off
    }

    /// Whether a handler of ours made this request, about which hooks are not asked.
    pub(super) fn is_own_traffic(&self, headers: &HeaderMap) -> bool {
        let token = headers.get(DISPATCH_HEADER);
        token.is_some_and(|token| self.inner.dispatcher.is_own_traffic(token.as_bytes()))
    }

    /// Whether something is configured that may refuse or change something.
    pub(super) fn gates(&self) -> bool {
        let hooks = self.inner.hooks.load();
        Event::ALL.into_iter().any(|event| hooks.gates(event))
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
        self.inner.inspected.count(&inspection.route.name);
        let Inspection { route, target, body_limit } = inspection;
        match target {
            Target::Model { protocol, counting } => {
                let surface = exchange::Surface { protocol, counting };
                exchange::run(self.clone(), route, surface, body_limit, request, upstream).await
            }
            Target::Mcp => mcp::run(self, &route, request, upstream).await.map(Into::into),
            Target::HttpTool(called) => http_tool::run(self, &route, &called, request, upstream).await.map(Into::into),
            Target::A2a(target) => a2a::run(self, &route, target, request, upstream).await.map(Into::into),
        }
    }
}
