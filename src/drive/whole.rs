//! Answers that come in one piece.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;
use http::{Response, header, response};
use http_body_util::{BodyExt, Limited};

use super::answer::uninspectable;
use super::body::GuardedBody;
use super::decode;
use super::exchange::Exchange;
use super::meter;
use super::rebodied;
use crate::Body;
use crate::audit::AuditOutcome;
use crate::hooks::Event;
use crate::intercept::call::judgeable;
use crate::intercept::round::{Billed, CallVerdict, Conclusion, Finished, Policy, StopVerdict, conclude, reasons};
use crate::ledger::{After, AnswerRecord, Attempt, RecordedBlock, Round, Shown, SuppliedResult};
use crate::wire::answer::{Block, BlockKind, Call, Ending, Message};
use crate::wire::codec::Codec;
use crate::wire::json::{Edits, Inserts, Rope, Span, splice};
use crate::wire::protocol::Merged;

/// A round whose calls are decided.
#[derive(Default)]
struct Decided {
    blocks: Vec<RecordedBlock>,
    supplied: Vec<SuppliedResult>,
    shown_calls: usize,
    truncated: bool,
    /// Something must be changed in the message.
    changed: bool,
}

/// The answer under way.
struct Answer {
    exchange: Arc<Exchange>,
    policy: Policy,
    codec: Box<dyn Codec>,
    past: Vec<Round>,
    /// Id and model of the first round.
    head: Option<(String, String)>,
    billed: Billed,
}

/// Reads, decides and answers.
pub(super) async fn run(
    exchange: Arc<Exchange>,
    response: Response<Body>,
    attempt: Option<Attempt>,
) -> Response<GuardedBody> {
    let policy = exchange.policy();
    let codec = policy.protocol.codec(policy.record, policy.max_held);
    let (past, head) = attempt.map_or((Vec::new(), None), |attempt| (attempt.rounds, Some(attempt.head)));
    let mut answer = Answer { exchange, policy, codec, past, head, billed: Billed::default() };

    let (mut parts, body) = response.into_parts();
    // None are kept for its end.
    parts.headers.remove(header::TRAILER);
    let Ok(mut sent) = collect(&answer.exchange, body).await else { return broken(&answer.exchange) };
    loop {
        let limit = answer.exchange.core.inner.limits.max_request_bytes;
        let text = decode::whole(&parts.headers, sent.clone(), limit).await;
        let message = text.and_then(|text| answer.policy.protocol.read_message(&text).map_err(|why| why.to_string()));
        let message = match message {
            Ok(message) => message,
            Err(why) => return uninspectable(&answer.exchange, Response::from_parts(parts, sent.into()), &why),
        };
        match answer.step(&message).await {
            Step::Unchanged => return Response::from_parts(parts, Body::from(sent)).map(Into::into),
            Step::Deliver(body) => return deliver(parts, body).map(Into::into),
            Step::Blocked(reason) => return blocked(&answer.exchange, &reason),
            Step::Next(response) => {
                let (next, body) = response.into_parts();
                let Ok(next_sent) = collect(&answer.exchange, body).await else { return broken(&answer.exchange) };
                // The client keeps the first round's headers; how the body is coded is the last one's.
                parts.headers.remove(header::CONTENT_ENCODING);
                if let Some(coding) = next.headers.get(header::CONTENT_ENCODING) {
                    parts.headers.insert(header::CONTENT_ENCODING, coding.clone());
                }
                sent = next_sent;
            }
        }
    }
}

/// What follows a message.
enum Step {
    Unchanged,
    Deliver(Rope),
    Blocked(String),
    Next(Response<Body>),
}

async fn collect(exchange: &Exchange, body: Body) -> Result<Bytes, ()> {
    let limited = Limited::new(body, exchange.core.inner.limits.max_request_bytes);
    match limited.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => {
            exchange.observe_failure("broken", None, &format!("the model's answer broke off: {error}"));
            Err(())
        }
    }
}

fn broken(exchange: &Exchange) -> Response<GuardedBody> {
    let message = "the model's answer broke off before its end, or is larger than hookgate reads";
    super::route::error(exchange.protocol, http::StatusCode::BAD_GATEWAY, message).map(Into::into)
}

fn blocked(exchange: &Exchange, reason: &str) -> Response<GuardedBody> {
    exchange.observe_failure("hook_blocked", None, reason);
    let message = format!("hook_blocked: {reason}");
    super::route::error(exchange.protocol, http::StatusCode::BAD_REQUEST, &message).map(Into::into)
}

fn deliver(mut parts: response::Parts, body: Rope) -> Response<Body> {
    rebodied::strip_of_body(&mut parts.headers);
    rebodied::whole(parts, body.to_bytes())
}

