//! The chain of one dispatch, without the waiting: what each answer means, who is asked next with what, and what comes
//! of it all.
//!
//! The caller asks the handlers in order. For each it shows [`Chain::shown`] and hands the answer to [`Chain::take`],
//! which says what to record, and what the verdict is as soon as there is one. When nobody is left, [`Chain::finish`]
//! gives the verdict.

use std::borrow::Cow;
use std::sync::Arc;

use super::{AddedContext, Decision, ToolSchema, Verdict};
use crate::audit::AuditOutcome;
use crate::hooks::{
    Answer, Detail, Event, Failure, FailureKind, FailureMode, Handler, OutcomeKind, Redaction, Replacement,
};
use crate::limits::MAX_CONTEXT_BYTES;
use crate::wire::json::quote;

/// What one handler's answer came to, for the audit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ruling {
    pub(super) outcome: AuditOutcome,
    pub(super) failure: Option<FailureKind>,
    pub(super) reason: Option<String>,
}

impl Ruling {
    fn of(outcome: OutcomeKind) -> Self {
        Ruling { outcome: outcome.into(), failure: None, reason: None }
    }
}

/// One dispatch on its way.
pub(super) struct Chain<'a> {
    event: Event,
    /// With the replacements so far.
    detail: Detail,
    tool: Cow<'a, str>,
    redaction: &'a Redaction,
    schema: Option<&'a ToolSchema>,
    replaced: Option<(Replacement, Arc<str>)>,
    context: Vec<AddedContext>,
    context_left: usize,
}

impl<'a> Chain<'a> {
    /// Starts with what happened; `tool` is the name that redaction rules compare.
    pub(super) fn new(
        event: Event,
        detail: Detail,
        tool: Cow<'a, str>,
        redaction: &'a Redaction,
        schema: Option<&'a ToolSchema>,
    ) -> Self {
        let context_left = MAX_CONTEXT_BYTES;
        Chain { event, detail, tool, redaction, schema, replaced: None, context: Vec::new(), context_left }
    }

    /// What the next handler is told.
    pub(super) fn shown(&self) -> Detail {
        self.detail.redacted(self.redaction, &self.tool)
    }

    /// Takes a handler's answer.
    pub(super) fn take(&mut self, handler: &Handler, answer: Result<Answer, Failure>) -> (Ruling, Option<Verdict>) {
        match answer.and_then(|answer| self.accept(handler, answer)) {
            Ok((ruling, decision)) => (ruling, decision.map(|decision| refusal(decision, false))),
            Err(failure) => {
                let (ruling, decision) = failed(self.event, handler, failure);
                (ruling, decision.map(|decision| refusal(decision, true)))
            }
        }
    }

    fn accept(&mut self, handler: &Handler, answer: Answer) -> Result<(Ruling, Option<Decision>), Failure> {
        let id = &handler.id;
        match answer {
            Answer::Pass { context } => {
                self.check_context(context.as_deref())?;
                self.add_context(id, context);
                Ok((Ruling::of(OutcomeKind::Pass), None))
            }
            Answer::Modify { replacement, context } => {
                let replacement = self.complete(replacement);
                self.check_schema(&replacement)?;
                self.check_context(context.as_deref())?;
                self.detail.replace(&replacement);
                self.replaced = Some((replacement, id.clone()));
                self.add_context(id, context);
                Ok((Ruling::of(OutcomeKind::Modify), None))
            }
            Answer::Deny { reason } => {
                let ruling = Ruling { reason: reason.clone(), ..Ruling::of(OutcomeKind::Deny) };
                let reason = reason.unwrap_or_else(|| format!("the policy hook {} refused this", quote(id)));
                Ok((ruling, Some(Decision::Deny { reason, handler: id.clone() })))
            }
            Answer::Continue { reason } => {
                let ruling = Ruling { reason: reason.clone(), ..Ruling::of(OutcomeKind::Continue) };
                let reason = reason
                    .unwrap_or_else(|| format!("the policy hook {} says that this is not complete yet", quote(id)));
                Ok((ruling, Some(Decision::Continue { reason, handler: id.clone() })))
            }
        }
    }

