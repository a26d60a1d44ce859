//! Deciding about what a request asks: its prompts, and the declared tools that the provider would run.

use futures_util::{FutureExt, StreamExt, stream};

use super::exchange::Exchange;
use crate::dispatch::{AddedContext, Decision};
use crate::hooks::{Attachment, Detail, Event, Replacement};
use crate::intercept::context::mark;
use crate::ledger::{Known, Prompt, PromptDecision, Spoken, View};
use crate::limits::MAX_CONCURRENT_REPLAYS;
use crate::wire::conversation::{Part, PartKind, Role, Tool};

/// Decides about every prompt that has no decision yet. Gives the reason when one is refused that the answer would be to:
/// the last one, or one of the same turn before it.
pub(super) async fn decide(exchange: &Exchange) -> Option<String> {
    let messages = &exchange.conversation.messages;
    let indexes: Vec<usize> = (0..messages.len()).filter(|index| messages[*index].is_prompt()).collect();
    // A background task is no beginning of a conversation.
    let starts = !exchange.side && exchange.occasion.task_id.is_none();
    let started = if starts { start_session(exchange).await } else { Vec::new() };
    let (last, earlier) = indexes.split_last()?;
    if exchange.hooks.has(Event::UserPromptSubmit) {
        let asked: Vec<_> = earlier.iter().map(|index| decide_one(exchange, *index, Vec::new()).boxed()).collect();
        stream::iter(asked).buffer_unordered(MAX_CONCURRENT_REPLAYS).collect::<Vec<()>>().await;
    }
    if exchange.hooks.has(Event::UserPromptSubmit) || !started.is_empty() {
        decide_one(exchange, *last, started).await;
    }
    let ledger = &exchange.core.inner.ledger;
    if ledger.is_blank() {
        return None;
    }
    // What is typed into a turn that was refused does not bring it back: it stands within results of that turn.
    let turn = messages[..=*last].iter().rposition(|message| message.begins_turn()).unwrap_or_default();
    let of_turn = indexes.iter().rev().take_while(|index| **index >= turn);
    let mut prompts = of_turn.filter_map(|index| spoken(exchange, *index).own);
    prompts.find_map(|prompt| view(exchange).prompt(prompt.id)?.denied)
}

fn view(exchange: &Exchange) -> View<'_> {
    View { ledger: &exchange.core.inner.ledger, thread: &exchange.thread }
}

fn spoken(exchange: &Exchange, index: usize) -> Spoken {
    Spoken::in_message(&exchange.conversation, exchange.anchors(), index, &view(exchange))
}

/// The first request of a session tells so, and may bring context that goes behind its prompt.
async fn start_session(exchange: &Exchange) -> Vec<String> {
    let once = exchange.core.inner.ledger.session_start(&exchange.occasion.session);
    let mut context = Vec::new();
    once.get_or_init(|| async {
        let known = exchange.conversation.messages.iter().any(|message| message.role == Role::Assistant);
        let source = if known || exchange.conversation.previous.is_some() { "resume" } else { "new" };
        let occasion = exchange.occasion(Event::SessionStart, None, None);
        let dispatcher = &exchange.core.inner.dispatcher;
        let added = dispatcher.observe_awaited(&exchange.hooks, &occasion, Detail::SessionStart { source }).await;
        context = marked(Event::SessionStart, &added);
    })
    .await;
    context
}

/// What handlers added, as the model reads it.
pub(super) fn marked(event: Event, added: &[AddedContext]) -> Vec<String> {
    added.iter().map(|added| mark(&added.text, &[("event", event.name()), ("handler", &added.handler)])).collect()
}

