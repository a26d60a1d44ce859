//! Looking in an agent's answers for what becomes of tasks.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use super::card::{self, OwnPlace};
use super::exchange::{Exchange, bounded, key};
use super::outcome::Artifacts;
use super::state::Ended;
use crate::drive::tool::{ToolPlane, Watch};
use crate::hooks::{Detail, Event, Occasion};
use crate::wire::a2a::{Binding, Seen, State, TaskView, failure, read_answer};
use crate::wire::json::Span;
use crate::wire::jsonrpc::{Kind, Payload, read};

/// What an answer is looked at for.
#[derive(Debug)]
pub(super) enum Expects {
    /// What came of a delegation: a task, or a message in place of one.
    Delegation,
    /// How one task stands, for somebody who waits for it.
    Task,
    /// How tasks stand, of which most may be long over.
    Tasks,
    /// A card, which is to lead to this place.
    Card(Option<OwnPlace>),
    /// Nothing.
    Nothing,
}

/// Looks at one answer of an agent.
pub(super) struct Watcher {
    plane: ToolPlane,
    expects: Expects,
    binding: Binding,
    path: Arc<str>,
    status: StatusCode,
    artifacts: Artifacts,
}

impl Watcher {
    pub(super) fn new(exchange: &Exchange, expects: Expects) -> Self {
        Watcher {
            plane: exchange.plane.clone(),
            expects,
            binding: exchange.binding,
            path: exchange.path.clone(),
            status: StatusCode::OK,
            artifacts: Artifacts::default(),
        }
    }

    /// Whether anything of the answer is worth to be looked at.
    pub(super) fn is_needed(&self) -> bool {
        let events = [Event::SubagentStart, Event::TaskStart, Event::TaskStop, Event::SubagentStop];
        match self.expects {
            Expects::Nothing | Expects::Card(None) => false,
            Expects::Card(Some(_)) => true,
            _ => events.into_iter().any(|event| self.plane.hooks.has(event)),
        }
    }

    pub(super) fn status(&mut self, status: StatusCode) {
        self.status = status;
    }

    /// A delegation that came to nothing is over. One that became a task goes on with it.
    pub(super) fn fail(&mut self, why: &str) {
        if self.settle() {
            self.tell_subagent_stop(self.plane.base(), false, why.to_owned(), false);
        }
    }

