//! Deciding about `tools/call`.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Map, Value};

use super::exchange::{Exchange, call_key};
use super::state::Pending;
use super::watcher::Asked;
use crate::drive::correlation::{AtTool, Released};
use crate::drive::tool::{ToolCall, ToolVerdict};
use crate::hooks::Event;
use crate::id::{Digest, Hasher, random_id};
use crate::wire::json::Span;
use crate::wire::jsonrpc::{self, INVALID_PARAMS};
use crate::wire::mcp::{CallParams, HEADER_MISMATCH, Mirrored, Revision, denied, mirrored, mismatch};

/// What becomes of one message.
pub(super) enum Ruling {
    /// It is forwarded, with other arguments where there are some, and its answer is looked at.
    Go { asked: Option<Asked>, input: Option<(CallParams, Bytes)>, mirrored: Vec<Mirrored> },
    /// It is answered here.
    Answer(StatusCode, Bytes),
}

impl Ruling {
    pub(super) fn go(asked: Option<Asked>) -> Self {
        Ruling::Go { asked, input: None, mirrored: Vec::new() }
    }
}

impl Exchange {
    /// Decides about a call. Its id is kept as it was written.
    pub(super) async fn rule_call(&self, text: &Bytes, id: Bytes, params: Option<Span>) -> Ruling {
        let modern = self.revision == Revision::Modern;
        let invalid = |status, code, why: &str| Ruling::Answer(status, jsonrpc::error(Some(&id), code, why));
        let read = params.ok_or("the parameters are missing").and_then(|params| CallParams::read(text, params));
        let params = match read {
            Ok(params) => params,
            Err(why) if self.plane.core.gates() => return invalid(StatusCode::OK, INVALID_PARAMS, why),
            Err(_) => return Ruling::go(None),
        };
        if modern && let Some(why) = mismatch(&self.head.headers, "tools/call", Some(&params.name)) {
            return invalid(StatusCode::BAD_REQUEST, HEADER_MISMATCH, &why);
        }
        let input = params.input(text);
        let call = ToolCall {
            name: params.name.clone(),
            server: self.route.server.clone(),
            id: random_id().into(),
            input: input.clone(),
        };
        if self.plane.denies(self.route.server.as_deref(), &params.name) {
            let occasion = self.plane.about(Event::PreToolUse, &call);
            self.plane.core.inner.dispatcher.denied(&self.plane.hooks, &occasion);
            // It is not listed either, so that there is no such tool as far as the client can see.
            return invalid(StatusCode::OK, INVALID_PARAMS, &format!("Unknown tool: {}", params.name));
        }
        let round = Hasher::new().with(params.name.as_bytes()).with(&input).finish();
        let earlier = params.goes_on.then(|| round_with(round, self.client, params.state));
        if let Some(earlier) = earlier.and_then(|key| self.plane.core.inner.mcp.next_round(&key)) {
            // The call was decided in its first round: the server has to see the same arguments in each.
            let schema = match &earlier.replacement {
                Some(_) => self.schema(&params.name).await,
                None => None,
            };
            let replacement = earlier.replacement.clone();
            return self.forward_call(id, params, earlier, replacement, schema.as_ref());
        }
        let released = self.released(text, &params, &input);
        let plane =
            released.as_ref().map_or_else(|| self.plane.clone(), |released| self.plane.within(&released.occasion));
        let model_id = released.as_ref().and_then(|released| released.occasion.tool_call_id.clone());
        let call = ToolCall { id: model_id.clone().unwrap_or(call.id), ..call };
        let occasion = plane.about(Event::PreToolUse, &call);
        let pending = |call, context, replacement| {
            let (occasion, given, model_id) = (occasion.clone(), input.clone(), model_id.clone());
            Arc::new(Pending { call, occasion, context, given, model_id, round, replacement })
        };
        // Who was asked when the model made the call is not asked again.
        let others = released.as_ref().map(|released| plane.without(&released.asked));
        let asking = others.as_ref().unwrap_or(&plane);
        let schema = match asking.hooks.concerned(&occasion).is_empty() {
            true => None,
            false => self.schema(&params.name).await,
        };
        match asking.decide(&call, schema.as_ref()).await {
            ToolVerdict::Deny(reason) => {
                // The model's next request brings this as the call's result, which is hookgate's own and nobody's outcome.
                if released.is_some() {
                    let call = self.at_tool(&params.name, &input);
                    plane.core.inner.correlation.tell(call, model_id, Instant::now());
                }
                Ruling::Answer(StatusCode::OK, denied(&id, &reason, modern))
            }
            ToolVerdict::Run { input: replacement, context } => {
                let ran = replacement.clone().unwrap_or_else(|| input.clone());
                let pending = pending(ToolCall { input: ran, ..call }, context, replacement.clone());
                self.forward_call(id, params, pending, replacement, schema.as_ref())
            }
        }
    }

    /// The call as a model made it, when the model's answer was seen here too.
    fn released(&self, text: &[u8], params: &CallParams, input: &[u8]) -> Option<Released> {
        // Each client has a name of its own for it (Claude Code: `claudecode/toolUseId`), and nothing else has such a value.
        let meta = params.meta.and_then(|meta| serde_json::from_slice::<Map<String, Value>>(meta.of(text)).ok());
        let ids: Vec<String> = meta.iter().flat_map(Map::values).filter_map(|id| id.as_str().map(Into::into)).collect();
        let call = self.at_tool(&params.name, input);
        self.plane.core.inner.correlation.take(call, &ids, Instant::now())
    }

    fn at_tool<'a>(&'a self, tool: &'a str, input: &'a [u8]) -> AtTool<'a> {
        let tenant = &self.plane.session().tenant;
        AtTool { tenant, tool, server: self.route.server.as_deref(), input }
    }

    fn forward_call(
        &self,
        id: Bytes,
        params: CallParams,
        pending: Arc<Pending>,
        replacement: Option<Bytes>,
        schema: Option<&Bytes>,
    ) -> Ruling {
        let mirrored = match (&replacement, schema) {
            (Some(input), Some(schema)) if self.revision == Revision::Modern => mirrored(schema, input),
            _ => Vec::new(),
        };
        let key = self.session.map(|session| call_key(session, &id));
        if let Some(key) = key {
            self.plane.core.inner.mcp.begin(key, pending.clone());
        }
        let asked = Some(Asked::Call { id, pending });
        Ruling::Go { asked, input: replacement.map(|input| (params, input)), mirrored }
    }
}

/// Names the round that comes when the server answered a call with this state.
pub(super) fn round_with(call: Digest, client: Digest, state: Option<Digest>) -> Digest {
    let mut key = Hasher::new().with(b"round");
    key.digest(call);
    key.digest(client);
    if let Some(state) = state {
        key.digest(state);
    }
    key.finish()
}
