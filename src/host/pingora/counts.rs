//! Counting requests.

use std::sync::Arc;

use metrics::counter;

use crate::counters::Counters;

/// Requests by route and status.
#[derive(Default)]
pub(super) struct Counts(Counters<(Arc<str>, u16)>);

impl Counts {
    pub(super) fn count(&self, route: &Arc<str>, status: u16) {
        self.0.count(&(route.clone(), status), |(route, status)| {
            counter!("hookgate_requests_total", "route" => route.to_string(), "status" => status.to_string())
        });
    }
}
