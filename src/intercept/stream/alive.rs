//! What happens while the answer is held: signs of life, and an end to waiting.

use std::time::Instant;

use super::{Action, Phase, Stream};
use crate::hooks::FailureKind;
use crate::intercept::call::Unjudgeable;

impl Stream {
    pub(super) fn give_up(&mut self) {
        if !matches!(self.phase, Phase::Reading) {
            self.actions.push_back(Action::GiveUp);
        }
        for slot in 0..self.slots.len() {
            let what = format!("this answer was held for {} seconds in all", self.policy.max_hold.as_secs());
            self.undecidable(slot, Unjudgeable { kind: FailureKind::Timeout, what });
        }
    }

    pub(super) fn keep_alive(&mut self, now: Instant) {
        if !self.hold.is_long(now) || self.head.is_none() {
            self.out.bytes(self.codec.keepalive(), &self.splitter);
            return;
        }
        let number = match self.queue.open_text().or(self.filler) {
            Some(number) => number,
            None => {
                let number = self.next_number;
                self.next_number += 1;
                self.filler = Some(number);
                self.recorder.filler(self.queue.front_order(), self.codec.text(""));
                self.out.bytes(self.codec.open_text(number), &self.splitter);
                number
            }
        };
        self.out.bytes(self.codec.empty_text(number), &self.splitter);
    }
}
