//! One streamed answer as the client sees it, over all its rounds with the model.
//!
//! # Contract
//! The caller gives what happens, with the current time: [`chunk`](Stream::chunk) for bytes of the provider's answer,
//! [`end_of_input`](Stream::end_of_input) when they end, [`verdict`](Stream::verdict), [`stop_verdict`](Stream::stop_verdict),
//! [`committed`](Stream::committed), [`round`](Stream::round) or [`round_failed`](Stream::round_failed) for what an
//! [`Action`] asked for, [`timeout`](Stream::timeout) when [`deadline`](Stream::deadline) has come. After each it drains
//! [`output`](Stream::output) (bytes for the client, in order) and then [`action`](Stream::action).
//!
//! 1. Bytes that nothing must be decided about leave in the call that brought them, as slices of what came.
//! 2. A call that must be decided leaves with its verdict; everything after it waits behind it, in order.
//! 3. No frame that depends on a record leaves before the record is committed.
//! 4. Whatever way the input ends, a call without a verdict never leaves.
//! 5. Once [`is_ended`](Stream::is_ended), no more output comes and the input may be dropped.

mod action;
mod alive;
mod ending;
mod hold;
mod out;
mod queue;
mod record;

use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;

pub(crate) use self::action::Action;
use self::hold::Hold;
use self::out::Out;
use self::queue::{Item, Queue, Queued};
use self::record::Recorder;
use super::call::{Unjudgeable, judgeable, too_large};
use super::round::{Billed, CallVerdict, Policy, StopVerdict};
use crate::hooks::FailureKind;
use crate::ledger::{After, AnswerRecord, Round, Shown, SuppliedResult};
use crate::wire::answer::{Block, BlockKind, Ending, Usage};
use crate::wire::codec::{Codec, Frame, Scan};
use crate::wire::json::JsonError;
use crate::wire::sse::Splitter;

/// How long a finished call waits for the event behind it, which comes at once unless the provider stalls. A call that
/// the provider's limit cut off can look whole; only the event behind it tells.
const CUT_GRACE: Duration = Duration::from_millis(100);

/// Where the answer stands.
#[derive(Debug)]
enum Phase {
    /// Bytes of the provider are read.
    Reading,
    /// The end of the turn is being decided.
    AskedStop,
    /// The next round was asked for.
    AwaitingRound { because: Because },
    /// The end waits for its commit.
    Finishing,
    /// Nothing more comes. `plain`: the provider's own end was passed on, so bytes behind it are too.
    Ended { plain: bool },
}

/// Why there is another round.
#[derive(Debug)]
enum Because {
    Denied,
    Stop,
}

/// See the module.
pub(crate) struct Stream {
    codec: Box<dyn Codec>,
    policy: Policy,
    splitter: Splitter,
    queue: Queue,
    out: Out,
    actions: VecDeque<Action>,
    phase: Phase,
    hold: Hold,
    recorder: Recorder,
    /// The number that the client's next block gets.
    next_number: u64,
    /// Calls of this answer by slot: the pending ones are `Some`.
    slots: Vec<Option<Queued>>,
    /// A finished call, and until when it waits for the next event, which tells whether it was cut off.
    complete: Option<(usize, Instant)>,
    supplied: Vec<SuppliedResult>,
    shown_calls: usize,
    truncated: bool,
    head: Option<(String, String)>,
    last_id: String,
    started: Usage,
    output_before: u64,
    billed: Billed,
    ending: Option<(Ending, Bytes, Option<Range<usize>>)>,
    done: Option<Bytes>,
    /// A text block of hookgate's own that is open to keep the stream alive.
    filler: Option<u64>,
    awaiting_commit: bool,
    /// An event of unknown type was seen in this answer.
    unknown_seen: bool,
}

