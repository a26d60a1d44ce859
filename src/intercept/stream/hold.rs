//! How long an answer has been held, and when its client needs a sign of life.

use std::time::{Duration, Instant};

/// After this long, keep-alives are of the kind that clients count as content: Claude Code gives up after 300 s without,
/// and the model may have been silent before the hold began.
const LONG: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Hold {
    keepalive: Duration,
    most: Duration,
    /// Since when the answer is held.
    since: Option<Instant>,
    /// How long it was held before that.
    spent: Duration,
    next: Option<Instant>,
    used_up: bool,
}

impl Hold {
    pub(super) fn new(keepalive: Duration, most: Duration) -> Self {
        Hold { keepalive, most, since: None, spent: Duration::ZERO, next: None, used_up: false }
    }

    pub(super) fn set(&mut self, now: Instant, holding: bool) {
        match (self.since, holding) {
            (None, true) => {
                self.since = Some(now);
                self.next = Some(now + self.keepalive);
            }
            (Some(since), false) => {
                self.spent += now.saturating_duration_since(since);
                self.since = None;
                self.next = None;
            }
            _ => {}
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let end = self.since.filter(|_| !self.used_up).map(|since| since + self.most.saturating_sub(self.spent));
        self.next.into_iter().chain(end).min()
    }

    /// Whether the time is used up; says so once.
    pub(super) fn is_used_up(&mut self, now: Instant) -> bool {
        let over = self.held(now) >= self.most && self.since.is_some();
        over && !std::mem::replace(&mut self.used_up, true)
    }

    pub(super) fn keepalive_due(&mut self, now: Instant) -> bool {
        let due = self.next.is_some_and(|next| next <= now);
        if due {
            self.next = Some(now + self.keepalive);
        }
        due
    }

    pub(super) fn is_long(&self, now: Instant) -> bool {
        self.held(now) >= LONG
    }

    fn held(&self, now: Instant) -> Duration {
        self.spent + self.since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}
