//! One inspected exchange, from the whole request to the head of the answer.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header, request};

use super::body::GuardedBody;
use super::core::Hookgate;
use super::decode;
use super::identity::{Identity, identify, sighting};
use super::route::{Route, error, strip};
use super::{answer, outgoing, prompts, results};
use crate::Body;
use crate::hooks::{Detail, Event, HookSet, Occasion, Plane};
use crate::id::{Digest, Hasher, Tenant, random_id};
use crate::ledger::{Anchors, DeclaredTool, Lineage, Thread, View, rewrite};
use crate::upstream::{Upstream, UpstreamError};
use crate::wire::client::ClientIdentity;
use crate::wire::conversation::Conversation;
use crate::wire::json::Edits;
use crate::wire::protocol::{Continuation, Protocol};
use crate::wire::trace::TraceParent;

/// Everything that is known about an exchange once its request is read.
pub(super) struct Exchange {
    pub(super) core: Hookgate,
    pub(super) hooks: Arc<HookSet>,
    pub(super) route: Arc<Route>,
    pub(super) protocol: Protocol,
    pub(super) upstream: Arc<dyn Upstream>,
    /// The request's head as it goes upstream, without what depends on the body.
    pub(super) head: request::Parts,
    pub(super) conversation: Conversation,
    anchors: OnceLock<Anchors>,
    pub(super) thread: Arc<Thread>,
    pub(super) lineage: Option<Lineage>,
    turn: OnceLock<Digest>,
    /// What all events of this exchange have in common, but for the turn: see [`Exchange::occasion`].
    pub(super) occasion: Occasion,
    /// The request is not the agent's own conversation, or only counts its tokens.
    pub(super) side: bool,
    pub(super) counting: bool,
    retry_key: OnceLock<Digest>,
    /// The edits that make the history true.
    edits: Edits,
}

/// What of a model's API a request is for.
#[derive(Clone, Copy)]
pub(super) struct Surface {
    pub(super) protocol: Protocol,
    /// It only counts tokens.
    pub(super) counting: bool,
}

/// Runs an exchange.
pub(super) async fn run(
    core: Hookgate,
    route: Arc<Route>,
    surface: Surface,
    body_limit: usize,
    request: Request<Bytes>,
    upstream: Arc<dyn Upstream>,
) -> Response<GuardedBody> {
    let Surface { protocol, counting } = surface;
    let hooks = core.hooks();
    let (mut head, sent) = request.into_parts();
    let client = ClientIdentity::of(&head.headers);
    strip(&mut head.headers);
    head.headers.remove(header::EXPECT);

    let text = match decode::whole(&head.headers, sent.clone(), body_limit).await {
        Ok(text) => text,
        Err(why) => return unreadable(&core, &route, protocol, head, sent, upstream, &why).await,
    };
    let conversation = match protocol.parse(&text, &head.headers) {
        Ok(conversation) => conversation,
        Err(why) => {
            let why = format!("it is not a request that can be inspected: {why}");
            return unreadable(&core, &route, protocol, head, sent, upstream, &why).await;
        }
    };
    let mut exchange = Exchange::new(core, hooks, route, protocol, upstream, head, client, conversation, counting);
    if let Some(answer) = exchange.settle_request().await {
        return answer.map(Into::into);
    }
    answer::run(Arc::new(exchange), sent).await
}

/// A body that cannot be read goes on as it is when no gating handler could apply, else it is refused.
async fn unreadable(
    core: &Hookgate,
    route: &Route,
    protocol: Protocol,
    head: request::Parts,
    sent: Bytes,
    upstream: Arc<dyn Upstream>,
    why: &str,
) -> Response<GuardedBody> {
    if core.gates() {
        let message = format!("hookgate cannot apply the configured policy to this request: {why}");
        return error(protocol, StatusCode::BAD_REQUEST, &message).map(Into::into);
    }
    tracing::debug!(
        route = &*route.name,
        "a request that cannot be read is passed on: no gating handler is configured"
    );
    match upstream.call(Request::from_parts(head, Body::from(sent))).await {
        Ok(response) => response.map(Into::into),
        Err(failure) => unreachable_upstream(protocol, &failure).map(Into::into),
    }
}

/// The answer when the upstream gave none, in the protocol's own shape.
pub(super) fn unreachable_upstream(protocol: Protocol, failure: &UpstreamError) -> Response<Body> {
    let mut response =
        error(protocol, failure.status(), &format!("hookgate got no answer from the upstream: {failure}"));
    // The upstream may be back in a moment: the client's own way with retries is right.
    response.headers_mut().remove("x-should-retry");
    response.extensions_mut().insert(NoAnswer);
    response
}

