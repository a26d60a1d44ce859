//! Waking those who wait for a change of the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::TokenHash;
use crate::id::SessionKey;

/// What can be waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// That a token is free again, or has ended.
    Token(TokenHash),
    /// A new message for a session.
    Inbox(SessionKey),
}

/// Who waits for what, in this process. A store wakes them after each change that it made or was told of.
///
/// There is an entry only as long as somebody waits for it.
#[derive(Clone, Default)]
pub struct Signals(Arc<Mutex<HashMap<Topic, Slot>>>);

struct Slot {
    notify: Arc<Notify>,
    listeners: usize,
}

impl Signals {
    /// Nobody waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on, a change of the topic is noticed: listen first, look at the store next, then await the listener.
    pub fn listen(&self, topic: Topic) -> Listener {
        let mut slots = self.slots();
        let slot = slots.entry(topic.clone()).or_insert_with(|| Slot { notify: Arc::default(), listeners: 0 });
        slot.listeners += 1;
        // It hears what comes after its making, polled or not.
        let woken = Box::pin(slot.notify.clone().notified_owned());
        drop(slots);
        Listener { signals: self.clone(), topic, woken }
    }

    /// Wakes whoever listens.
    pub fn wake(&self, topic: &Topic) {
        if let Some(slot) = self.slots().get(topic) {
            slot.notify.notify_waiters();
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Topic, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").field("topics", &self.slots().len()).finish()
    }
}

/// Resolves at the first change after it was made. It may also resolve without one: look at the store again.
#[must_use = "it does nothing unless it is awaited"]
pub struct Listener {
    signals: Signals,
    topic: Topic,
    woken: Pin<Box<OwnedNotified>>,
}

impl Future for Listener {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.woken.as_mut().poll(cx)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Entry::Occupied(mut slot) = self.signals.slots().entry(self.topic.clone()) {
            slot.get_mut().listeners -= 1;
            if slot.get().listeners == 0 {
                slot.remove();
            }
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("topic", &self.topic).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_change_after_listening_is_not_lost_and_nothing_is_left() {
        let signals = Signals::new();
        let topic = Topic::Token(TokenHash::from_bytes([1; 32]));
        signals.wake(&topic);
        let (mut one, two) = (signals.listen(topic.clone()), signals.listen(topic.clone()));
        assert_eq!((&mut one).now_or_never(), None);
        signals.wake(&topic);
        assert_eq!((one.now_or_never(), two.now_or_never()), (Some(()), Some(())));
        assert!(signals.slots().is_empty());
    }

    #[test]
    fn topics_are_apart() {
        let signals = Signals::new();
        let other = signals.listen(Topic::Token(TokenHash::from_bytes([2; 32])));
        signals.wake(&Topic::Token(TokenHash::from_bytes([1; 32])));
        assert_eq!(other.now_or_never(), None);
    }
}
