//! The end of a round, and of the answer.

use std::time::Instant;

use super::queue::Item;
use super::{Action, Because, Phase, Stream};
use crate::intercept::round::{Conclusion, Finished, conclude, reasons};
use crate::ledger::After;
use crate::wire::answer::{Ending, Usage};

impl Stream {
    /// After every input: releases, and concludes the round when all of it is decided.
    pub(super) fn settle(&mut self, now: Instant) {
        if !self.is_ended() {
            self.release();
        }
        if matches!(self.phase, Phase::Reading) && self.done.is_some() && !self.awaiting_commit && !self.queue.is_held()
        {
            self.conclude();
        }
        let holding = self.is_holding();
        self.hold.set(now, holding);
    }

    pub(super) fn conclude(&mut self) {
        // An answer that ended within a block is passed on as the cut-off thing that it is, but nothing can follow it.
        let open = self.queue.has_open_block();
        let stop_reason = self.ending.as_ref().map_or("", |(ending, ..)| ending.stop_reason.as_str());
        let finished = Finished {
            shown_calls: self.shown_calls + self.queue.waiting_calls(),
            supplied: &self.supplied,
            truncated: self.truncated || open,
            repeatable: self.policy.record && self.recorder.is_repeatable(),
            past: &self.recorder.past,
            stop_reason,
        };
        match conclude(&self.policy, &finished) {
            Conclusion::Feedback | Conclusion::EndWithReason if open => {
                self.fail("api_error", "the model's answer ended in the middle of a block");
            }
            Conclusion::Deliver => self.finish(),
            Conclusion::EndWithReason => self.end_with_reason(),
            Conclusion::AskStop => {
                let stop_reason = stop_reason.to_owned();
                self.phase = Phase::AskedStop;
                self.actions.push_back(Action::AskStop { response: self.recorder.text(), stop_reason });
            }
            Conclusion::Feedback => {
                self.go_on(After::Results(self.supplied.clone()), Because::Denied);
            }
        }
    }

    pub(super) fn go_on(&mut self, after: After, because: Because) {
        let tokens = self.round_tokens();
        self.recorder.close_round(after, tokens);
        self.output_before += tokens;
        self.phase = Phase::AwaitingRound { because };
        self.actions.push_back(Action::Continue { rounds: self.recorder.past.clone() });
    }

    fn round_tokens(&self) -> u64 {
        let figure = self.policy.protocol.output_figure();
        self.ending.as_ref().map_or(0, |(ending, ..)| ending.usage.number(figure))
    }

    /// The answer is complete as it stands: its last events leave, after the record that they depend on.
    pub(super) fn finish(&mut self) {
        self.phase = Phase::Finishing;
        self.release();
        if self.awaiting_commit {
            return;
        }
        if self.recorder.must_commit(&self.supplied) {
            self.commit(self.shown_calls > 0);
            return;
        }
        self.close_filler();
        let several = !self.recorder.past.is_empty();
        if let Some((ending, event, at)) = self.ending.take() {
            let event = if several {
                let usage = self.codec.visible_usage(&self.started, &ending.usage, self.output_before);
                self.codec.with_usage(&event, at, &usage)
            } else {
                event.into()
            };
            self.out.rope(event, &self.splitter);
        }
        if let Some(done) = self.done.take() {
            self.out.bytes(done, &self.splitter);
        }
        if !several {
            self.out.bytes(self.splitter.rest(), &self.splitter);
        }
        self.phase = Phase::Ended { plain: !several };
    }

    /// The refusals become the answer's last text.
    pub(super) fn end_with_reason(&mut self) {
        let tokens = self.round_tokens();
        if !matches!(self.phase, Phase::AwaitingRound { .. }) {
            self.recorder.close_round(After::Results(self.supplied.clone()), tokens);
            self.output_before += tokens;
        }
        let text = self.codec.text(&reasons(&self.supplied));
        self.supplied.clear();
        let order = self.recorder.begin(&text.kind);
        self.recorder.end(order, text.clone(), self.policy.max_held);
        self.queue.push(Item::whole(text));
        let usage = self.ending.take().map_or(Usage::default(), |(ending, ..)| ending.usage);
        let mut shown = self.codec.visible_usage(&self.started, &usage, 0);
        shown.set(self.policy.protocol.output_figure(), self.output_before.to_string());
        let ending = Ending { stop_reason: self.policy.protocol.end_of_turn().to_owned(), usage: shown };
        let end = self.codec.end(&ending).to_bytes();
        self.ending = None;
        self.done = Some(end);
        self.finish();
    }
}