impl Stream {
    /// The machine of a new answer.
    pub(crate) fn new(policy: Policy) -> Self {
        Stream {
            codec: policy.protocol.codec(policy.record, policy.max_held),
            splitter: Splitter::new(policy.max_held),
            queue: Queue::default(),
            out: Out::default(),
            actions: VecDeque::new(),
            phase: Phase::Reading,
            hold: Hold::new(policy.keepalive, policy.max_hold),
            recorder: Recorder::default(),
            next_number: 0,
            slots: Vec::new(),
            complete: None,
            supplied: Vec::new(),
            shown_calls: 0,
            truncated: false,
            head: None,
            last_id: String::new(),
            started: Usage::default(),
            output_before: 0,
            billed: Billed::default(),
            ending: None,
            done: None,
            filler: None,
            awaiting_commit: false,
            unknown_seen: false,
            policy,
        }
    }

    /// The machine of an answer whose first rounds were completed in an earlier attempt at the same request: the client is
    /// given what they showed, and the provider's bytes are the next round's. `None` when a round cannot be said again.
    pub(crate) fn resume(policy: Policy, rounds: Vec<Round>, id: &str, model: &str) -> Option<Self> {
        let mut stream = Stream::new(policy);
        stream.out.rope(stream.codec.head(id, model), &stream.splitter);
        for round in rounds {
            for recorded in round.blocks.iter().filter(|recorded| recorded.shown == Shown::Both) {
                let events = stream.codec.block(stream.next_number, &recorded.block)?;
                stream.out.rope(events, &stream.splitter);
                stream.next_number += 1;
            }
            stream.output_before += round.output_tokens;
            stream.recorder.past.push(round);
        }
        stream.head = Some((id.to_owned(), model.to_owned()));
        Some(stream)
    }

    /// The next bytes for the client.
    pub(crate) fn output(&mut self) -> Option<Bytes> {
        self.out.pop()
    }

    /// The next thing to be done.
    pub(crate) fn action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Whether bytes of the provider can be taken now.
    pub(crate) fn wants_input(&self) -> bool {
        match self.phase {
            Phase::Reading => self.queue.bytes() <= self.policy.max_held,
            Phase::Ended { plain } => plain,
            _ => false,
        }
    }

    /// Whether something waits for a decision, a commit or a round, so that time matters.
    pub(crate) fn is_holding(&self) -> bool {
        match self.phase {
            Phase::Reading => self.awaiting_commit || self.queue.is_held(),
            Phase::Ended { .. } => false,
            _ => true,
        }
    }