/// Marks the answer that stands for an upstream's missing one, so that a host can give its own error instead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoAnswer;

impl Exchange {
    #[allow(clippy::too_many_arguments, reason = "the one place that puts an exchange together")]
    fn new(
        core: Hookgate,
        hooks: Arc<HookSet>,
        route: Arc<Route>,
        protocol: Protocol,
        upstream: Arc<dyn Upstream>,
        head: request::Parts,
        client: ClientIdentity,
        conversation: Conversation,
        counting: bool,
    ) -> Self {
        let ledger = &core.inner.ledger;
        let tenant = Tenant::of(&head.extensions);
        let (program, task) = (client.program, client.task.clone());
        let Identity { thread: key, parent_agent, lineage } = identify(protocol, &conversation, tenant, client, ledger);
        let side = counting || protocol.is_side(&conversation, &head.headers);
        let task = task.and_then(|task| Some((ledger.task_turn(&key.session, &task)?, task)));
        let model = conversation.model.map(|span| conversation.string(span).into());
        let own = !side && key.agent.is_none() && task.is_none();
        let (thread, _) = ledger.open(&key, &sighting(&conversation, own, program, model.as_ref()));
        let occasion = Occasion {
            task_id: task.as_ref().map(|(_, task)| task.as_str().into()),
            agent_id: key.agent.clone(),
            parent_agent_id: parent_agent,
            model,
            trace: TraceParent::of(&head.headers),
            ..Occasion::new(Event::SessionStart, key.session.clone(), Plane::Model, route.name.clone())
        };
        Exchange {
            core,
            hooks,
            route,
            protocol,
            upstream,
            head,
            conversation,
            anchors: OnceLock::new(),
            thread,
            lineage,
            turn: task.map_or_else(OnceLock::new, |(turn, _)| turn.into()),
            occasion,
            side,
            counting,
            retry_key: OnceLock::new(),
            edits: Edits::default(),
        }
    }

    /// Asks and tells about what the request brings. Gives the answer when it does not go upstream.
    async fn settle_request(&mut self) -> Option<Response<Body>> {
        if !self.counting {
            results::observe(self);
        }
        if let Some(reason) = prompts::decide(self).await {
            return Some(self.refusal(&reason));
        }
        let undeclared = prompts::decide_declared(self).await;
        self.bring_messages().await;
        let mut edits = Edits::default();
        let ledger = &self.core.inner.ledger;
        if !ledger.is_blank() {
            let missing = self.lineage.as_ref().map_or(Vec::new(), |lineage| lineage.missing.clone());
            let view = View { ledger, thread: &self.thread };
            rewrite(self.protocol, &self.conversation, self.anchors(), &view, missing, &mut edits);
        }
        let offered = self.offered_tool();
        if !undeclared.is_empty() || offered.is_some() {
            self.protocol.redeclare(&self.conversation, &undeclared, offered, &mut edits);
        }
        let real = self.lineage.as_ref().and_then(|lineage| lineage.real.as_deref());
        if let (Some(real), Some(previous)) = (real, self.conversation.previous) {
            edits.replace(previous, crate::wire::json::quote(real));
        }
        self.edits = edits;
        None
    }