    /// Gives a replacement what was hidden from its author.
    fn complete(&self, replacement: Replacement) -> Replacement {
        match (replacement, &self.detail) {
            (Replacement::Object(object), Detail::PreToolUse { input, .. }) => {
                Replacement::Object(self.redaction.restore(&self.tool, input, object))
            }
            (other, _) => other,
        }
    }

    fn check_schema(&self, replacement: &Replacement) -> Result<(), Failure> {
        let (Replacement::Object(object), Some(schema)) = (replacement, self.schema) else { return Ok(()) };
        schema.validate(object).map_err(|place| {
            Failure::new(FailureKind::Schema, format!("its replacement does not fit the tool's schema {place}"))
        })
    }

    /// The handler that passes what is left for the whole dispatch has failed, so that nothing is cut in silence.
    fn check_context(&self, context: Option<&str>) -> Result<(), Failure> {
        match context {
            Some(text) if text.len() > self.context_left => Err(Failure::new(
                FailureKind::TooLarge,
                format!("the context of all handlers together is over {MAX_CONTEXT_BYTES} bytes"),
            )),
            _ => Ok(()),
        }
    }

    fn add_context(&mut self, id: &Arc<str>, context: Option<String>) {
        if let Some(text) = context {
            self.context_left = self.context_left.saturating_sub(text.len());
            self.context.push(AddedContext { handler: id.clone(), text });
        }
    }

    /// The verdict when nobody refused. The replacement that is about to be used is checked once more: it is the one
    /// thing here that an agent will run.
    pub(super) fn finish(self) -> Verdict {
        let decision = match &self.replaced {
            None => Decision::Allow,
            Some((replacement, handler)) => match self.check_schema(replacement) {
                Ok(()) => Decision::Modify(replacement.clone()),
                Err(failure) => {
                    Decision::Deny { reason: failure_reason(self.event, handler, &failure), handler: handler.clone() }
                }
            },
        };
        match decision {
            Decision::Allow | Decision::Modify(_) => Verdict { decision, context: self.context, failed: false },
            refused => refusal(refused, true),
        }
    }
}

/// A refusal wins over everything that was to be added.
pub(super) fn refusal(decision: Decision, failed: bool) -> Verdict {
    Verdict { decision, context: Vec::new(), failed }
}

/// What a failure means by the handler's failure mode. A refusal that could be read in spite of it stands.
pub(super) fn failed(event: Event, handler: &Handler, failure: Failure) -> (Ruling, Option<Decision>) {
    let failure_kind = Some(failure.kind);
    if let Some(deny) = failure.deny {
        let ruling = Ruling { outcome: AuditOutcome::Deny, failure: failure_kind, reason: deny.reason.clone() };
        let reason = deny.reason.unwrap_or_else(|| format!("the policy hook {} refused this", quote(&handler.id)));
        return (ruling, Some(Decision::Deny { reason, handler: handler.id.clone() }));
    }
    match handler.failure_mode {
        FailureMode::Open => {
            let ruling =
                Ruling { outcome: AuditOutcome::FailedOpen, failure: failure_kind, reason: Some(failure.cause) };
            (ruling, None)
        }
        FailureMode::Closed => {
            let reason = failure_reason(event, &handler.id, &failure);
            let ruling =
                Ruling { outcome: AuditOutcome::FailedClosed, failure: failure_kind, reason: Some(failure.cause) };
            (ruling, Some(Decision::Deny { reason, handler: handler.id.clone() }))
        }
    }
}

/// Why a closed handler's failure refuses: whose fault it is and what happened, never "the user said no".
fn failure_reason(event: Event, handler: &str, failure: &Failure) -> String {
    let what = match failure.kind {
        FailureKind::Transport
        | FailureKind::Timeout
        | FailureKind::BlockedHost
        | FailureKind::TooLargeInput
        | FailureKind::MalformedInput => "could not be asked",
        FailureKind::Status
        | FailureKind::Malformed
        | FailureKind::Outcome
        | FailureKind::TooLarge
        | FailureKind::Schema => "gave no usable answer",
    };
    let so = match event {
        Event::Stop => "so this does not count as complete",
        _ => "so this was refused",
    };
    format!("the policy hook {} {what} ({}), {so}", quote(handler), failure.cause)
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
