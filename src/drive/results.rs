//! Telling what came of tools: results that the client sends, and results of tools that the provider ran.

use std::time::Instant;

use bytes::Bytes;

use super::exchange::Exchange;
use crate::hooks::{Detail, Event};
use crate::id::Hasher;
use crate::ledger::Round;
use crate::wire::answer::{BlockKind, Call};
use crate::wire::conversation::{Conversation, PartKind, Role};
use crate::wire::json::{Str, Value, parse_tree, pointer};

/// Tells about the results that this request brings for the first time.
pub(super) fn observe(exchange: &Exchange) {
    let hooks = &exchange.hooks;
    if ![Event::PostToolUse, Event::PostToolUseFailure, Event::SubagentStop].into_iter().any(|event| hooks.has(event)) {
        return;
    }
    let conversation = &exchange.conversation;
    let last_answer = conversation.messages.iter().rposition(|message| message.role == Role::Assistant);
    let first = last_answer.map_or(0, |at| at + 1);
    for (offset, message) in conversation.since_last_answer().iter().enumerate() {
        for part in &message.parts {
            // Words of the user stay in what is told: a tool that forges them must not hide its output so.
            let PartKind::Result { id, failed, content, .. } = &part.kind else { continue };
            let id = conversation.string(*id);
            // The same id at another place of the history is another call: some servers number them anew in each answer.
            let place = exchange.anchors().before[first + offset];
            let mut result = Hasher::new().with(id.as_bytes());
            result.digest(place);
            if !exchange.thread.first_result(result.finish()) {
                continue;
            }
            let content = content.map_or(Bytes::from_static(b"null"), |span| conversation.slice(span));
            let Some(call) = find_call(conversation, &id).or_else(|| exchange.thread.call(&id)) else { continue };
            // What a route to tools saw was told there.
            let tenant = &exchange.occasion.session.tenant;
            if !exchange.core.inner.correlation.was_told(tenant, &call, Instant::now()) {
                tell(exchange, &call, *failed, content, false);
            }
            end_subagent(exchange, &call, *failed, content_text(conversation, part.span));
        }
    }
}

/// The call that a result answers.
fn find_call(conversation: &Conversation, wanted: &str) -> Option<Call> {
    let parts = conversation.messages.iter().rev().filter(|message| message.role == Role::Assistant);
    parts.flat_map(|message| &message.parts).find_map(|part| match part.kind {
        PartKind::Call { id, name, input } if Str::at(&conversation.text, id).is(wanted) => Some(Call {
            id: wanted.to_owned(),
            name: conversation.string(name),
            input: input.map_or(Bytes::from_static(b"{}"), |span| conversation.slice(span)),
        }),
        _ => None,
    })
}

fn tell(exchange: &Exchange, call: &Call, failed: bool, content: Bytes, executed_upstream: bool) {
    let (tool_name, input, truncated) = (call.name.clone(), Some(call.input.clone()), false);
    let (event, detail) = if failed {
        let detail = Detail::PostToolUseFailure { tool_name, input, error: content, truncated, executed_upstream };
        (Event::PostToolUseFailure, detail)
    } else {
        let failure_known = true;
        let detail =
            Detail::PostToolUse { tool_name, input, result: content, truncated, executed_upstream, failure_known };
        (Event::PostToolUse, detail)
    };
    let occasion = exchange.occasion(event, Some(&call.name), Some(&call.id));
    exchange.core.inner.dispatcher.observe(&exchange.hooks, occasion, detail);
}

/// The result of a delegating call is the end of the sub-agent.
fn end_subagent(exchange: &Exchange, call: &Call, failed: bool, text: String) {
    let Some(subagent) = exchange.core.inner.subagents.iter().find(|subagent| *subagent.tool == *call.name) else {
        return;
    };
    let name = string_at(&call.input, &subagent.id).unwrap_or_default();
    let mut occasion = exchange.occasion(Event::SubagentStop, Some(&name), Some(&call.id));
    let agent = string_at(&call.input, &subagent.prompt)
        .and_then(|prompt| exchange.core.inner.ledger.delegated_agent(&occasion.session, &prompt));
    if let Some(agent) = agent {
        occasion.parent_agent_id = occasion.agent_id.replace(agent);
    }
    let detail = Detail::SubagentStop { subagent: name, ok: !failed, text, truncated: false };
    exchange.core.inner.dispatcher.observe(&exchange.hooks, occasion, detail);
}

/// The string that a JSON Pointer names.
pub(super) fn string_at(json: &[u8], at: &str) -> Option<String> {
    let span = pointer(json, at).ok()??;
    span.of(json).starts_with(b"\"").then(|| Str::at(json, span).decode().into_owned())
}

/// The text of a result: a string, or text parts.
fn content_text(conversation: &Conversation, part: crate::wire::json::Span) -> String {
    let json = conversation.slice(part);
    let Ok(Some(content)) = pointer(&json, "/content") else { return String::new() };
    let Ok(tree) = parse_tree(content.of(&json)) else { return String::new() };
    match tree.value {
        Value::String(string) => string.decode().into_owned(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| string_at(part.span.of(content.of(&json)), "/text"));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Tells about tools that the provider ran within an answer.
pub(super) fn observe_provider(exchange: &Exchange, rounds: &[Round]) {
    for round in rounds {
        for recorded in &round.blocks {
            let BlockKind::ProviderResult { id, failed, content } = &recorded.block.kind else { continue };
            let call = round.blocks.iter().find_map(|known| match &known.block.kind {
                BlockKind::ProviderCall(call) if call.id == *id => Some(call),
                _ => None,
            });
            if let Some(call) = call {
                tell(exchange, call, *failed, content.clone(), true);
            }
        }
    }
}
