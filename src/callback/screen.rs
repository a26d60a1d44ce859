//! What a policy says to a message that reaches the model by another way than a request of its session.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::TmpHooks;
use crate::id::SessionKey;
use crate::store::InboxMessage;

/// Asks the operator's handlers.
pub(crate) trait Screen: Send + Sync {
    /// The message as the model is to read it; `None` when a handler failed, so that it has to be asked again.
    fn screen<'a>(&'a self, session: &'a SessionKey, message: &'a InboxMessage) -> BoxFuture<'a, Option<String>>;
}

impl TmpHooks {
    /// Has messages judged from now on. The first core that these callbacks were given to does it.
    pub(crate) fn screen_by(&self, screen: Arc<dyn Screen>) {
        let _ = self.inner.screen.set(screen);
    }

    /// The message as the model is to read it. Where no core has these callbacks there are no handlers.
    pub(crate) async fn screened(&self, session: &SessionKey, message: &InboxMessage) -> Option<String> {
        match self.inner.screen.get() {
            Some(screen) => screen.screen(session, message).await,
            None => Some(message.text.clone()),
        }
    }
}
