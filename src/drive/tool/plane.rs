//! One exchange on the tool plane, as far as events are concerned.

use std::sync::Arc;

use bytes::Bytes;
use http::request;

use crate::Route;
use crate::audit::{AuditOutcome, AuditRecord};
use crate::dispatch::Decision;
use crate::drive::core::Hookgate;
use crate::drive::origin::seen_now;
use crate::hooks::{Detail, Event, FailureKind, HookSet, Occasion, Plane, Replacement, qualified};
use crate::id::{Hasher, SessionKey, Tenant, random_id};
use crate::intercept::call::judgeable;
use crate::intercept::context::mark;
use crate::time::Timestamp;
use crate::wire::client::ClientIdentity;
use crate::wire::json::quote;
use crate::wire::trace::TraceParent;

/// What all events of one exchange have in common.
#[derive(Clone)]
pub(in crate::drive) struct ToolPlane {
    pub(in crate::drive) core: Hookgate,
    pub(in crate::drive) hooks: Arc<HookSet>,
    /// The exchange's occasion without an event of its own: see [`ToolPlane::occasion`].
    base: Occasion,
}

/// A call as it reached a route to tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::drive) struct ToolCall {
    /// The tool, by the name that its server knows.
    pub(in crate::drive) name: String,
    /// The server's name, where the route says it.
    pub(in crate::drive) server: Option<Arc<str>>,
    /// The id by which events name the call.
    pub(in crate::drive) id: Arc<str>,
    /// The arguments' JSON text.
    pub(in crate::drive) input: Bytes,
}

/// What may become of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::drive) enum ToolVerdict {
    /// It runs, with other arguments where there are some; `context` is for the model to read beside the result.
    Run { input: Option<Bytes>, context: Vec<String> },
    /// It does not run; the reason is for the model.
    Deny(String),
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::drive) enum Outcome {
    /// Its result, as JSON text.
    Done(Bytes),
    /// Its failure, as JSON text.
    Failed(Bytes),
}

impl Outcome {
    /// A failure that no tool told.
    pub(in crate::drive) fn failed(why: &str) -> Self {
        Outcome::Failed(format!("{{\"message\":{}}}", quote(why)).into())
    }
}

impl ToolPlane {
    /// `head` is the request's as it was received. A client that names no session belongs to the one that `fallback` says:
    /// the parts of a name that stays the same over what belongs together.
    pub(in crate::drive) fn new(core: &Hookgate, route: &Route, head: &request::Parts, fallback: &[&[u8]]) -> Self {
        let tenant = Tenant::of(&head.extensions).into_name();
        let ClientIdentity { session, agent, parent, task, .. } = ClientIdentity::of(&head.headers);
        let session = session.unwrap_or_else(|| {
            let mut hasher = Hasher::new().with(b"tools").with(tenant.as_bytes()).with(route.name.as_bytes());
            fallback.iter().for_each(|part| hasher.part(part));
            hasher.finish().to_uuid()
        });
        let session = SessionKey { tenant, session: session.into() };
        let task = task.and_then(|task| Some((core.inner.ledger.task_turn(&session, &task)?, task)));
        let base = Occasion {
            turn_id: task.as_ref().map(|(turn, _)| turn.to_uuid().into()),
            task_id: task.map(|(_, task)| task.into()),
            agent_id: agent.map(Into::into),
            parent_agent_id: parent.map(Into::into),
            trace: TraceParent::of(&head.headers),
            ..Occasion::new(Event::PreToolUse, session, Plane::Tool, route.name.clone())
        };
        ToolPlane { core: core.clone(), hooks: core.hooks(), base }
    }

    /// Whose traffic it is.
    pub(in crate::drive) fn session(&self) -> &SessionKey {
        &self.base.session
    }

    /// The same for events of an earlier exchange.
    pub(in crate::drive) fn of(&self, base: &Occasion) -> Self {
        ToolPlane { base: base.clone(), ..self.clone() }
    }

    /// The same with other things in common.
    pub(in crate::drive) fn with(mut self, change: impl FnOnce(&mut Occasion)) -> Self {
        change(&mut self.base);
        self
    }

    /// What all events of this exchange have in common.
    pub(in crate::drive) fn base(&self) -> &Occasion {
        &self.base
    }

    /// The same for a call that a model made: it belongs to the model's session and turn.
    pub(in crate::drive) fn within(&self, made: &Occasion) -> Self {
        let Occasion { session, turn_id, task_id, agent_id, parent_agent_id, model, .. } = made.clone();
        let base = Occasion { session, turn_id, task_id, agent_id, parent_agent_id, model, ..self.base.clone() };
        ToolPlane { base, ..self.clone() }
    }

    /// The same, where handlers of these ids are not asked.
    pub(in crate::drive) fn without(&self, handlers: &[Arc<str>]) -> Self {
        ToolPlane { hooks: Arc::new(self.hooks.without(handlers)), ..self.clone() }
    }

