//! Looking for answers in what a server sends: to what this request asked, and to what others of its session asked.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use tokio::sync::OwnedSemaphorePermit;

use super::calls::round_with;
use super::exchange::{Exchange, call_key, task_key};
use super::state::Pending;
use crate::drive::correlation::AtTool;
use crate::drive::tool::{Outcome, ToolPlane, Watch};
use crate::id::Digest;
use crate::wire::json::{Edits, Span, pointer};
use crate::wire::jsonrpc::{Envelope, Kind, Payload, read};
use crate::wire::mcp::{Revision, ToolAnswer, ToolList, add_text, read_answer};

/// Something that was asked, whose answer is to be looked at.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    /// A tool was called.
    Call { id: Bytes, pending: Arc<Pending> },
    /// The tools were asked for.
    List { id: Bytes },
    /// A session begins. Its answer is looked at by its headers alone.
    Initialize,
    /// What became of a call that goes on as a task. `gets`: the answer says how the task stands, and has the outcome within.
    Task { id: Bytes, key: Digest, of: Arc<Pending>, gets: bool },
}

/// Looks at one answer of the server.
pub(super) struct Watcher {
    plane: ToolPlane,
    asked: Vec<Asked>,
    server: Digest,
    session: Option<Digest>,
    client: Digest,
    modern: bool,
    status: StatusCode,
    server_name: Option<Arc<str>>,
}

impl Watcher {
    pub(super) fn new(exchange: &Exchange, asked: Vec<Asked>) -> Self {
        Watcher {
            plane: exchange.plane.clone(),
            asked,
            server: exchange.server,
            session: exchange.session,
            client: exchange.client,
            modern: exchange.revision == Revision::Modern,
            status: StatusCode::OK,
            server_name: exchange.route.server.clone(),
        }
    }

    /// Whether a list of tools may come for which some of them must not be seen. One that a stream broke off before may come
    /// on any stream that is resumed.
    fn may_hide(&self) -> bool {
        let lists = self.asked.iter().any(|asked| matches!(asked, Asked::List { .. }));
        !self.plane.hooks.denied_tools().is_empty() && (lists || self.asked.is_empty() && self.session.is_some())
    }

    /// What is denied is not shown: one rule for what is listed and what can be called.
    fn hide(&self, list: &ToolList, edits: &mut Edits) {
        list.hide(|tool| self.plane.denies(self.server_name.as_deref(), tool), edits);
    }

    /// Whether a tool was called.
    pub(super) fn expects_calls(&self) -> bool {
        self.asked.iter().any(|asked| matches!(asked, Asked::Call { .. }))
    }

    /// The id of the one thing that was asked.
    pub(super) fn only_id(&self) -> Option<Bytes> {
        match self.asked.as_slice() {
            [Asked::Call { id, .. } | Asked::List { id } | Asked::Task { id, .. }] => Some(id.clone()),
            _ => None,
        }
    }

    /// Whether anything of the answer is worth to be looked at. Any stream of a session may bring what another request asked.
    pub(super) fn is_needed(&self) -> bool {
        self.session.is_some() || self.asked.iter().any(|asked| !matches!(asked, Asked::Initialize))
    }

    pub(super) fn status(&mut self, status: StatusCode) {
        self.status = status;
    }

    /// There is no answer, and there will be none.
    pub(super) fn fail(&mut self, why: &str) {
        let failed = Outcome::failed(why);
        for asked in std::mem::take(&mut self.asked) {
            if let Asked::Call { id, pending } = asked {
                self.forget(&id);
                self.tell(&pending, failed.clone());
            }
        }
    }

    fn forget(&self, id: &[u8]) {
        if let Some(session) = self.session {
            self.plane.core.inner.mcp.end(&call_key(session, id));
        }
    }

    fn tell(&self, pending: &Pending, outcome: Outcome) {
        let plane = self.plane.of(&pending.occasion);
        if plane.observes_results() {
            plane.tell(&pending.call, outcome, true);
            let Pending { call, given, model_id, .. } = pending;
            let tenant = &pending.occasion.session.tenant;
            let call = AtTool { tenant, tool: &call.name, server: call.server.as_deref(), input: given };
            plane.core.inner.correlation.tell(call, model_id.clone(), Instant::now());
        }
    }

    /// What an answer is to, if anybody of the session waits for it.
    fn take(&mut self, id: &[u8]) -> Option<Asked> {
        let own = self.asked.iter().position(|asked| match asked {
            Asked::Call { id: asked, .. } | Asked::List { id: asked } | Asked::Task { id: asked, .. } => asked == id,
            Asked::Initialize => false,
        });
        if let Some(at) = own {
            self.forget(id);
            return Some(self.asked.swap_remove(at));
        }
        let pending = self.plane.core.inner.mcp.end(&call_key(self.session?, id))?;
        Some(Asked::Call { id: Bytes::copy_from_slice(id), pending })
    }