    /// Whether this is the first that is heard of the delegation, if it is one.
    fn settle(&mut self) -> bool {
        let first = matches!(self.expects, Expects::Delegation);
        if first {
            self.expects = Expects::Task;
        }
        first
    }

    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Task(task) => self.see_task(&task),
            Seen::Artifact { task, artifact, append, text } => self.artifacts.add(&task, artifact, append, &text),
            Seen::Message { context, text } => {
                let base = self.base(context.as_deref());
                if self.settle() {
                    self.tell_subagent_stop(&base, true, text, false);
                }
            }
        }
    }

    fn see_task(&mut self, task: &TaskView) {
        let state = &self.plane.core.inner.a2a;
        let base = self.base(task.context.as_deref());
        let task_key = key(&base, b"task", &task.id);
        let base = Occasion { task_id: Some(bounded(&task.id)), ..base };
        let is_list = matches!(self.expects, Expects::Tasks);
        if matches!(self.expects, Expects::Delegation) && state.begin(task_key, || base.clone()) {
            let occasion = Occasion { event: Event::TaskStart, name: None, ..base.clone() };
            self.observe(occasion, Detail::TaskStart { title: None });
        }
        if task.state != State::Open {
            // A list shows what was: only an end that is waited for is news.
            let ended = if is_list { state.end_known(task_key) } else { state.end(task_key) };
            match ended {
                Ended::Known(known) => {
                    let agent_id = known.agent_id.clone().or(base.agent_id);
                    self.tell_end(&Occasion { agent_id, ..(*known).clone() }, task);
                }
                Ended::Unknown if !is_list => self.tell_end(&base, task),
                Ended::Unknown | Ended::Before => {}
            }
        }
        self.settle();
    }

    /// What the events about a conversation have in common. One that begins now stays in the session in which it does.
    fn base(&self, context: Option<&str>) -> Occasion {
        let mut base = self.plane.base().clone();
        let Some(context) = context else { return base };
        let id = bounded(context);
        if matches!(self.expects, Expects::Delegation) && base.agent_id.is_none() {
            self.plane.core.inner.a2a.join(key(&base, b"context", context), base.session.session.clone());
        }
        base.agent_id = Some(id);
        base
    }

    fn tell_end(&self, base: &Occasion, task: &TaskView) {
        let status = match task.state {
            State::Completed | State::Open => "completed",
            State::Failed | State::Rejected => "failed",
            State::Canceled => "cancelled",
        };
        let occasion = Occasion { event: Event::TaskStop, name: None, ..base.clone() };
        self.observe(occasion, Detail::TaskStop { status: status.to_owned() });
        let (streamed, truncated) = self.artifacts.of(&task.id);
        let (text, truncated) = match (task.message.as_str(), task.artifacts.as_str()) {
            ("", "") => (streamed, truncated),
            ("", artifacts) => (artifacts.to_owned(), false),
            (message, _) => (message.to_owned(), false),
        };
        let ok = task.state == State::Completed;
        let text = if text.is_empty() && !ok { format!("the task was {}", said(task.state)) } else { text };
        self.tell_subagent_stop(base, ok, text, truncated);
    }

    fn tell_subagent_stop(&self, base: &Occasion, ok: bool, text: String, truncated: bool) {
        let subagent = base.name.as_deref().unwrap_or_default().to_owned();
        let occasion = Occasion { event: Event::SubagentStop, ..base.clone() };
        self.observe(occasion, Detail::SubagentStop { subagent, ok, text, truncated });
    }

    /// Nobody waits for it, not even where context could be added: the answer is on its way already.
    fn observe(&self, occasion: Occasion, detail: Detail) {
        let occasion = self.plane.of(&occasion).occasion(occasion.event);
        self.plane.core.inner.dispatcher.observe(&self.plane.hooks, occasion, detail);
    }

    fn see_result(&mut self, text: &[u8], result: Span) -> Option<Bytes> {
        if let Expects::Card(place) = &self.expects {
            let place = place.as_ref()?;
            return card::rewritten(&self.plane.core, place, &self.path, text, result);
        }
        read_answer(result.of(text)).into_iter().for_each(|seen| self.see(seen));
        None
    }
}

fn said(state: State) -> &'static str {
    match state {
        State::Open => "left open",
        State::Completed => "completed",
        State::Failed => "failed",
        State::Canceled => "cancelled",
        State::Rejected => "rejected",
    }
}

impl Watch for Watcher {
    fn may_replace(&self) -> bool {
        matches!(self.expects, Expects::Card(Some(_)))
    }

    fn message(&mut self, message: &[u8]) -> Option<Bytes> {
        if self.binding == Binding::Rest {
            match failure(message) {
                Some(why) => self.fail(&why),
                None => return self.see_result(message, Span { start: 0, end: message.len() }),
            }
            return None;
        }
        let Payload::One(envelope) = read(message).ok()? else { return None };
        match envelope.kind {
            Kind::Result(result) => self.see_result(message, result),
            Kind::Error(error) => {
                let why = crate::drive::results::string_at(error.of(message), "/message");
                self.fail(why.as_deref().unwrap_or("it gives no reason"));
                None
            }
            Kind::Request { .. } | Kind::Notification { .. } => None,
        }
    }

    fn blind(&mut self, why: &str) {
        self.fail(&format!("the agent's answer could not be read: {why}"));
    }

    fn ended(&mut self, whole: bool) {
        match (whole, self.status) {
            (false, _) => self.fail("the agent's answer broke off"),
            (true, status) if !status.is_success() => self.fail(&format!("the agent answered {status}")),
            (true, _) => self.fail("the agent's answer has neither a task nor a message"),
        }
    }
}

impl Drop for Watcher {
    /// A client that leaves before there is an answer takes the request with it.
    fn drop(&mut self) {
        self.fail("its client went away");
    }
}