impl Answer {
    /// Decides about one round and says what follows.
    async fn step(&mut self, message: &Message) -> Step {
        let (id, model) = self.head.get_or_insert_with(|| (message.id.clone(), message.model.clone())).clone();
        self.exchange.commit_lineage(&id, &message.id, &AnswerRecord::default());
        self.billed.add(self.policy.protocol, &message.ending.usage, &message.ending.usage);
        let decided = self.decide(message).await;
        let repeatable = decided.blocks.iter().all(|recorded| recorded.block.json.is_some());
        let finished = Finished {
            shown_calls: decided.shown_calls,
            supplied: &decided.supplied,
            truncated: decided.truncated,
            repeatable: self.policy.record && repeatable,
            past: &self.past,
            stop_reason: &message.ending.stop_reason,
        };
        match conclude(&self.policy, &finished) {
            Conclusion::Deliver => self.finish(message, decided),
            Conclusion::EndWithReason => self.end_with_reason(message, decided),
            Conclusion::Feedback => {
                let supplied = decided.supplied.clone();
                self.close_round(message, decided, After::Results(supplied.clone()));
                match self.next_round(message, &id, &model).await {
                    Some(response) => Step::Next(response),
                    None => self.say_reason(message, &supplied),
                }
            }
            Conclusion::AskStop => {
                let texts = decided.blocks.iter().filter_map(|recorded| match &recorded.block.kind {
                    BlockKind::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                let response = texts.collect::<Vec<_>>().join("\n");
                match self.exchange.decide_stop(response, message.ending.stop_reason.clone()).await {
                    StopVerdict::End => self.finish(message, decided),
                    StopVerdict::Block(reason) => Step::Blocked(reason),
                    StopVerdict::Continue(_) if !repeatable => self.finish(message, decided),
                    StopVerdict::Continue(reason) => {
                        let kept = decided.blocks.clone();
                        self.close_round(message, decided, After::User(reason));
                        match self.next_round(message, &id, &model).await {
                            Some(response) => Step::Next(response),
                            None => {
                                self.past.pop();
                                self.finish(message, Decided { blocks: kept, ..Decided::default() })
                            }
                        }
                    }
                }
            }
        }
    }

    async fn decide(&self, message: &Message) -> Decided {
        let cut = self.policy.protocol.is_cut(&message.ending.stop_reason);
        let last = message.blocks.len().saturating_sub(1);
        let asked: Vec<_> = message
            .blocks
            .iter()
            .enumerate()
            .map(|(index, (_, block))| self.decide_block(block, cut && index == last).boxed())
            .collect();
        let verdicts = join_all(asked).await;
        let mut decided = Decided::default();
        for ((_, block), verdict) in message.blocks.iter().zip(verdicts) {
            self.settle(block, verdict, &mut decided);
        }
        decided
    }

    /// The verdict about a block; `None` for a call that was cut off.
    async fn decide_block(&self, block: &Block, cut: bool) -> Option<CallVerdict> {
        match &block.kind {
            BlockKind::Call(call) if self.policy.is_gated(&call.name) => {
                match judgeable(&call.input, self.policy.max_held) {
                    _ if cut => None,
                    Ok(()) => Some(self.exchange.decide_call(call).await),
                    Err(why) => Some(self.exchange.decide_unjudgeable(call, &why)),
                }
            }
            _ => Some(CallVerdict::Allow),
        }
    }

    fn settle(&self, block: &Block, verdict: Option<CallVerdict>, decided: &mut Decided) {
        let mut recorded = RecordedBlock { block: block.clone(), shown: Shown::Both };
        if let BlockKind::Call(call) = &block.kind {
            match verdict {
                None => return self.withhold(call, decided),
                Some(CallVerdict::Allow) => decided.shown_calls += 1,
                Some(verdict @ (CallVerdict::Deny(_) | CallVerdict::Answer(_))) => {
                    decided.supplied.extend(SuppliedResult::of(&call.id, &verdict));
                    recorded.shown = Shown::ModelOnly;
                    decided.changed = true;
                }
                Some(CallVerdict::Modify(input)) => match self.codec.with_input(block, input) {
                    Some(modified) => {
                        recorded.block = modified;
                        decided.shown_calls += 1;
                        decided.changed = true;
                    }
                    // What cannot be rewritten must not run as it was.
                    None => return self.withhold(call, decided),
                },
            }
        }
        decided.blocks.push(recorded);
    }

    fn withhold(&self, call: &Call, decided: &mut Decided) {
        decided.truncated = true;
        decided.changed = true;
        let why = "the call was cut off by the limit of tokens";
        self.exchange.note(Event::PreToolUse, Some(call), AuditOutcome::Truncated, why);
    }

    fn close_round(&mut self, message: &Message, decided: Decided, after: After) {
        let output_tokens = message.ending.usage.number(self.policy.protocol.output_figure());
        self.past.push(Round { blocks: decided.blocks, after, output_tokens });
    }

    async fn next_round(&self, message: &Message, id: &str, model: &str) -> Option<Response<Body>> {
        self.exchange.keep_attempt(self.past.clone(), (id, model), &message.id);
        self.exchange.next_round(&self.past, &message.id, "application/json").await
    }

    fn commit(&self, last_id: &str, rounds: Vec<Round>) {
        let record = AnswerRecord { rounds };
        let id = self.head.as_ref().map_or("", |(id, _)| id.as_str());
        self.exchange.observe_answer(&record);
        meter::billed(&self.exchange, self.billed);
        self.exchange.commit(record, id, last_id);
    }

    fn finish(&mut self, message: &Message, decided: Decided) -> Step {
        let shown_calls = decided.shown_calls;
        let supplied = decided.supplied;
        let after = if supplied.is_empty() { After::Nothing } else { After::Results(supplied) };
        let round = Round { blocks: decided.blocks, after, output_tokens: 0 };
        let mut rounds = self.past.clone();
        rounds.push(round);
        if shown_calls > 0 && rounds.len() > 1 {
            self.exchange.forget_attempt();
        }
        self.commit(&message.id, rounds.clone());
        if self.past.is_empty() {
            return if decided.changed { Step::Deliver(edit(message, &rounds[0].blocks)) } else { Step::Unchanged };
        }
        let spent = self.past.iter().map(|round| round.output_tokens).sum();
        let usage = self.codec.visible_usage(&message.ending.usage, &message.ending.usage, spent);
        let ending = Ending { stop_reason: message.ending.stop_reason.clone(), usage };
        Step::Deliver(self.merge(message, &rounds, ending))
    }

    fn end_with_reason(&mut self, message: &Message, decided: Decided) -> Step {
        let supplied = decided.supplied.clone();
        self.close_round(message, decided, After::Results(supplied.clone()));
        self.say_reason(message, &supplied)
    }

    /// The refusals become the answer's last text.
    fn say_reason(&mut self, message: &Message, supplied: &[SuppliedResult]) -> Step {
        let block = self.codec.text(&reasons(supplied));
        let mut rounds = self.past.clone();
        let blocks = vec![RecordedBlock { block, shown: Shown::Both }];
        rounds.push(Round { blocks, ..Round::default() });
        self.commit(&message.id, rounds.clone());
        let mut usage = message.ending.usage.clone();
        let spent: u64 = self.past.iter().map(|round| round.output_tokens).sum();
        usage.set(self.policy.protocol.output_figure(), spent.to_string());
        let ending = Ending { stop_reason: self.policy.protocol.end_of_turn().to_owned(), usage };
        Step::Deliver(self.merge(message, &rounds, ending))
    }

    fn merge(&self, message: &Message, rounds: &[Round], ending: Ending) -> Rope {
        let (id, model) = self.head.as_ref().map_or(("", ""), |(id, model)| (id, model));
        let shown = rounds.iter().flat_map(|round| &round.blocks).filter(|block| block.shown == Shown::Both);
        let blocks = shown.filter_map(|recorded| recorded.block.json.clone()).collect();
        self.policy.protocol.merge(message, &Merged { id, model, blocks, ending })
    }
}

/// Takes out and rewrites calls in the one round that the answer has.
fn edit(message: &Message, blocks: &[RecordedBlock]) -> Rope {
    let mut edits = Edits::default();
    let mut left = blocks.iter().peekable();
    let mut drop = Vec::with_capacity(message.blocks.len());
    for (span, block) in &message.blocks {
        let same = |recorded: &&RecordedBlock| match (&recorded.block.kind, &block.kind) {
            (BlockKind::Call(one), BlockKind::Call(other)) => one.id == other.id,
            (one, other) => one == other,
        };
        match left.next_if(same) {
            Some(recorded) if recorded.shown == Shown::Both => {
                drop.push(false);
                if let Some(json) = recorded.block.json.as_ref().filter(|_| recorded.block != *block) {
                    edits.replace(*span, json.clone());
                }
            }
            _ => drop.push(true),
        }
    }
    let spans: Vec<Span> = message.blocks.iter().map(|(span, _)| *span).collect();
    splice(&mut edits, &spans, &drop, Inserts::default());
    edits.apply(&message.text)
}