    fn see(&mut self, text: &[u8], envelope: &Envelope, edits: &mut Edits) {
        let state = &self.plane.core.inner.mcp;
        match &envelope.kind {
            Kind::Notification { method, .. } if method == "notifications/tools/list_changed" => {
                state.forget_list(&self.client);
            }
            Kind::Result(span) => match envelope.id_text(text).and_then(|id| self.take(id)) {
                Some(Asked::Call { pending, .. }) => self.see_call(text, *span, &pending, edits),
                Some(Asked::List { .. }) => self.see_list(text, *span, edits),
                None if self.may_hide() => {
                    if let Ok(list) = ToolList::read(text, *span) {
                        self.hide(&list, edits);
                    }
                }
                Some(Asked::Task { key, of, gets, .. }) => self.see_task(text, *span, key, &of, gets),
                Some(Asked::Initialize) | None => {}
            },
            Kind::Error(span) => {
                if let Some(Asked::Call { pending, .. }) = envelope.id_text(text).and_then(|id| self.take(id)) {
                    self.tell(&pending, Outcome::Failed(Bytes::copy_from_slice(span.of(text))));
                }
            }
            Kind::Request { .. } | Kind::Notification { .. } => {}
        }
    }

    fn see_call(&self, text: &[u8], span: Span, pending: &Arc<Pending>, edits: &mut Edits) {
        let state = &self.plane.core.inner.mcp;
        match read_answer(span.of(text)) {
            ToolAnswer::Complete { failed } => {
                self.tell(pending, outcome(span.of(text), failed));
                for context in &pending.context {
                    add_text(text, span, context, edits);
                }
            }
            ToolAnswer::InputRequired(given) => {
                state.begin_round(round_with(pending.round, self.client, given), pending.clone());
            }
            ToolAnswer::Task(id) => state.begin_task(task_key(self.server, &id), pending.clone()),
        }
    }

    fn see_list(&self, text: &[u8], span: Span, edits: &mut Edits) {
        if let Ok(list) = ToolList::read(text, span) {
            self.hide(&list, edits);
            let tools = list.tools.into_iter().map(|tool| (tool.name, tool.schema));
            self.plane.core.inner.mcp.learn(self.client, tools);
        }
    }

    /// What became of a task. While it runs, nothing did.
    fn see_task(&self, text: &[u8], span: Span, key: Digest, of: &Pending, gets: bool) {
        let result = span.of(text);
        let member = |at: &str| pointer(result, at).ok().flatten().map(|span| span.of(result));
        let outcome = match (gets, member("/status")) {
            (false, _) => match read_answer(result) {
                ToolAnswer::Complete { failed } => outcome(result, failed),
                ToolAnswer::InputRequired(_) | ToolAnswer::Task(_) => return,
            },
            (true, Some(b"\"completed\"")) => match member("/result") {
                Some(inner) => match read_answer(inner) {
                    ToolAnswer::Complete { failed } => outcome(inner, failed),
                    _ => return,
                },
                // The experimental tasks have to be asked for their result.
                None => return,
            },
            (true, Some(b"\"failed\"" | b"\"cancelled\"")) => {
                Outcome::Failed(Bytes::copy_from_slice(member("/error").unwrap_or(result)))
            }
            (true, _) => return,
        };
        if self.plane.core.inner.mcp.end_task(&key).is_some() {
            self.tell(of, outcome);
        }
    }
}

fn outcome(result: &[u8], failed: bool) -> Outcome {
    let result = Bytes::copy_from_slice(result);
    if failed { Outcome::Failed(result) } else { Outcome::Done(result) }
}

impl Watch for Watcher {
    fn may_replace(&self) -> bool {
        let adds = |asked: &Asked| matches!(asked, Asked::Call { pending, .. } if !pending.context.is_empty());
        // An answer that is an error has nothing to be changed, in whatever form it comes.
        self.status.is_success() && (self.may_hide() || self.asked.iter().any(adds))
    }

    fn message(&mut self, message: &[u8]) -> Option<Bytes> {
        let envelopes = match read(message).ok()? {
            Payload::One(envelope) => vec![envelope],
            Payload::Batch(envelopes) => envelopes,
        };
        let mut edits = Edits::default();
        for envelope in &envelopes {
            self.see(message, envelope, &mut edits);
        }
        (!edits.is_empty()).then(|| edits.apply(&Bytes::copy_from_slice(message)).to_bytes())
    }

    fn blind(&mut self, why: &str) {
        self.fail(&format!("the tool server's answer could not be read: {why}"));
    }

    fn ended(&mut self, whole: bool) {
        let why = match (whole, self.status) {
            (true, status) if !status.is_success() => format!("the tool server answered {status}"),
            // The answer to a call of a session may still come on another stream.
            _ if self.session.is_some() && !self.modern => return,
            (true, _) => "the tool server's answer has no result".to_owned(),
            (false, _) => "the tool server's answer broke off".to_owned(),
        };
        self.fail(&why);
    }

    fn outlives_client(&mut self) -> Option<OwnedSemaphorePermit> {
        let survives = !self.modern && self.expects_calls();
        survives.then(|| self.plane.core.inner.mcp.detach())?
    }
}