async fn decide_one(exchange: &Exchange, index: usize, before: Vec<String>) {
    let ledger = &exchange.core.inner.ledger;
    let conversation = &exchange.conversation;
    let Some(Prompt { id: prompt, parts }) = spoken(exchange, index).own else { return };
    let replayed = conversation.messages[index..].iter().any(|message| message.role == Role::Assistant);
    let now = std::time::Instant::now();
    let once = if replayed { exchange.thread.prompt(prompt, now) } else { exchange.thread.current_prompt(prompt, now) };
    let decide = || async {
        // A history that another session of the tenant had: what was decided there holds.
        if replayed && let Some(decision) = ledger.shared_prompt(&exchange.thread, prompt) {
            return decision;
        }
        let mut decision = PromptDecision { context: before, ..PromptDecision::default() };
        if exchange.hooks.has(Event::UserPromptSubmit) {
            let occasion = exchange.occasion(Event::UserPromptSubmit, None, None);
            let detail = detail(exchange, &conversation.messages[index].parts[parts], replayed);
            let verdict = exchange.core.inner.dispatcher.gate(&exchange.hooks, &occasion, detail, None).await;
            decision.context.extend(marked(Event::UserPromptSubmit, &verdict.context));
            match verdict.decision {
                Decision::Deny { reason, .. } => {
                    let failed = verdict.failed;
                    decision = PromptDecision { denied: Some(reason), failed, ..PromptDecision::default() };
                }
                Decision::Modify(Replacement::Text(text)) => decision.replacement = Some(text),
                // Not an outcome of this event: the dispatcher lets no handler answer so.
                Decision::Allow | Decision::Modify(Replacement::Object(_)) | Decision::Continue { .. } => {}
            }
        }
        ledger.share_prompt(&exchange.thread, prompt, decision.clone());
        decision
    };
    once.get_or_init(decide).await;
}

fn detail(exchange: &Exchange, parts: &[Part], replayed: bool) -> Detail {
    let conversation = &exchange.conversation;
    let mut attachments = Vec::new();
    let mut client_context = Vec::new();
    for part in parts {
        match &part.kind {
            PartKind::Media { kind, media_type } => attachments.push(Attachment {
                kind: conversation.string(*kind),
                media_type: media_type.map(|span| conversation.string(span)),
            }),
            PartKind::ClientContext(span) => client_context.push(conversation.string(*span)),
            _ => {}
        }
    }
    let prompt = conversation.said(parts);
    let source = parts.iter().any(Part::is_typed).then_some("result");
    Detail::UserPromptSubmit { prompt, attachments, client_context, replayed, side: exchange.side, source }
}

/// Asks about declared tools that the provider would run by itself, once a turn; gives the names that are refused. A tool
/// that cannot be stopped in the answer must be stopped here.
pub(super) async fn decide_declared(exchange: &Exchange) -> Vec<String> {
    let conversation = &exchange.conversation;
    let mut refused = Vec::new();
    if exchange.counting || !exchange.hooks.has(Event::PreToolUse) {
        return refused;
    }
    for (tool, server) in conversation
        .tools
        .iter()
        .map(|tool| (tool, false))
        .chain(conversation.servers.iter().map(|tool| (tool, true)))
        .filter(|(tool, _)| tool.provider_executed)
    {
        for name in names_to_ask(exchange, tool, server) {
            if refused.contains(&tool.name) {
                break;
            }
            let once = exchange.thread.declared(exchange.turn(), &name);
            let verdict = once.get_or_init(|| ask_declared(exchange, tool, &name)).await;
            // A declaration cannot be rewritten by one call's arguments, so a rewrite is a refusal too.
            if verdict.decision != Decision::Allow {
                refused.push(tool.name.clone());
            }
        }
    }
    refused
}

async fn ask_declared(exchange: &Exchange, tool: &Tool, name: &str) -> crate::dispatch::Verdict {
    let occasion = exchange.occasion(Event::PreToolUse, Some(name), None);
    let input = exchange.conversation.slice(tool.span);
    let detail = Detail::PreToolUse { tool_name: name.to_owned(), input, server: None, declared: true };
    exchange.core.inner.dispatcher.gate(&exchange.hooks, &occasion, detail, None).await
}

/// The names under which handlers may want to decide about a declared tool. A server's own tools are not known, so a
/// matcher that names one of them is asked under that name.
fn names_to_ask(exchange: &Exchange, tool: &Tool, server: bool) -> Vec<String> {
    let mut names = Vec::new();
    if exchange.hooks.matching(Event::PreToolUse, Some(&tool.name)).next().is_some() {
        names.push(tool.name.clone());
    }
    if server || tool.name.starts_with("mcp__") {
        let prefix = format!("{}__", tool.name);
        let matchers = exchange.hooks.handlers(Event::PreToolUse).iter().filter_map(|handler| handler.matcher.names());
        for name in matchers.flatten().filter(|name| name.starts_with(&prefix)) {
            if !names.iter().any(|known| **known == **name) {
                names.push(name.to_string());
            }
        }
    }
    names
}
