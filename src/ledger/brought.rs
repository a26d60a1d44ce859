//! What the model of a thread is to read next, until it has it: messages that callbacks brought, and what handlers added
//! at the start of a background task.
//!
//! The inbox has given its messages away by then, so they must not be lost between here and the model: a message stays until a
//! request that carries it was answered. When a client gives such a request up, and what it says next has another
//! history, the message comes again.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::id::Digest;
use crate::limits::MAX_WAITING_CONTEXTS;
use crate::store::InboxMessage;

/// One message.
#[derive(Debug)]
pub(crate) struct Brought {
    /// As the inbox had it; `None` when handlers added it, whom nobody judges.
    pub(crate) message: Option<InboxMessage>,
    /// As the model reads it, once a policy had its say.
    pub(crate) text: OnceCell<String>,
}

impl Brought {
    /// What a callback brought.
    pub(super) fn by_callback(message: InboxMessage) -> Self {
        Brought { message: Some(message), text: OnceCell::new() }
    }

    fn by_handler(text: String) -> Self {
        Brought { message: None, text: OnceCell::new_with(Some(text)) }
    }
}

/// The messages of one thread.
#[derive(Debug, Default)]
pub(super) struct Messages(Vec<(Arc<Brought>, Option<Digest>)>);

impl Messages {
    pub(super) fn add(&mut self, brought: Brought) {
        self.0.push((Arc::new(brought), None));
    }

    /// Adds what a handler said. When too much of that waits, the oldest makes room: a session whose model asks nothing for
    /// long is told of the newest tasks.
    pub(super) fn add_context(&mut self, text: String) {
        let is_context = |(brought, _): &(Arc<Brought>, _)| brought.message.is_none();
        if self.0.iter().filter(|entry| is_context(entry)).count() >= MAX_WAITING_CONTEXTS
            && let Some(oldest) = self.0.iter().position(is_context)
        {
            self.0.remove(oldest);
            tracing::warn!("context that a TaskStart handler added was never read, and made room for newer one");
        }
        self.add(Brought::by_handler(text));
    }

    /// Those that stand nowhere in a history; `is_there` says of a place whether it has it.
    pub(super) fn homeless(&mut self, is_there: impl Fn(Digest) -> bool) -> Vec<Arc<Brought>> {
        let homeless = self.0.iter_mut().filter(|(_, place)| !place.is_some_and(&is_there));
        homeless
            .map(|(brought, place)| {
                *place = None;
                brought.clone()
            })
            .collect()
    }

    /// Gives a message its place, unless it has one by now.
    pub(super) fn place(&mut self, brought: &Arc<Brought>, at: Digest) -> bool {
        let known = self.0.iter_mut().find(|(known, _)| Arc::ptr_eq(known, brought));
        known.is_some_and(|(_, place)| place.is_none() && place.replace(at).is_none())
    }

    /// The model got what stands in these places.
    pub(super) fn arrived(&mut self, is_there: impl Fn(Digest) -> bool) {
        self.0.retain(|(_, place)| !place.is_some_and(&is_there));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{InboxState, MessageId};
    use crate::time::Timestamp;

    #[test]
    fn a_message_stays_until_the_model_has_it() {
        let mut messages = Messages::default();
        messages.add(Brought::by_callback(InboxMessage {
            id: MessageId::from_i64(1),
            received_at: Timestamp::from_unix_millis(0),
            purpose: None,
            content_type: None,
            text: "done".into(),
            masked_text: "done".into(),
            state: InboxState::Injected,
        }));
        let (here, there) = (Digest::of(b"here"), Digest::of(b"there"));
        let found = messages.homeless(|_| true);
        assert!(messages.place(&found[0], here) && !messages.place(&found[0], there), "one place, whoever is first");
        assert!(messages.homeless(|place| place == here).is_empty());
        assert_eq!(messages.homeless(|place| place == there).len(), 1, "another history does not have it");
        assert!(messages.place(&found[0], there));
        messages.arrived(|place| place == here);
        assert!(!messages.is_empty());
        messages.arrived(|place| place == there);
        assert!(messages.is_empty());
    }

    #[test]
    fn of_what_handlers_added_the_oldest_makes_room() {
        let mut messages = Messages::default();
        for number in 0..=MAX_WAITING_CONTEXTS {
            messages.add_context(number.to_string());
        }
        let texts: Vec<_> =
            messages.homeless(|_| false).iter().filter_map(|brought| brought.text.get().cloned()).collect();
        assert_eq!((texts.len(), texts[0].as_str()), (MAX_WAITING_CONTEXTS, "1"));
    }
}
