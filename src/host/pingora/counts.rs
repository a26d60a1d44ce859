//! Counting requests.

use std::sync::Arc;

use dashmap::DashMap;
use metrics::{Counter, counter};

/// Requests by route and status. The counters are kept, since finding one takes longer than counting; there are as many as
/// routes times statuses.
#[derive(Default)]
pub(super) struct Counts(DashMap<(Arc<str>, u16), Counter>);

impl Counts {
    pub(super) fn count(&self, route: &Arc<str>, status: u16) {
        let key = (route.clone(), status);
        if let Some(counter) = self.0.get(&key) {
            return counter.increment(1);
        }
        let counter = counter!("hookgate_requests_total", "route" => route.to_string(), "status" => status.to_string());
        counter.increment(1);
        self.0.insert(key, counter);
    }
}
