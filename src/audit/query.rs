//! Reading the log page by page.

use std::sync::Arc;

use serde::Serialize;

use super::{AuditOutcome, AuditRecord};
use crate::hooks::Event;

/// The most records of one page, and the number when none is asked for.
pub(super) const PAGE: usize = 500;

/// Which records are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditQuery {
    /// How many at most; more than 500 counts as 500.
    pub limit: usize,
    /// Only records before this id: the `next` of a page.
    pub before: Option<String>,
    /// Only those of this tenant.
    pub tenant: Option<String>,
    /// Only those of this turn.
    pub turn: Option<String>,
    /// Only those of this event.
    pub event: Option<Event>,
    /// Only those with this outcome.
    pub outcome: Option<AuditOutcome>,
}

impl Default for AuditQuery {
    fn default() -> Self {
        AuditQuery { limit: PAGE, before: None, tenant: None, turn: None, event: None, outcome: None }
    }
}

impl AuditQuery {
    /// Whether the filters accept a record.
    pub(super) fn accepts(&self, record: &AuditRecord) -> bool {
        self.before.as_deref().is_none_or(|before| record.id.as_str() < before)
            && self.tenant.as_deref().is_none_or(|tenant| *record.tenant == *tenant)
            && self.turn.as_deref().is_none_or(|turn| record.turn_id.as_deref() == Some(turn))
            && self.event.is_none_or(|event| record.event == event)
            && self.outcome.is_none_or(|outcome| record.outcome == outcome)
    }
}

/// A part of a list. The newest page comes first; each page is in the order of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    /// The items, oldest first.
    pub items: Vec<T>,
    /// What to ask for next, as `before`; `None` at the end.
    pub next: Option<String>,
}

impl Page<AuditRecord> {
    /// Makes a page of what was found newest first; one more than the limit tells that there is another page.
    pub(super) fn from_newest_first(mut found: Vec<Arc<AuditRecord>>, limit: usize) -> Self {
        let more = found.len() > limit;
        found.truncate(limit);
        found.reverse();
        let next = found.first().filter(|_| more).map(|record| record.id.clone());
        Page { items: found.into_iter().map(Arc::unwrap_or_clone).collect(), next }
    }
}
