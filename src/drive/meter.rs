//! What operators can count.

use std::sync::Arc;

use dashmap::DashMap;
use metrics::{Counter, counter, gauge};

use super::exchange::Exchange;
use crate::intercept::round::Billed;

/// Counts inspected requests. The counters are kept: finding one takes longer than counting.
#[derive(Default)]
pub(super) struct Inspected(DashMap<Arc<str>, Counter>);

impl Inspected {
    pub(super) fn count(&self, route: &Arc<str>) {
        if let Some(counter) = self.0.get(route) {
            return counter.increment(1);
        }
        let counter = counter!("hookgate_inspected_requests_total", "route" => route.to_string());
        counter.increment(1);
        self.0.insert(route.clone(), counter);
    }
}

/// Counts an answer that took more than one round.
pub(super) fn billed(exchange: &Exchange, billed: Billed) {
    if billed.rounds < 2 {
        return;
    }
    let route = exchange.route.name.to_string();
    counter!("hookgate_continued_answers_total", "route" => route.clone()).increment(1);
    counter!("hookgate_continued_tokens_total", "route" => route.clone(), "kind" => "input").increment(billed.input);
    counter!("hookgate_continued_tokens_total", "route" => route, "kind" => "output").increment(billed.output);
    tracing::info!(
        route = &*exchange.route.name,
        session = &*exchange.occasion.session.session,
        turn = exchange.turn_id(),
        rounds = billed.rounds,
        input_tokens = billed.input,
        output_tokens = billed.output,
        "an answer took several rounds with the model"
    );
}

/// Counts answers that a task is driving, because something of them is held, asked or recorded.
#[derive(Debug)]
pub(super) struct Held;

impl Held {
    pub(super) fn begin() -> Self {
        gauge!("hookgate_held_streams").increment(1);
        Held
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        gauge!("hookgate_held_streams").decrement(1);
    }
}
