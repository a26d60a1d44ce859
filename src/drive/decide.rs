//! Deciding about calls and about the end of a turn.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::callbacks::is_answered;
use super::exchange::Exchange;
use super::results::string_at;
use super::route::{OnDeny, Subagent};
use crate::audit::{AuditOutcome, AuditRecord};
use crate::callback::tool;
use crate::dispatch::{Decision, Verdict};
use crate::hooks::{Detail, Event, FailureKind, FailureMode, Occasion, Replacement};
use crate::id::{Hasher, random_id};
use crate::intercept::call::Unjudgeable;
use crate::intercept::context::mark;
use crate::intercept::round::{CallVerdict, Gated, Policy, StopVerdict};
use crate::time::Timestamp;
use crate::wire::answer::Call;
use crate::wire::json::{Edits, pointer, quote};

impl Exchange {
    /// What may happen to this exchange's answer.
    pub(super) fn policy(&self) -> Policy {
        let limits = &self.core.inner.limits;
        let answers = self.offers_callbacks() && !self.counting;
        // Such calls are held only until they are whole: the MCP server has to know them before the client makes them.
        let correlates = self.correlates();
        let gates_calls = self.hooks.has(Event::PreToolUse) || self.gates_delegation() || answers || correlates;
        let stop_hooks = self.hooks.has(Event::Stop) && self.occasion.agent_id.is_none() && !self.side;
        let stop_gated = stop_hooks || self.may_hold_stop();
        let observes = [Event::PostToolUse, Event::PostToolUseFailure, Event::SubagentStop];
        let record = gates_calls || stop_gated || observes.into_iter().any(|event| self.hooks.has(event));
        let gated = gates_calls.then(|| {
            let (hooks, core, delegation) = (self.hooks.clone(), self.core.clone(), self.gates_delegation());
            let gated = move |name: &str| {
                hooks.matching(Event::PreToolUse, Some(name)).next().is_some()
                    || answers && is_answered(name)
                    || correlates && tool::named(name).is_some()
                    || delegation && core.inner.subagents.iter().any(|subagent| *subagent.tool == *name)
            };
            Arc::new(gated) as Gated
        });
        Policy {
            protocol: self.protocol,
            gated,
            stop_gated,
            record,
            feedback: self.route.on_deny == OnDeny::Feedback,
            max_deny_rounds: limits.max_deny_rounds,
            max_held: limits.max_held_bytes,
            keepalive: limits.keepalive,
            max_hold: limits.max_hold,
        }
    }

    fn gates_delegation(&self) -> bool {
        self.hooks.has(Event::SubagentStart) && !self.core.inner.subagents.is_empty()
    }

