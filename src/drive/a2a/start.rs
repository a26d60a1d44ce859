//! Deciding about a delegation.

use crate::dispatch::{Decision, Verdict};
use crate::drive::tool::ToolPlane;
use crate::hooks::{Detail, Event, Replacement};
use crate::intercept::context::mark;
use crate::wire::a2a::Send;
use crate::wire::json::Edits;

/// Asks about a delegation. Gives the edits that its message needs, or the reason of its refusal.
pub(super) async fn decide(plane: &ToolPlane, send: &Send) -> Result<Edits, String> {
    let occasion = plane.occasion(Event::SubagentStart);
    let mut edits = Edits::default();
    if plane.hooks.concerned(&occasion).is_empty() {
        return Ok(edits);
    }
    let subagent = occasion.name.as_deref().unwrap_or_default().to_owned();
    let detail = Detail::SubagentStart { subagent, prompt: send.prompt.clone() };
    let dispatcher = &plane.core.inner.dispatcher;
    let Verdict { decision, context, .. } = dispatcher.gate(&plane.hooks, &occasion, detail, None).await;
    let replacement = match decision {
        Decision::Deny { reason, .. } => return Err(reason),
        Decision::Modify(Replacement::Text(text)) => Some(text),
        // The event has no other outcomes.
        Decision::Allow | Decision::Continue { .. } | Decision::Modify(Replacement::Object(_)) => None,
    };
    let mut added = String::new();
    for context in &context {
        added.push_str("\n\n");
        added.push_str(&mark(&context.text, &[("event", "SubagentStart"), ("handler", &context.handler)]));
    }
    match replacement.filter(|text| *text != send.prompt) {
        Some(text) => send.replace_prompt(&(text + &added), &mut edits),
        None if added.is_empty() => {}
        None => send.append_to_prompt(&added, &mut edits),
    }
    Ok(edits)
}
