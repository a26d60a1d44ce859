//! One-time callbacks in model traffic: the tool that asks for one, and what they bring.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use tokio::time::Instant;

use super::exchange::Exchange;
use super::prompts::marked;
use crate::callback::TmpHooks;
use crate::dispatch::Decision;
use crate::hooks::{Detail, Event, Replacement};
use crate::id::{Digest, Hasher};
use crate::intercept::round::CallVerdict;
use crate::ledger::Brought;
use crate::wire::answer::Call;
use crate::wire::conversation::Role;

/// The tool's name.
const TOOL: &str = "request_tmp_hook";
/// What the model is told of it.
const DESCRIPTION: &str = "Get a one-time callback URL for this session. Use it before you hand work to something that \
finishes after this turn and cannot be waited for here: a remote or sandboxed worker, a container, a CI job, a long \
script, another agent, a person. Whoever does the work sends its result to the URL with one HTTP POST; the result then \
arrives here as a user message, and you go on. Do not use it for work that ends within this turn, for a result that you \
will ask for anyway, or when the worker has a way to report already. Give the worker the url, and nothing else of this \
result. The URL works once and expires.";
/// Its arguments.
const SCHEMA: &str = r#"{"type":"object","properties":{"purpose":{"type":"string","description":"What is waited for, in a few words that tell this callback from others: it is repeated in the message."},"ttl_seconds":{"type":"integer","description":"How long the URL is to work, in seconds. Left out, the operator's default holds."}},"additionalProperties":false}"#;

/// A hold ends this long before the answer's own limit, so that the end of the turn can still be asked about.
const ROOM_FOR_STOP: Duration = Duration::from_secs(35);

/// Whether a tool of this name is hookgate's own, where it is offered.
pub(super) fn is_answered(name: &str) -> bool {
    name == TOOL
}

/// What the core knows of callbacks.
pub(super) struct Callbacks {
    pub(super) hooks: TmpHooks,
    pub(super) hold_stop: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    purpose: Option<String>,
    #[serde(default)]
    ttl_seconds: Option<i64>,
}

impl Exchange {
    /// Callbacks, as far as this conversation has to do with them: it is the agent's own. A sub-agent has none: it ends
    /// with its answer, and its result goes to the agent that started it.
    fn callbacks(&self) -> Option<&Callbacks> {
        let own = self.route.tmp_hooks && !self.side && self.occasion.agent_id.is_none();
        self.core.inner.callbacks.as_ref().filter(|_| own)
    }

    /// Whether the model is offered callbacks. A tool of the client's with the same name is the client's, and a model that
    /// must call some tool is to call one of the client's.
    pub(super) fn offers_callbacks(&self) -> bool {
        let counts = self.counting && self.route.tmp_hooks && self.core.inner.callbacks.is_some();
        (counts || self.callbacks().is_some())
            && self.conversation.tool(TOOL).is_none()
            && !self.protocol.forces_some_tool(&self.conversation)
    }

    /// The declaration of the tool, where it is offered. With server-side history the first request's holds.
    pub(super) fn offered_tool(&self) -> Option<Bytes> {
        let declares = self.conversation.previous.is_none() && self.offers_callbacks();
        declares.then(|| self.protocol.tool(TOOL, DESCRIPTION, SCHEMA))
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
    pub(super) async fn answer_call(&self, call: &Call, input: &[u8]) -> CallVerdict {
        let Some(callbacks) = self.callbacks() else { return CallVerdict::Allow };
        let arguments: Arguments = match serde_json::from_slice(input) {
            Ok(arguments) => arguments,
            Err(error) => {
                return CallVerdict::Deny(format!(
                    "the arguments of {} are wrong: {error}; it takes purpose (a string) and ttl_seconds (a whole number), both optional",
                    call.name
                ));
            }
        };
        let Arguments { purpose, ttl_seconds } = arguments;
        match callbacks.hooks.issue(&self.occasion.session, purpose.as_deref(), ttl_seconds).await {
            Ok(hook) => serde_json::to_string(&hook).map_or_else(
                |error| CallVerdict::Deny(format!("the callback could not be told: {error}")),
                CallVerdict::Answer,
            ),
            Err(error) => CallVerdict::Deny(error.to_string()),
        }
    }

    /// Puts what callbacks brought behind the last message of the user, for this request and all later ones.
    pub(super) async fn bring_messages(&self) {
        let Some(callbacks) = self.callbacks().filter(|_| !self.counting) else { return };
        self.take(callbacks).await;
        if !self.thread.has_messages() {
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
            let Some(text) = self.as_read(callbacks, &brought).await else { continue };
            if self.thread.place_message(&brought, place) {
                self.core.inner.ledger.commit_message(&self.occasion.session.tenant, place, text.to_owned());
            }
        }
    }

    /// The model got this request, and what stands in it.
    pub(super) fn messages_arrived(&self) {
        if self.callbacks().is_some() && self.thread.has_messages() {
            self.thread.messages_arrived(|place| self.has_place(place));
        }
    }

    /// The model got what was said to it after the answer so far.
    pub(super) fn held_messages_arrived(&self) {
        if self.callbacks().is_some() && self.thread.has_messages() {
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
            // Listening begins before looking, so that nothing slips between.
            let arrival = callbacks.hooks.arrival(session);
            self.take(callbacks).await;
            let mut texts = Vec::new();
            for brought in self.thread.homeless_messages(|place| self.has_place(place)) {
                let Some(text) = self.as_read(callbacks, &brought).await else { continue };
                if self.thread.place_message(&brought, self.held_place()) {
                    texts.push(text.to_owned());
                }
            }
            if !texts.is_empty() {
                return Some(texts.join("\n\n"));
            }
            if callbacks.hooks.open_callbacks(session) == 0 {
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

    /// The message as the model is to read it; `None` when a handler failed, so that it has to be asked again.
    async fn as_read<'a>(&self, callbacks: &Callbacks, brought: &'a Arc<Brought>) -> Option<&'a str> {
        let decide = || async {
            let message = &brought.message;
            if !self.hooks.has(Event::UserPromptSubmit) {
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
            let occasion = self.occasion(Event::UserPromptSubmit, None, None);
            let verdict = self.core.inner.dispatcher.gate(&self.hooks, &occasion, detail, None).await;
            let mut text = match verdict.decision {
                Decision::Deny { .. } if verdict.failed => return Err(()),
                Decision::Deny { reason, .. } => {
                    callbacks.hooks.withhold(&self.occasion.session, message.id).await;
                    let purpose = message.purpose.as_deref().map(|purpose| format!(" ({purpose})")).unwrap_or_default();
                    return Ok(format!(
                        "[hookgate] A one-time callback{purpose} was received. Its content was withheld by policy: {reason}"
                    ));
                }
                Decision::Modify(Replacement::Text(text)) => text,
                Decision::Allow | Decision::Modify(Replacement::Object(_)) | Decision::Continue { .. } => {
                    message.text.clone()
                }
            };
            for context in marked(Event::UserPromptSubmit, &verdict.context) {
                text += "\n\n";
                text += &context;
            }
            Ok(text)
        };
        brought.text.get_or_try_init(decide).await.ok().map(String::as_str)
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