    /// Whether no more output comes.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. })
    }

    /// When [`timeout`](Stream::timeout) is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let complete = self.complete.map(|(_, until)| until);
        self.hold.deadline().into_iter().chain(complete).min()
    }

    /// The id and the model that the client was told.
    pub(crate) fn head(&self) -> Option<(&str, &str)> {
        self.head.as_ref().map(|(id, model)| (id.as_str(), model.as_str()))
    }

    /// The id of the last round.
    pub(crate) fn last_id(&self) -> &str {
        &self.last_id
    }

    /// What the rounds with the model cost.
    pub(crate) fn billed(&self) -> Billed {
        self.billed
    }

    /// The answer so far.
    pub(crate) fn record(&self) -> AnswerRecord {
        self.recorder.record(&self.supplied)
    }

    /// Bytes of the provider's answer.
    pub(crate) fn chunk(&mut self, now: Instant, chunk: Bytes) {
        if let Phase::Ended { plain } = self.phase {
            if plain {
                self.out.bytes(chunk, &self.splitter);
            }
            return;
        }
        self.splitter.push(chunk);
        while matches!(self.phase, Phase::Reading) {
            match self.splitter.next() {
                Ok(Some(event)) => {
                    let name = self.splitter.name(&event);
                    let data = self.splitter.data(&event);
                    let data_at = self.splitter.data_range(&event).map(|range| range.start - event.raw.start);
                    match self.codec.read(name, &data, data_at) {
                        Ok(scan) => self.event(now, event.raw, scan),
                        Err(error) => self.unreadable(event.raw, &error),
                    }
                }
                Ok(None) => break,
                Err(error) => self.fail("api_error", &error.to_string()),
            }
        }
        self.out.flush(&self.splitter);
        self.settle(now);
    }

    /// The provider's bytes ended; `error` says how, when it was not by themselves.
    pub(crate) fn end_of_input(&mut self, now: Instant, error: Option<&str>) {
        if matches!(self.phase, Phase::Reading) && self.done.is_none() {
            let how = error.unwrap_or("it ended without its last event");
            // How it broke off is for observers: it may name the upstream.
            let kind = self.policy.protocol.broken(self.head.is_some());
            let event = self.codec.error(kind, "the model's answer broke off before its end");
            self.fail_with(event, kind, &format!("the model's answer broke off: {how}"));
        }
        self.settle(now);
    }

    /// What was decided about a call.
    pub(crate) fn verdict(&mut self, now: Instant, slot: usize, verdict: CallVerdict) {
        let Some(Some(queued)) = self.slots.get_mut(slot).map(Option::take) else { return };
        if self.is_ended() {
            return;
        }
        self.supplied.extend(SuppliedResult::of(&queued.id, &verdict));
        self.recorder.decide(&queued, &verdict, &*self.codec);
        self.queue.decide(slot, verdict);
        self.settle(now);
    }

    /// What was decided about the end of the turn.
    pub(crate) fn stop_verdict(&mut self, now: Instant, verdict: StopVerdict) {
        if !matches!(self.phase, Phase::AskedStop) {
            return;
        }
        match verdict {
            StopVerdict::End => self.finish(),
            StopVerdict::Block(reason) => self.fail("hook_blocked", &reason),
            StopVerdict::Continue(reason) => self.go_on(After::User(reason), Because::Stop),
        }
        self.settle(now);
    }

    /// The record is committed.
    pub(crate) fn committed(&mut self, now: Instant) {
        self.awaiting_commit = false;
        self.recorder.dirty = false;
        if matches!(self.phase, Phase::Finishing) {
            self.finish();
        }
        self.settle(now);
    }

    /// The next round begins: its bytes follow.
    pub(crate) fn round(&mut self, now: Instant) {
        if matches!(self.phase, Phase::AwaitingRound { .. }) {
            self.phase = Phase::Reading;
            self.codec = self.policy.protocol.codec(self.policy.record, self.policy.max_held);
            self.splitter = Splitter::new(self.policy.max_held);
            self.supplied.clear();
            self.truncated = false;
            self.ending = None;
            self.done = None;
        }
        self.settle(now);
    }

    /// There is no next round: a refusal becomes the answer's text, and a turn that was to go on ends as it stood.
    pub(crate) fn round_failed(&mut self, now: Instant) {
        if let Phase::AwaitingRound { because } = &self.phase {
            match because {
                Because::Denied => self.end_with_reason(),
                Because::Stop => {
                    self.recorder.reopen();
                    self.finish();
                }
            }
        }
        self.settle(now);
    }

    /// The deadline has come: a keep-alive is due, or the time for holding is used up.
    pub(crate) fn timeout(&mut self, now: Instant) {
        if let Some((slot, until)) = self.complete
            && until <= now
        {
            self.complete = None;
            self.ask(slot, false);
        } else if self.hold.is_used_up(now) {
            self.give_up();
        } else if self.hold.keepalive_due(now) {
            self.keep_alive(now);
        }
        self.settle(now);
    }

    fn event(&mut self, now: Instant, raw: Range<usize>, scan: Scan) {
        if let (Some((slot, _)), false) = (self.complete, matches!(scan, Scan::Idle)) {
            self.complete = None;
            let cut = matches!(&scan, Scan::Ending { ending, .. } if self.policy.protocol.is_cut(&ending.stop_reason));
            self.ask(slot, cut);
        }
        match scan {
            Scan::Add { block, number } => self.frame(block, raw, number),
            Scan::Idle => self.loose(raw),
            Scan::Begin { block, kind, number } => {
                let frame = self.frame_of(raw, number);
                self.begin(block, &kind, frame);
            }
            Scan::End { block, number, whole } => {
                let frame = self.frame_of(raw, number);
                self.end(now, block, whole, frame);
            }
            Scan::Head { id, model, usage } => {
                self.started = usage;
                self.last_id.clone_from(&id);
                if self.head.is_none() {
                    self.head = Some((id, model));
                    self.out.range(raw, &self.splitter);
                }
            }
            Scan::Ending { ending, usage } => {
                let at = usage.map(|at| at.start..at.end);
                self.ending = Some((ending, self.splitter.slice(raw), at));
            }
            Scan::Done => {
                self.cut_open_calls();
                self.done = Some(self.splitter.slice(raw));
                let ended = self.ending.as_ref().map(|(ending, ..)| &ending.usage).unwrap_or(&self.started);
                self.billed.add(self.policy.protocol, &self.started, ended);
            }
            Scan::Error { kind, message } => {
                let event = self.splitter.slice(raw);
                self.fail_with(event, &kind, &message);
            }
            Scan::Unknown => self.unknown(raw),
        }
        self.release();
        if self.done.is_some() {
            self.settle(now);
        }
    }

    fn frame_of(&self, raw: Range<usize>, number: Option<Range<usize>>) -> Frame {
        Frame { raw: self.splitter.slice(raw), number }
    }

    /// A frame of an open block: straight on when the block is at the front, else behind what is held.
    fn frame(&mut self, block: u64, raw: Range<usize>, number: Option<Range<usize>>) {
        match self.queue.front_number(block) {
            Some(client) if client == block || number.is_none() => self.out.range(raw, &self.splitter),
            Some(client) => {
                let rope = self.codec.renumber(&self.frame_of(raw, number), client);
                self.out.rope(rope, &self.splitter);
            }
            None => {
                let frame = self.frame_of(raw, number);
                if let Some(slot) = self.queue.push_frame(block, frame, self.policy.max_held) {
                    self.undecidable(slot, too_large(self.policy.max_held));
                }
            }
        }
    }

    fn begin(&mut self, block: u64, kind: &BlockKind, frame: Frame) {
        let order = self.recorder.begin(kind);
        let slot = match kind {
            BlockKind::Call(call) if self.policy.is_gated(&call.name) => {
                self.slots.push(Some(Queued { id: call.id.clone(), call: call.clone(), order, readable: true }));
                Some(self.slots.len() - 1)
            }
            _ => None,
        };
        let text = matches!(kind, BlockKind::Text(_));
        self.queue.push(Item::begin(block, order, slot, text, matches!(kind, BlockKind::Call(_)), frame));
    }

    fn end(&mut self, now: Instant, block: u64, whole: Block, frame: Frame) {
        let Some(ended) = self.queue.end(block, frame) else { return };
        if let (Some(slot), BlockKind::Call(call)) = (ended.slot, &whole.kind)
            && let Some(Some(queued)) = self.slots.get_mut(slot)
        {
            queued.call = call.clone();
            queued.readable = whole.json.is_some();
            self.complete = Some((slot, now + CUT_GRACE));
        }
        self.recorder.end(ended.order, whole, self.policy.max_held);
    }

    /// Asks about a finished call, unless it was cut off or cannot be judged.
    fn ask(&mut self, slot: usize, cut: bool) {
        let Some(Some(queued)) = self.slots.get(slot) else { return };
        let call = queued.call.clone();
        if cut {
            // It was never whole, so neither the client nor the model's history can have it.
            self.recorder.forget(queued.order);
            self.slots[slot] = None;
            self.queue.withhold(slot);
            self.truncated = true;
            self.actions.push_back(Action::Truncated { call });
            return;
        }
        let readable = queued.readable;
        match judgeable(&call.input, self.policy.max_held) {
            // Data of a kind that this version does not know may be part of the arguments.
            Ok(()) if !readable => {
                let what = "it came with data of an unknown kind".to_owned();
                self.actions.push_back(Action::Undecidable {
                    slot,
                    call,
                    why: Unjudgeable { kind: FailureKind::MalformedInput, what },
                });
            }
            Ok(()) => self.actions.push_back(Action::Decide { slot, call }),
            Err(why) => self.actions.push_back(Action::Undecidable { slot, call, why }),
        }
    }

    /// The answer ended before these calls did.
    fn cut_open_calls(&mut self) {
        for slot in self.queue.open_slots() {
            self.ask(slot, true);
        }
    }

    fn undecidable(&mut self, slot: usize, why: Unjudgeable) {
        if let Some(Some(queued)) = self.slots.get(slot) {
            self.actions.push_back(Action::Undecidable { slot, call: queued.call.clone(), why });
        }
    }

    fn unknown(&mut self, raw: Range<usize>) {
        if !std::mem::replace(&mut self.unknown_seen, true) {
            self.actions.push_back(Action::NotScanned);
        }
        self.loose(raw);
    }

    /// An event that belongs to no block keeps its place among the others.
    fn loose(&mut self, raw: Range<usize>) {
        if self.queue.passes() {
            self.out.range(raw, &self.splitter);
        } else {
            self.queue.push(Item::Loose(self.splitter.slice(raw)));
        }
    }

    /// An event that cannot be read, or in two ways. Where calls must be decided it could hide one; elsewhere it is the
    /// client's to judge.
    fn unreadable(&mut self, raw: Range<usize>, error: &JsonError) {
        if self.policy.gated.is_some() {
            self.fail("api_error", &format!("the model's answer could not be inspected: {error}"));
        } else {
            self.unknown(raw);
        }
    }

    /// Moves what can leave from the queue to the output.
    fn release(&mut self) {
        let closing = matches!(self.phase, Phase::Finishing);
        while !self.awaiting_commit {
            let hold_text = self.policy.gated.is_some() || self.policy.stop_gated;
            let Some((mut item, keep_end)) = self.queue.pop_ready(hold_text && !closing) else { break };
            if item.releases_call() && self.recorder.must_commit(&self.supplied) {
                self.queue.put_back(item);
                self.commit(true);
                break;
            }
            if !item.is_denied() {
                self.close_filler();
            }
            self.shown_calls += usize::from(item.releases_call());
            let keep = item.emit(keep_end, &mut self.next_number, &*self.codec, &self.recorder, |rope| {
                self.out.rope(rope, &self.splitter);
            });
            if keep {
                self.queue.put_back(item);
                break;
            }
        }
    }

    fn commit(&mut self, released_call: bool) {
        self.awaiting_commit = true;
        self.actions.push_back(Action::Commit { record: self.record(), released_call });
    }

    /// The answer cannot be completed: undecided calls are dropped and the client gets the protocol's own error.
    fn fail(&mut self, kind: &str, message: &str) {
        let event = self.codec.error(kind, message);
        self.fail_with(event, kind, message);
    }

    fn fail_with(&mut self, event: Bytes, kind: &str, message: &str) {
        self.end_kept_text();
        self.close_filler();
        self.out.bytes(event, &self.splitter);
        self.phase = Phase::Ended { plain: false };
        self.queue = Queue::default();
        self.actions.push_back(Action::Failed { kind: kind.to_owned(), message: message.to_owned() });
    }

    /// A finished text whose end was kept back ends before the error: clients that have a whole block do not ask again.
    fn end_kept_text(&mut self) {
        if self.queue.open_text().is_some()
            && let Some((mut text, _)) = self.queue.pop_ready(false)
        {
            text.emit(false, &mut self.next_number, &*self.codec, &self.recorder, |rope| {
                self.out.rope(rope, &self.splitter);
            });
        }
    }

    fn close_filler(&mut self) {
        if let Some(number) = self.filler.take() {
            self.out.bytes(self.codec.close(number), &self.splitter);
        }
    }
}

#[cfg(test)]
mod tests;
