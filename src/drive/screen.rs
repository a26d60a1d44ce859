//! The policy of a core about messages that the MCP server gives.

use std::sync::Weak;

use futures_util::future::BoxFuture;

use super::callbacks::judge;
use super::core::{Hookgate, Inner};
use crate::callback::Screen;
use crate::hooks::{Event, Occasion, Plane};
use crate::id::SessionKey;
use crate::store::InboxMessage;

/// The policy of a core, for messages that the MCP server gives. It does not keep the core alive.
pub(super) struct Policy(pub(super) Weak<Inner>);

impl Screen for Policy {
    fn screen<'a>(&'a self, session: &'a SessionKey, message: &'a InboxMessage) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let core = Hookgate { inner: self.0.upgrade()? };
            let hooks = core.hooks();
            let occasion = || on_control_surface(session);
            judge(&core, core.inner.callbacks.as_ref()?, &hooks, occasion, message).await.ok()
        })
    }
}

/// A message that is given by the MCP server: neither a route nor a turn is known there.
fn on_control_surface(session: &SessionKey) -> Occasion {
    Occasion::new(Event::UserPromptSubmit, session.clone(), Plane::Api, "mcp")
}
