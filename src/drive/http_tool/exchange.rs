//! One call of a tool.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};

use super::answer::Telling;
use super::find::Called;
use super::rebuild::rebuild;
use super::refusal;
use crate::Body;
use crate::audit::AuditOutcome;
use crate::drive::core::Hookgate;
use crate::drive::exchange::NoAnswer;
use crate::drive::route::{Route, strip};
use crate::drive::tool::{Outcome, ToolCall, ToolPlane, ToolVerdict};
use crate::drive::{decode, outgoing};
use crate::hooks::{Event, FailureKind};
use crate::id::random_id;
use crate::upstream::Upstream;
use crate::wire::http_tool::{Content, changes, input, read_body};

/// Runs an exchange.
pub(in crate::drive) async fn run(
    core: &Hookgate,
    route: &Route,
    called: &Called,
    request: Request<Bytes>,
    upstream: Arc<dyn Upstream>,
) -> Response<Body> {
    let (mut head, sent) = request.into_parts();
    // A client that names no session has at least one credential for the tool.
    let credential = head.headers.get(header::AUTHORIZATION).map_or(&b""[..], |value| value.as_bytes());
    let plane = ToolPlane::new(core, route, &head, &[b"http-tool", credential]);
    strip(&mut head.headers);
    head.headers.remove(header::EXPECT);
    let read = arguments(core, called, head.uri.query(), &head.headers, &sent).await;
    let (content, arguments) = match &read {
        Ok((content, arguments)) => (content, arguments.clone()),
        Err(_) => (&Content::Empty, input(&called.parameters, None, &Content::Empty).unwrap_or_default()),
    };
    let mut call =
        ToolCall { name: called.tool.name.to_string(), server: None, id: random_id().into(), input: arguments };
    let verdict = match &read {
        Ok(_) => plane.decide(&call, called.tool.schema.as_ref()).await,
        Err(why) => plane.undecidable(&call, FailureKind::MalformedInput, why),
    };
    let (replacement, context) = match verdict {
        ToolVerdict::Deny(reason) => return refusal(StatusCode::FORBIDDEN, &reason),
        ToolVerdict::Run { input, context } => (input, context),
    };
    let refuse = |why: &str| {
        plane.note(&plane.about(Event::PreToolUse, &call), AuditOutcome::Deny, why);
        refusal(StatusCode::FORBIDDEN, why)
    };
    if !context.is_empty() {
        // To drop it would be to skip a policy in silence.
        return refuse(
            "a policy hook added context for the model, which has no place in the answer of an HTTP tool, so this was refused; the hook has to answer without additionalContext on this route",
        );
    }
    let mut body = None;
    if let Some(replacement) = replacement {
        let rebuilt = changes(&called.parameters, content, &call.input, &replacement)
            .and_then(|changes| rebuild(&mut head, route, called, changes));
        match rebuilt {
            Ok(rebuilt) => body = rebuilt,
            Err(why) => return refuse(&format!("the policy's replacement for the arguments cannot be used: {why}")),
        }
        call.input = replacement;
    }
    let (edited, observed) = (body.is_some(), plane.observes_results());
    let request = outgoing::request(&head, body.unwrap_or(sent).into(), observed, edited);
    forward(&plane, call, request, upstream, observed).await
}

/// What the call says. What cannot be read is nothing that a policy could be asked about.
async fn arguments(
    core: &Hookgate,
    called: &Called,
    query: Option<&str>,
    headers: &HeaderMap,
    sent: &Bytes,
) -> Result<(Content, Bytes), String> {
    let body = decode::whole(headers, sent.clone(), core.inner.limits.max_request_bytes).await?;
    let content = read_body(headers, &body)?;
    let arguments = input(&called.parameters, query, &content)?;
    Ok((content, arguments))
}

async fn forward(
    plane: &ToolPlane,
    call: ToolCall,
    request: Request<Body>,
    upstream: Arc<dyn Upstream>,
    observed: bool,
) -> Response<Body> {
    match upstream.call(request).await {
        Ok(response) if observed => Telling::watch(plane.clone(), call, response),
        Ok(response) => response,
        Err(failure) => {
            if observed {
                plane.tell(&call, Outcome::failed(&format!("the tool gave no answer: {failure}")), true);
            }
            let mut response = refusal(failure.status(), &format!("hookgate got no answer from the tool: {failure}"));
            response.extensions_mut().insert(NoAnswer);
            response
        }
    }
}
