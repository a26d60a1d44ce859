//! One-time callbacks in model traffic: the tool that asks for one, and what they bring. What handlers add at the start of
//! a background task goes the same way.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::core::Hookgate;
use super::exchange::Exchange;
use super::prompts::marked;
use crate::callback::{TmpHooks, tool};
use crate::dispatch::Decision;
use crate::hooks::{Detail, Event, HookSet, Occasion, Replacement};
use crate::id::{Digest, Hasher};
use crate::intercept::round::CallVerdict;
use crate::ledger::Brought;
use crate::store::InboxMessage;
use crate::wire::conversation::Role;

/// A hold ends this long before the answer's own limit, so that the end of the turn can still be asked about.
const ROOM_FOR_STOP: Duration = Duration::from_secs(35);

/// Whether a tool of this name is hookgate's own, where it is offered.
pub(super) fn is_answered(name: &str) -> bool {
    name == tool::REQUEST
}

/// What the core knows of callbacks.
pub(super) struct Callbacks {
    pub(super) hooks: TmpHooks,
    pub(super) hold_stop: Duration,
}

impl Exchange {
    /// Callbacks, as far as this conversation has to do with them: it is the agent's own. A sub-agent has none: it ends
    /// with its answer, and its result goes to the agent that started it.
    fn callbacks(&self) -> Option<&Callbacks> {
        self.core.inner.callbacks.as_ref().filter(|_| self.route.tmp_hooks && self.is_own())
    }

    /// Whether this is the agent's own conversation.
    fn is_own(&self) -> bool {
        !self.side && self.occasion.agent_id.is_none()
    }

    /// Whether the model is offered callbacks. A client that has such a tool, its own or one of the MCP server, is not given
    /// a second one, and a model that must call some tool is to call one of the client's.
    pub(super) fn offers_callbacks(&self) -> bool {
        let counts = self.counting && self.route.tmp_hooks && self.core.inner.callbacks.is_some();
        (counts || self.callbacks().is_some())
            && self.served_tools().all(|served| served != tool::REQUEST)
            && !self.protocol.forces_some_tool(&self.conversation)
    }

    /// The declaration of the tool, where it is offered. With server-side history the first request's holds.
    pub(super) fn offered_tool(&self) -> Option<Bytes> {
        let declares = self.conversation.previous.is_none() && self.offers_callbacks();
        declares.then(|| self.protocol.tool(tool::REQUEST, tool::REQUEST_DESCRIPTION, tool::REQUEST_SCHEMA))
    }

    /// Whether a call is one that is answered here.
    pub(super) fn answers_call(&self, name: &str) -> bool {
        is_answered(name) && self.callbacks().is_some() && self.offers_callbacks()
    }

    /// Whether the end of a turn may have to wait for callbacks.
    pub(super) fn may_hold_stop(&self) -> bool {
        self.callbacks().is_some_and(|callbacks| !callbacks.hold_stop.is_zero())
    }

    /// Answers a call of the tool.
    pub(super) async fn answer_call(&self, input: &[u8]) -> CallVerdict {
        let Some(callbacks) = self.callbacks() else { return CallVerdict::Allow };
        match callbacks.hooks.request(&self.occasion.session, input).await {
            Ok(hook) => serde_json::to_string(&hook).map_or_else(
                |error| CallVerdict::Deny(format!("the callback could not be told: {error}")),
                CallVerdict::Answer,
            ),
            Err(why) => CallVerdict::Deny(why),
        }
    }