    /// An event of this exchange, with which its session is seen.
    pub(in crate::drive) fn occasion(&self, event: Event) -> Occasion {
        self.core.inner.ledger.note(&self.base.session, &seen_now());
        Occasion { event, ..self.base.clone() }
    }

    /// An event about a call.
    pub(in crate::drive) fn about(&self, event: Event, call: &ToolCall) -> Occasion {
        Occasion {
            name: Some(call.name.as_str().into()),
            server: call.server.clone(),
            tool_call_id: Some(call.id.clone()),
            ..self.occasion(event)
        }
    }

    /// Whether a tool is denied without asking anybody.
    pub(in crate::drive) fn denies(&self, server: Option<&str>, tool: &str) -> bool {
        match server {
            Some(server) => self.hooks.denies(&qualified(server, tool)),
            None => self.hooks.denies(tool),
        }
    }

    /// Asks about a call. `schema` is the text of the tool's own JSON Schema, if it is known: a replacement has to fit it.
    pub(in crate::drive) async fn decide(&self, call: &ToolCall, schema: Option<&Bytes>) -> ToolVerdict {
        let run = || ToolVerdict::Run { input: None, context: Vec::new() };
        let occasion = self.about(Event::PreToolUse, call);
        let dispatcher = &self.core.inner.dispatcher;
        if !self.hooks.gates_calls_of(&occasion.full_name().unwrap_or_default()) {
            return run();
        }
        if let Err(why) = judgeable(&call.input, self.core.inner.limits.max_held_bytes) {
            return self.undecidable(call, why.kind, &why.what);
        }
        let schema = schema.map(|raw| self.core.inner.schemas.get(raw)).transpose();
        let compiled = schema.as_ref().ok().and_then(Option::as_deref);
        let detail = Detail::PreToolUse {
            tool_name: call.name.clone(),
            input: call.input.clone(),
            server: call.server.as_deref().map(Into::into),
            declared: false,
        };
        let verdict = dispatcher.gate(&self.hooks, &occasion, detail, compiled).await;
        let input = match (verdict.decision, &schema) {
            (Decision::Modify(Replacement::Object(_)), Err(why)) => {
                return ToolVerdict::Deny(format!(
                    "the policy's replacement for the arguments of {} could not be checked, since the tool's own schema cannot be used: {why}",
                    call.name
                ));
            }
            (Decision::Modify(Replacement::Object(replacement)), Ok(_)) => Some(replacement),
            (Decision::Deny { reason, .. }, _) => return ToolVerdict::Deny(reason),
            // The event has no other outcomes.
            (Decision::Allow | Decision::Continue { .. } | Decision::Modify(Replacement::Text(_)), _) => None,
        };
        let context = verdict.context.iter().map(|added| {
            let about = [("event", "PreToolUse"), ("handler", &*added.handler), ("tool", &call.name)];
            mark(&added.text, &about)
        });
        ToolVerdict::Run { input: input.filter(|input| *input != call.input), context: context.collect() }
    }

    /// What the handlers' failure modes say about a call that cannot be judged. `what` is wrong with it.
    pub(in crate::drive) fn undecidable(&self, call: &ToolCall, kind: FailureKind, what: &str) -> ToolVerdict {
        let occasion = self.about(Event::PreToolUse, call);
        let what = format!("the call of {} cannot be judged: {what}", call.name);
        match self.core.inner.dispatcher.undecidable(&self.hooks, &occasion, kind, &what).decision {
            Decision::Deny { reason, .. } => ToolVerdict::Deny(reason),
            _ => ToolVerdict::Run { input: None, context: Vec::new() },
        }
    }

    /// Whether anybody is told what came of a call.
    pub(in crate::drive) fn observes_results(&self) -> bool {
        self.hooks.has(Event::PostToolUse) || self.hooks.has(Event::PostToolUseFailure)
    }

    /// Tells what came of a call. `failure_known`: the protocol tells failures from results.
    pub(in crate::drive) fn tell(&self, call: &ToolCall, outcome: Outcome, failure_known: bool) {
        let (tool_name, input) = (call.name.clone(), Some(call.input.clone()));
        let (truncated, executed_upstream) = (false, false);
        let (event, detail) = match outcome {
            Outcome::Done(result) => (
                Event::PostToolUse,
                Detail::PostToolUse { tool_name, input, result, truncated, executed_upstream, failure_known },
            ),
            Outcome::Failed(error) => (
                Event::PostToolUseFailure,
                Detail::PostToolUseFailure { tool_name, input, error, truncated, executed_upstream },
            ),
        };
        self.core.inner.dispatcher.observe(&self.hooks, self.about(event, call), detail);
    }

    /// Keeps something in the audit that no handler was asked about.
    pub(in crate::drive) fn note(&self, occasion: &Occasion, outcome: AuditOutcome, why: &str) {
        let record = AuditRecord::of(occasion, random_id().into(), outcome, Timestamp::now()).because(why);
        self.core.audit().record(record);
    }
}