    /// Asks about a call; for one that delegates, about the delegation too.
    pub(super) async fn decide_call(&self, call: &Call) -> CallVerdict {
        let mut input = call.input.clone();
        let occasion = self.occasion(Event::PreToolUse, Some(&call.name), Some(&call.id));
        let schema = self.schema(&call.name).map(|raw| self.core.inner.schemas.get(&raw)).transpose();
        let detail =
            Detail::PreToolUse { tool_name: call.name.clone(), input: input.clone(), server: None, declared: false };
        let compiled = schema.as_ref().ok().and_then(Option::as_deref);
        let verdict = self.core.inner.dispatcher.gate(&self.hooks, &occasion, detail, compiled).await;
        match (verdict.decision, &schema) {
            (Decision::Modify(Replacement::Object(_)), Err(why)) => {
                let reason = format!(
                    "the policy's replacement for the arguments of {} could not be checked, since the tool's own schema cannot be used: {why}",
                    call.name
                );
                return self.deny(call, reason);
            }
            (Decision::Modify(Replacement::Object(replacement)), Ok(_)) => input = replacement,
            (Decision::Deny { reason, .. }, _) => return self.deny(call, reason),
            // The event has no other outcomes.
            (Decision::Allow | Decision::Continue { .. } | Decision::Modify(Replacement::Text(_)), _) => {}
        }
        let about = |handler: &str| {
            [("event", "PreToolUse"), ("handler", handler), ("tool", &call.name), ("call", &call.id)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let context: Vec<String> = verdict
            .context
            .iter()
            .map(|added| {
                let about = about(&added.handler);
                let about: Vec<(&str, &str)> = about.iter().map(|(name, value)| (&**name, &**value)).collect();
                mark(&added.text, &about)
            })
            .collect();
        let delegation = self.core.inner.subagents.iter().find(|subagent| *subagent.tool == *call.name);
        if let Some(subagent) = delegation {
            match self.decide_delegation(call, subagent, input).await {
                Ok(decided) => input = decided,
                Err(reason) => return self.deny(call, reason),
            }
        }
        if self.answers_call(&call.name) {
            return self.answer_call(&input).await;
        }
        if !context.is_empty() {
            self.core.inner.ledger.commit_context(&self.thread, &call.id, context);
        }
        #[cfg(feature = "mcp")]
        self.note_call(call, &input);
        let asked = self.hooks.concerned(&occasion).iter().map(|handler| handler.id.clone()).collect();
        self.core.inner.correlation.release(occasion, &input, asked, Instant::now());
        if input == call.input { CallVerdict::Allow } else { CallVerdict::Modify(input) }
    }

    /// Asks about a delegation; gives the arguments, with the prompt as it was decided.
    async fn decide_delegation(&self, call: &Call, subagent: &Subagent, input: Bytes) -> Result<Bytes, String> {
        let session = &self.occasion.session;
        let prompt_at = pointer(&input, &subagent.prompt).ok().flatten();
        let (name, prompt) = (string_at(&input, &subagent.id), string_at(&input, &subagent.prompt));
        if !self.hooks.has(Event::SubagentStart) {
            if let Some(prompt) = prompt {
                self.core.inner.ledger.delegate(session, &prompt);
            }
            return Ok(input);
        }
        let occasion = self.occasion(Event::SubagentStart, name.as_deref(), Some(&call.id));
        let dispatcher = &self.core.inner.dispatcher;
        let (Some(prompt), Some(prompt_at)) = (prompt, prompt_at) else {
            let what = format!("the delegated prompt is not where the configuration says ({})", subagent.prompt);
            let verdict = dispatcher.undecidable(&self.hooks, &occasion, FailureKind::MalformedInput, &what);
            return match verdict.decision {
                Decision::Deny { reason, .. } => Err(reason),
                _ => Ok(input),
            };
        };
        let detail = Detail::SubagentStart { subagent: name.unwrap_or_default(), prompt: prompt.clone() };
        let Verdict { decision, context, .. } = dispatcher.gate(&self.hooks, &occasion, detail, None).await;
        let mut decided = match decision {
            Decision::Deny { reason, .. } => return Err(reason),
            Decision::Modify(Replacement::Text(text)) => text,
            _ => prompt.clone(),
        };
        for added in &context {
            decided += "\n\n";
            decided += &mark(&added.text, &[("event", "SubagentStart"), ("handler", &added.handler)]);
        }
        self.core.inner.ledger.delegate(session, &decided);
        if decided == prompt {
            return Ok(input);
        }
        let mut edits = Edits::default();
        edits.replace(prompt_at, quote(&decided));
        Ok(edits.apply(&input).to_bytes())
    }

    /// What the handlers' failure modes say about a call that cannot be judged.
    pub(super) fn decide_unjudgeable(&self, call: &Call, why: &Unjudgeable) -> CallVerdict {
        let what = format!("the call of {} cannot be judged: {}", call.name, why.what);
        let mut events = vec![(Event::PreToolUse, Some(call.name.as_str()))];
        if self.core.inner.subagents.iter().any(|subagent| *subagent.tool == *call.name) {
            events.push((Event::SubagentStart, None));
        }
        for (event, name) in events {
            let occasion = self.occasion(event, name, Some(&call.id));
            let verdict = self.core.inner.dispatcher.undecidable(&self.hooks, &occasion, why.kind, &what);
            if let Decision::Deny { reason, .. } = verdict.decision {
                return self.deny(call, reason);
            }
        }
        CallVerdict::Allow
    }

    /// A refusal as the model reads it. A model that asks for the same again is told that asking does not help.
    fn deny(&self, call: &Call, reason: String) -> CallVerdict {
        let same = Hasher::new().with(call.name.as_bytes()).with(&call.input).finish();
        let times = self.thread.count_denial(self.turn(), same);
        if times < 2 {
            return CallVerdict::Deny(reason);
        }
        CallVerdict::Deny(format!(
            "{reason}\nThis is final: the same call was refused {times} times in this turn. Do not ask for it again."
        ))
    }

    /// Asks about the end of the turn.
    pub(super) async fn decide_stop(&self, response: String, stop_reason: String) -> StopVerdict {
        if let Some(message) = self.await_callbacks().await {
            return StopVerdict::Continue(message);
        }
        let max_attempts = self.core.inner.limits.max_stop_retries + 1;
        let attempt = self.thread.stops(self.turn()) + 1;
        let occasion = self.occasion(Event::Stop, None, None);
        let detail = Detail::Stop { response, stop_reason, attempt, max_attempts };
        let verdict = self.core.inner.dispatcher.gate(&self.hooks, &occasion, detail, None).await;
        self.settle_stop(&occasion, verdict.decision, attempt, max_attempts)
    }

    /// There was no time to ask about the end of the turn.
    pub(super) fn give_up_stop(&self) -> StopVerdict {
        let occasion = self.occasion(Event::Stop, None, None);
        let what = "this answer was held as long as it may be";
        let verdict = self.core.inner.dispatcher.undecidable(&self.hooks, &occasion, FailureKind::Timeout, what);
        match verdict.decision {
            Decision::Deny { reason, .. } => StopVerdict::Block(reason),
            _ => StopVerdict::End,
        }
    }

    fn settle_stop(&self, occasion: &Occasion, decision: Decision, attempt: u32, max_attempts: u32) -> StopVerdict {
        let (reason, handler) = match decision {
            Decision::Continue { reason, handler } => (reason, handler),
            // A handler that failed closed has not agreed to the end, and the model can do nothing about it.
            Decision::Deny { reason, .. } => return StopVerdict::Block(reason),
            Decision::Allow | Decision::Modify(_) => return StopVerdict::End,
        };
        if attempt < max_attempts {
            self.thread.count_stop(self.turn());
            return StopVerdict::Continue(reason);
        }
        let handlers = self.hooks.handlers(Event::Stop);
        let mode = handlers.iter().find(|known| known.id == handler).map(|handler| handler.failure_mode);
        let mut record =
            AuditRecord::of(occasion, random_id().into(), AuditOutcome::Capped, Timestamp::now()).because(&reason);
        record.handler_id = Some(handler);
        self.core.audit().record(record);
        match mode {
            Some(FailureMode::Open) => StopVerdict::End,
            _ => StopVerdict::Block(format!("the turn could not be completed after {attempt} attempts: {reason}")),
        }
    }

    /// Keeps something in the audit that no handler was asked about.
    pub(super) fn note(&self, event: Event, call: Option<&Call>, outcome: AuditOutcome, why: &str) {
        let occasion = self.occasion(event, call.map(|call| call.name.as_str()), call.map(|call| call.id.as_str()));
        let record = AuditRecord::of(&occasion, random_id().into(), outcome, Timestamp::now()).because(why);
        self.core.audit().record(record);
    }
}
