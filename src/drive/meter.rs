//! What operators can count.

use std::sync::Arc;

use metrics::{counter, gauge};

use super::exchange::Exchange;
use crate::counters::Counters;
use crate::intercept::round::Billed;

/// Inspected requests by route.
#[derive(Default)]
pub(super) struct Inspected(Counters<Arc<str>>);

impl Inspected {
    pub(super) fn count(&self, route: &Arc<str>) {
        self.0.count(route, |route| counter!("hookgate_inspected_requests_total", "route" => route.to_string()));
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
