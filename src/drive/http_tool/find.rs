//! From a request's head to the tool that it calls.

use std::sync::Arc;

use http::{HeaderValue, Response, StatusCode, header, request};

use super::refusal;
use super::table::{Found, HttpTool};
use crate::Body;
use crate::drive::route::Route;
use crate::wire::http_tool::{Parameter, PlainPath};

/// Headers by which some servers take a request for one of another method or path.
const OVERRIDES: [&str; 5] =
    ["x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"];

/// The tool that a request calls.
#[derive(Clone, Debug)]
pub(in crate::drive) struct Called {
    pub(super) tool: Arc<HttpTool>,
    /// The path without the route's prefix.
    pub(super) path: Arc<str>,
    pub(super) parameters: Arc<[Parameter]>,
}

/// Finds the tool of a request; `None`: the request is none of a tool, and passes all the same since the route says so. The
/// table is the route's own, so that it holds without any hook too.
///
/// # Errors
/// The answer to a request that the route does not take.
#[expect(clippy::result_large_err, reason = "the error is the answer, and it is on its way to the client")]
pub(in crate::drive) fn find(
    route: &Route,
    head: &request::Parts,
    path: &str,
) -> Result<Option<Called>, Response<Body>> {
    if let Some(name) = OVERRIDES.iter().find(|name| head.headers.contains_key(**name)) {
        let detail = format!("the header {name} would make it another request for some servers; send it without");
        return Err(refusal(StatusCode::BAD_REQUEST, &detail));
    }
    let plain = PlainPath::read(path).map_err(|why| refusal(StatusCode::BAD_REQUEST, &why.to_string()))?;
    let methods = match route.tools.find(&head.method, &plain) {
        Found::Tool(tool, parameters) => {
            let (tool, parameters) = (Arc::new(tool.clone()), parameters.into());
            return Ok(Some(Called { tool, path: path.into(), parameters }));
        }
        _ if route.allows_uninspected(path) => return Ok(None),
        Found::Methods(methods) => methods,
        Found::Nothing => {
            let detail = format!(
                "no tool of the route {:?} has this path; add it to the route's tools, or let it pass without inspection: allow_uninspected = [{path:?}]",
                &*route.name
            );
            return Err(refusal(StatusCode::NOT_FOUND, &detail));
        }
    };
    let methods = methods.iter().map(|method| method.as_str()).collect::<Vec<_>>().join(", ");
    let detail = format!("the tools of the route {:?} have this path for {methods} only", &*route.name);
    let mut refused = refusal(StatusCode::METHOD_NOT_ALLOWED, &detail);
    if let Ok(methods) = HeaderValue::try_from(methods) {
        refused.headers_mut().insert(header::ALLOW, methods);
    }
    Err(refused)
}
