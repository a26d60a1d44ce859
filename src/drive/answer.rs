//! From the upstream's first byte to the client's: which way an answer is inspected.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};

use super::body::GuardedBody;
use super::exchange::{Exchange, unreachable_upstream};
use super::route::error;
use super::{results, stream, whole};
use crate::Body;
use crate::audit::AuditOutcome;
use crate::hooks::{Detail, Event};
use crate::ledger::{AnswerRecord, Attempt, Lineage, Round, told};
use crate::wire::answer::BlockKind;

/// Calls the upstream and inspects its answer. `sent` is the request's body as received.
pub(super) async fn run(exchange: Arc<Exchange>, sent: Bytes) -> Response<GuardedBody> {
    let inspect = !exchange.counting
        && (!exchange.hooks.is_empty()
            || exchange.conversation.server_history
            || exchange.offers_callbacks()
            || exchange.correlates());
    let attempt = if inspect && exchange.thread.has_attempts() {
        exchange.thread.attempt(exchange.retry_key(), Instant::now())
    } else {
        None
    };
    let resumed =
        attempt.and_then(|attempt| Some((exchange.next_request(&attempt.rounds, &attempt.last_id)?, attempt)));
    let (request, attempt) = match resumed {
        Some((request, attempt)) => (request, Some(attempt)),
        None => (exchange.first_request(sent, inspect), None),
    };
    let response = match exchange.upstream.call(request).await {
        Ok(response) => response,
        Err(failure) => {
            exchange.observe_failure("transport", None, &failure.to_string());
            return unreachable_upstream(exchange.protocol, &failure).map(Into::into);
        }
    };
    if !inspect {
        return response.map(Into::into);
    }
    if !response.status().is_success() {
        let status = response.status();
        exchange.observe_failure("status", Some(status), &format!("the provider answered {status}"));
        return response.map(Into::into);
    }
    exchange.messages_arrived();
    match media_type(response.headers()).as_str() {
        "text/event-stream" => stream::run(exchange, response, attempt).await,
        "application/json" => whole::run(exchange, response, attempt).await,
        other => uninspectable(&exchange, response, &format!("its media type is {other:?}")),
    }
}

/// An answer that cannot be read is passed on only when nothing must be decided about it.
pub(super) fn uninspectable(exchange: &Exchange, response: Response<Body>, why: &str) -> Response<GuardedBody> {
    let policy = exchange.policy();
    if policy.gated.is_none() && !policy.stop_gated {
        exchange.note(Event::PreToolUse, None, AuditOutcome::NotScanned, why);
        return response.map(Into::into);
    }
    let message = format!("hookgate cannot apply the configured policy to the model's answer: {why}");
    exchange.observe_failure("uninspectable", Some(response.status()), &message);
    error(exchange.protocol, StatusCode::BAD_GATEWAY, &message).map(Into::into)
}