    /// A refused prompt is answered as if by the model, so that the client shows the reason and goes on.
    fn refusal(&self, reason: &str) -> Response<Body> {
        if self.counting {
            return error(self.protocol, StatusCode::BAD_REQUEST, &format!("this prompt was refused: {reason}"));
        }
        self.thread.keep_refusal(reason);
        let model = self.occasion.model.as_deref().unwrap_or_default();
        let id = format!("msg_hookgate_{}", random_id().replace('-', ""));
        let (media_type, body) = self.protocol.text_answer(&id, model, reason, self.conversation.stream);
        let mut response = Response::new(Body::from(body));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static(media_type));
        headers.insert(header::CACHE_CONTROL, http::HeaderValue::from_static("no-cache"));
        response
    }

    /// An event of this exchange.
    pub(super) fn occasion(&self, event: Event, name: Option<&str>, call_id: Option<&str>) -> Occasion {
        Occasion {
            event,
            name: name.map(Into::into),
            tool_call_id: call_id.map(Into::into),
            turn_id: self.turn_id().map(Into::into),
            ..self.occasion.clone()
        }
    }

    // Most exchanges end without anyone being asked or told: what takes all bytes of the history waits until then.

    /// What the messages are recognised by.
    pub(super) fn anchors(&self) -> &Anchors {
        self.anchors.get_or_init(|| Anchors::of(&self.conversation))
    }

    /// The turn that the request belongs to.
    pub(super) fn turn(&self) -> Digest {
        *self.turn.get_or_init(|| {
            let last_prompt = self.conversation.messages.iter().rposition(|message| message.begins_turn());
            match (last_prompt, &self.lineage) {
                (Some(index), _) => turn_of(&self.thread, self.anchors().prompt(index)),
                (None, Some(lineage)) => lineage.turn,
                (None, None) => turn_of(&self.thread, self.anchors().end),
            }
        })
    }

    /// The turn as events tell it; requests beside the conversation belong to none.
    pub(super) fn turn_id(&self) -> Option<String> {
        (!self.side).then(|| self.turn().to_uuid())
    }

    /// What a retry of this request is recognised by.
    pub(super) fn retry_key(&self) -> Digest {
        *self.retry_key.get_or_init(|| {
            let mut key = Hasher::new().with(b"retry");
            for member in self.conversation.members.iter().filter(|member| member.name != "stream") {
                key.part(member.span.of(&self.conversation.text));
            }
            key.finish()
        })
    }

    /// Tells observers of a failure of the provider, the stream or hookgate itself.
    pub(super) fn observe_failure(&self, kind: &str, status: Option<StatusCode>, message: &str) {
        let detail = Detail::StopFailure {
            kind: kind.to_owned(),
            status: status.map(|status| status.as_u16()),
            message: message.to_owned(),
        };
        let occasion = self.occasion(Event::StopFailure, None, None);
        self.core.inner.dispatcher.observe(&self.hooks, occasion, detail);
    }

    /// The schema text of a tool, as this request or an earlier one of its lineage declares it.
    pub(super) fn schema(&self, tool: &str) -> Option<Bytes> {
        let declared = self.conversation.tool(tool);
        let own = declared.and_then(|tool| tool.schema).map(|span| self.conversation.slice(span));
        own.or_else(|| {
            let tools = &self.lineage.as_ref()?.tools;
            tools.iter().find(|known| known.name == tool)?.schema.clone()
        })
    }

    /// The tools that later requests of this lineage do not declare again.
    pub(super) fn declared_tools(&self) -> Arc<[DeclaredTool]> {
        if self.conversation.tools.is_empty()
            && let Some(lineage) = &self.lineage
        {
            return lineage.tools.clone();
        }
        let tools = self.conversation.tools.iter().map(|tool| DeclaredTool {
            name: tool.name.clone(),
            schema: tool.schema.map(|span| Bytes::copy_from_slice(span.of(&self.conversation.text))),
        });
        tools.collect()
    }

    /// The request to the provider. `sent` is the body as received, which leaves unchanged when nothing is edited.
    pub(super) fn first_request(&self, sent: Bytes, inspect_answer: bool) -> Request<Body> {
        if self.edits.is_empty() {
            return outgoing::request(&self.head, sent.into(), inspect_answer, false);
        }
        outgoing::request(&self.head, self.edits.clone().apply(&self.conversation.text), inspect_answer, true)
    }

    /// The request that goes on after rounds of this answer. Without server-side history `messages` follow the whole
    /// history; with it they are all that is sent.
    pub(super) fn continuation(
        &self,
        messages: Vec<Bytes>,
        previous: Option<&str>,
        output_tokens: u64,
    ) -> Request<Body> {
        let previous = previous.filter(|_| self.conversation.server_history);
        let mut edits = if previous.is_some() { Edits::default() } else { self.edits.clone() };
        self.protocol.go_on(&self.conversation, &Continuation { messages, previous, output_tokens }, &mut edits);
        let mut request = outgoing::request(&self.head, edits.apply(&self.conversation.text), true, true);
        // It is another request than the one that the client named.
        request.headers_mut().remove("idempotency-key");
        request
    }
}

/// A turn's id is that of its prompt in its thread, so that a retry and another node give the same.
fn turn_of(thread: &Thread, prompt: Digest) -> Digest {
    let key = &thread.key;
    let mut hasher =
        Hasher::new().with(b"turn").with(key.session.tenant.as_bytes()).with(key.session.session.as_bytes());
    hasher.part(key.agent.as_deref().unwrap_or_default().as_bytes());
    hasher.digest(prompt);
    hasher.finish()
}