    /// The client's tools that may be those of the MCP server, by their names there.
    fn served_tools(&self) -> impl Iterator<Item = &'static str> {
        self.conversation.tools.iter().filter_map(|declared| tool::named(&declared.name))
    }

    /// Whether calls of the MCP server's tools may be made in this exchange, which it is to be told of.
    pub(super) fn correlates(&self) -> bool {
        cfg!(feature = "mcp")
            && self.core.inner.callbacks.is_some()
            && !self.counting
            && self.served_tools().next().is_some()
    }

    /// Tells the MCP server of a call that the client is about to get.
    #[cfg(feature = "mcp")]
    pub(super) fn note_call(&self, call: &crate::wire::answer::Call, input: &[u8]) {
        if let Some(callbacks) = self.core.inner.callbacks.as_ref().filter(|_| tool::named(&call.name).is_some()) {
            callbacks.hooks.note_call(&self.occasion.session, call, input);
        }
    }

    /// Puts what callbacks brought, and what handlers added, behind the last message of the user, for this request and all
    /// later ones.
    pub(super) async fn bring_messages(&self) {
        if let Some(callbacks) = self.callbacks() {
            self.take(callbacks).await;
        }
        if !self.is_own() || !self.thread.has_messages() {
            return;
        }
        // What stands behind a prefilled answer would be no user's words.
        let messages = &self.conversation.messages;
        let Some(last) = messages.iter().rposition(|message| message.role != Role::System) else { return };
        if messages[last].role != Role::User {
            return;
        }
        let place = self.anchors().prompt(last);
        for brought in self.thread.homeless_messages(|place| self.has_place(place)) {
            let Some(text) = self.as_read(&brought).await else { continue };
            if self.thread.place_message(&brought, place) {
                self.core.inner.ledger.commit_message(&self.thread, place, text.to_owned());
            }
        }
    }

    /// The model got this request, and what stands in it.
    pub(super) fn messages_arrived(&self) {
        if self.is_own() && self.thread.has_messages() {
            self.thread.messages_arrived(|place| self.has_place(place));
        }
    }

    /// The model got what was said to it after the answer so far.
    pub(super) fn held_messages_arrived(&self) {
        if self.is_own() && self.thread.has_messages() {
            let held = self.held_place();
            self.thread.messages_arrived(|place| place == held);
        }
    }

    /// Waits for callbacks at the end of a turn, while some are open and as long as it may be held. What comes is given as
    /// one text for the model. Nothing is lost when the client goes away meanwhile.
    pub(super) async fn await_callbacks(&self) -> Option<String> {
        let callbacks = self.callbacks().filter(|callbacks| !callbacks.hold_stop.is_zero())?;
        let session = &self.occasion.session;
        let most = self.core.inner.limits.max_hold.saturating_sub(ROOM_FOR_STOP);
        let deadline = Instant::now() + callbacks.hold_stop.min(most);
        loop {
            // Listening begins before looking, so that nothing slips between; and what is open is counted before, since a
            // callback that comes after the look is then still one that is waited for.
            let arrival = callbacks.hooks.arrival(session);
            let none_open = callbacks.hooks.open_callbacks(session) == 0;
            self.take(callbacks).await;
            let mut texts = Vec::new();
            for brought in self.thread.homeless_messages(|place| self.has_place(place)) {
                // What a handler added is no reason to go on: it waits for the next request.
                let Some(text) = self.as_read(&brought).await.filter(|_| brought.message.is_some()) else { continue };
                if self.thread.place_message(&brought, self.held_place()) {
                    texts.push(text.to_owned());
                }
            }
            if !texts.is_empty() {
                return Some(texts.join("\n\n"));
            }
            if none_open {
                return None;
            }
            tokio::select! {
                () = arrival => {}
                () = tokio::time::sleep_until(deadline) => return None,
            }
        }
    }

    async fn take(&self, callbacks: &Callbacks) {
        let session = &self.occasion.session;
        if callbacks.hooks.may_have_messages(session) {
            self.thread.bring(callbacks.hooks.take_for_injection(session).await);
        }
    }

    /// The message as the model is to read it; `None` when a handler failed, so that it has to be asked again, and where
    /// callbacks are not offered.
    async fn as_read<'a>(&self, brought: &'a Arc<Brought>) -> Option<&'a str> {
        let Some(message) = &brought.message else { return brought.text.get().map(String::as_str) };
        let callbacks = self.callbacks()?;
        let occasion = || self.occasion(Event::UserPromptSubmit, None, None);
        let judge = || judge(&self.core, callbacks, &self.hooks, occasion, message);
        brought.text.get_or_try_init(judge).await.ok().map(String::as_str)
    }

    /// Whether this request's history has that place.
    fn has_place(&self, place: Digest) -> bool {
        let anchors = self.anchors();
        (0..self.conversation.messages.len()).any(|index| anchors.prompt(index) == place)
    }

    /// The place of what is said in the answer to this request.
    fn held_place(&self) -> Digest {
        let mut hasher = Hasher::new().with(b"held");
        hasher.digest(self.anchors().end);
        hasher.finish()
    }
}

/// Asks the handlers about a message; gives it as the model is to read it. It is an error when a handler failed.
pub(super) async fn judge(
    core: &Hookgate,
    callbacks: &Callbacks,
    hooks: &Arc<HookSet>,
    occasion: impl FnOnce() -> Occasion,
    message: &InboxMessage,
) -> Result<String, ()> {
    if !hooks.has(Event::UserPromptSubmit) {
        return Ok(message.text.clone());
    }
    let detail = Detail::UserPromptSubmit {
        prompt: message.masked_text.clone(),
        attachments: Vec::new(),
        client_context: Vec::new(),
        replayed: false,
        side: false,
        source: Some("callback"),
    };
    let occasion = occasion();
    let verdict = core.inner.dispatcher.gate(hooks, &occasion, detail, None).await;
    let mut text = match verdict.decision {
        Decision::Deny { .. } if verdict.failed => return Err(()),
        Decision::Deny { reason, .. } => {
            callbacks.hooks.withhold(&occasion.session, message).await;
            let purpose = message.purpose.as_deref().map(|purpose| format!(" ({purpose})")).unwrap_or_default();
            return Ok(format!(
                "[hookgate] A one-time callback{purpose} was received. Its content was withheld by policy: {reason}"
            ));
        }
        Decision::Modify(Replacement::Text(text)) => text,
        Decision::Allow | Decision::Modify(Replacement::Object(_)) | Decision::Continue { .. } => message.text.clone(),
    };
    for context in marked(Event::UserPromptSubmit, &verdict.context) {
        text += "\n\n";
        text += &context;
    }
    Ok(text)
}
