//! Deciding about `tools/call`.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;

use super::exchange::{Exchange, call_key};
use super::state::Pending;
use super::watcher::Asked;
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
        let call = ToolCall {
            name: params.name.clone(),
            server: self.route.server.clone(),
            id: random_id().into(),
            input: input.clone(),
        };
        let occasion = self.plane.about(Event::PreToolUse, &call);
        let schema = match self.plane.hooks.concerned(&occasion).is_empty() {
            true => None,
            false => self.schema(&params.name).await,
        };
        match self.plane.decide(&call, schema.as_ref()).await {
            ToolVerdict::Deny(reason) => Ruling::Answer(StatusCode::OK, denied(&id, &reason, modern)),
            ToolVerdict::Run { input: replacement, context } => {
                let call = ToolCall { input: replacement.clone().unwrap_or(input), ..call };
                let pending = Pending { call, occasion, context, round, replacement: replacement.clone() };
                self.forward_call(id, params, Arc::new(pending), replacement, schema.as_ref())
            }
        }
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