/// The media type without parameters, in lower case; the request's own wish to stream does not matter.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl Exchange {
    /// The request that goes on after these rounds; `None` when one of them cannot be said again.
    pub(super) fn next_request(&self, rounds: &[Round], last_id: &str) -> Option<http::Request<Body>> {
        let server_history = self.conversation.server_history;
        let told_only = rounds.len().saturating_sub(1);
        let mut messages = Vec::new();
        for (index, round) in rounds.iter().enumerate() {
            if !server_history {
                let parts = round.model_parts()?;
                if !parts.is_empty() {
                    messages.push(self.protocol.assistant_message(&parts));
                }
            }
            if !server_history || index == told_only {
                messages.extend(told(self.protocol, round));
            }
        }
        let output_tokens = rounds.iter().map(|round| round.output_tokens).sum();
        Some(self.continuation(messages, Some(last_id).filter(|id| !id.is_empty()), output_tokens))
    }

    /// Calls the upstream for the next round. A failure before its first byte is tried again: the client has been given
    /// the beginning of an answer, and cannot.
    pub(super) async fn next_round(&self, rounds: &[Round], last_id: &str, media: &str) -> Option<Response<Body>> {
        const PAUSES_MS: [u64; 3] = [0, 500, 1500];
        for pause in PAUSES_MS {
            tokio::time::sleep(std::time::Duration::from_millis(pause)).await;
            match self.upstream.call(self.next_request(rounds, last_id)?).await {
                Ok(response) if response.status().is_success() => {
                    if media_type(response.headers()) == media {
                        self.held_messages_arrived();
                        return Some(response);
                    }
                    tracing::warn!("a continuation was answered in another media type");
                    return None;
                }
                Ok(response) => {
                    let status = response.status();
                    self.observe_failure("status", Some(status), &format!("the provider answered {status}"));
                    if !(status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS) {
                        return None;
                    }
                }
                Err(failure) => self.observe_failure("transport", None, &failure.to_string()),
            }
        }
        None
    }

    /// Keeps the completed rounds of this answer for a retry of its request.
    pub(super) fn keep_attempt(&self, rounds: Vec<Round>, head: (&str, &str), last_id: &str) {
        let head = (head.0.to_owned(), head.1.to_owned());
        let attempt = Attempt { rounds, head, last_id: last_id.to_owned(), at: Some(Instant::now()) };
        self.thread.keep_attempt(self.retry_key(), attempt);
    }

    /// A retry must start afresh: the client is about to act on the answer.
    pub(super) fn forget_attempt(&self) {
        if self.thread.has_attempts() {
            self.thread.forget_attempt(self.retry_key());
        }
    }

    /// Records the answer before a frame that depends on it leaves.
    pub(super) fn commit(&self, record: AnswerRecord, id: &str, last_id: &str) {
        self.commit_lineage(id, last_id, &record);
        if record.differs() {
            self.core.inner.ledger.commit_answer(&self.thread, self.anchors().end, record);
        }
    }

    /// With server-side history, the client will name the first round's id: records what it stands for.
    pub(super) fn commit_lineage(&self, id: &str, last_id: &str, record: &AnswerRecord) {
        if !self.conversation.server_history || id.is_empty() {
            return;
        }
        for recorded in record.shown() {
            if let BlockKind::Call(call) = &recorded.block.kind {
                self.thread.keep_call(call);
            }
        }
        let lineage = Lineage {
            thread: self.thread.key.clone(),
            real: (last_id != id && !last_id.is_empty()).then(|| last_id.to_owned()),
            missing: record.open_results().to_vec(),
            turn: self.turn(),
            tools: self.declared_tools(),
        };
        self.core.inner.ledger.commit_lineage(&self.thread, id.to_owned(), lineage);
    }

    /// Remembers what was handed to sub-agents by calls that nobody was asked about, so that their end is told once.
    fn note_delegations(&self, record: &AnswerRecord) {
        for recorded in record.shown() {
            let BlockKind::Call(call) = &recorded.block.kind else { continue };
            let subagent = self.core.inner.subagents.iter().find(|subagent| *subagent.tool == *call.name);
            if let Some(prompt) = subagent.and_then(|subagent| results::string_at(&call.input, &subagent.prompt)) {
                self.core.inner.ledger.delegate(&self.occasion.session, &prompt);
            }
        }
    }

    /// Tells observers what a finished answer brought.
    pub(super) fn observe_answer(&self, record: &AnswerRecord) {
        results::observe_provider(self, &record.rounds);
        self.note_delegations(record);
        let calls = record.shown().any(|recorded| matches!(recorded.block.kind, BlockKind::Call(_)));
        let Some(agent) = self.occasion.agent_id.as_ref().filter(|_| !calls && !self.side) else { return };
        // The end of a sub-agent that a known call started is told with that call's result.
        let mut prompts = self.conversation.messages.iter().filter(|message| message.begins_turn());
        let prompt = prompts.next().map(|message| self.conversation.said(&message.parts));
        let session = &self.occasion.session;
        if prompt.is_some_and(|prompt| self.core.inner.ledger.is_delegated(session, &prompt, agent)) {
            return;
        }
        let texts = record.shown().filter_map(|recorded| match &recorded.block.kind {
            BlockKind::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let detail = Detail::SubagentStop { subagent: agent.to_string(), ok: true, text, truncated: false };
        let occasion = self.occasion(Event::SubagentStop, Some(agent), None);
        self.core.inner.dispatcher.observe(&self.hooks, occasion, detail);
    }
}
