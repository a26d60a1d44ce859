//! What a host tells the core of a route, and what the core answers from a request's head.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};

use super::exchange::unreachable_upstream;
use super::http_tool::{self, HttpTools};
use super::{a2a, mcp};
use crate::Body;
use crate::upstream::UpstreamError;
use crate::wire::anthropic::is_plain_path;
use crate::wire::jsonrpc::INVALID_REQUEST;
use crate::wire::protocol::Protocol;

/// A route as the core needs it: where it leads is the host's business.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Route {
    /// The name that events and audit records carry.
    pub name: Arc<str>,
    /// What is spoken on it.
    pub kind: RouteKind,
    /// Paths (without the route's prefix) that may pass without inspection although a gating hook is configured.
    pub allow_uninspected: Vec<String>,
    /// What the model is told when all calls of an answer were denied.
    pub on_deny: OnDeny,
    /// Whether the model may ask for one-time callbacks; see [`HookgateBuilder::callbacks`](super::HookgateBuilder::callbacks).
    pub tmp_hooks: bool,
    /// The name of the tool server, by which matchers know its tools as `mcp__<server>__<tool>`.
    pub server: Option<Arc<str>>,
    /// The tools of a route to plain HTTP; a request that is a call of none of them is refused, unless
    /// [`Route::allow_uninspected`] has its path.
    pub tools: HttpTools,
    /// The path below which clients find the route: empty, or without a slash at the end. Hosts take it off; it is known here
    /// for addresses that answers name.
    pub path_prefix: Arc<str>,
    /// What hosts put before the paths that are left, for each server behind the route that has something there.
    pub upstream_prefixes: Arc<[Arc<str>]>,
    /// Scheme and authority by which clients reach the route, without a slash at the end. `None`: as each request says.
    pub public_origin: Option<Arc<str>>,
}

impl Route {
    /// A route to a model API.
    ///
    /// ```
    /// use hookgate::{OnDeny, Route};
    /// let route = Route::model("anthropic").allow_uninspected(["/v1/messages/batches"]).on_deny(OnDeny::End);
    /// assert_eq!(&*route.name, "anthropic");
    /// ```
    pub fn model(name: &str) -> Self {
        Route {
            name: name.into(),
            kind: RouteKind::Model,
            allow_uninspected: Vec::new(),
            on_deny: OnDeny::default(),
            tmp_hooks: false,
            server: None,
            tools: HttpTools::default(),
            path_prefix: "".into(),
            upstream_prefixes: Arc::default(),
            public_origin: None,
        }
    }

    /// A route to an MCP server (Streamable HTTP, every revision). `server` is the name that its tools carry in hooks:
    /// `mcp__<server>__<tool>`.
    ///
    /// ```
    /// let route = hookgate::Route::mcp("tools", "files");
    /// assert_eq!(route.server.as_deref(), Some("files"));
    /// ```
    pub fn mcp(name: &str, server: &str) -> Self {
        Route { kind: RouteKind::Mcp, server: Some(server.into()), ..Route::model(name) }
    }

    /// A route to tools behind plain HTTP: see [`HttpTools`].
    pub fn http_tool(name: &str, tools: HttpTools) -> Self {
        Route { kind: RouteKind::HttpTool, tools, ..Route::model(name) }
    }

    /// A route to an agent that speaks A2A (0.3 and 1.0, JSON-RPC and HTTP+JSON). The addresses in its card become the route's:
    /// [`Route::public_origin`] and [`Route::path_prefix`].
    ///
    /// ```
    /// let route = hookgate::Route::a2a("billing").public_origin("https://agents.example.com");
    /// assert_eq!(route.public_origin.as_deref(), Some("https://agents.example.com"));
    /// ```
    pub fn a2a(name: &str) -> Self {
        Route { kind: RouteKind::A2a, ..Route::model(name) }
    }

    /// A route that nothing is looked at on.
    pub fn passthrough(name: &str) -> Self {
        Route { kind: RouteKind::Passthrough, ..Route::model(name) }
    }

    /// Sets [`Route::allow_uninspected`].
    #[must_use]
    pub fn allow_uninspected<S: Into<String>>(mut self, paths: impl IntoIterator<Item = S>) -> Self {
        self.allow_uninspected = paths.into_iter().map(Into::into).collect();
        self
    }

    /// The answer for a request that passed uninspected and got none from the upstream, in the shape that the route's
    /// clients know; `None` for routes of no known protocol.
    pub fn no_answer(&self, failure: &UpstreamError) -> Option<Response<Body>> {
        match self.kind {
            RouteKind::Model => Some(unreachable_upstream(Protocol::Anthropic, failure)),
            RouteKind::Mcp | RouteKind::HttpTool | RouteKind::A2a | RouteKind::Passthrough => None,
        }
    }

    /// Whether a path may pass without inspection. An allowed path allows what is below it, as far as no server could read
    /// it as another path.
    pub(super) fn allows_uninspected(&self, path: &str) -> bool {
        self.allow_uninspected.iter().any(|allowed| {
            let below = path.strip_prefix(allowed.trim_end_matches('/'));
            path == allowed || below.is_some_and(|rest| rest.starts_with('/') && is_plain_path(path))
        })
    }

    /// The answer to a request that cannot be inspected.
    pub(super) fn refuse_uninspected(&self, method: &http::Method, path: &str) -> Response<Body> {
        let message = format!(
            "hookgate cannot inspect {method} {path}, and a hook that may refuse or change something is configured; to let it pass without inspection, add it to the route: allow_uninspected = [{path:?}]"
        );
        error(Protocol::Anthropic, StatusCode::BAD_REQUEST, &message)
    }

    /// Sets [`Route::tmp_hooks`].
    #[must_use]
    pub fn tmp_hooks(mut self, offered: bool) -> Self {
        self.tmp_hooks = offered;
        self
    }

    /// Sets [`Route::path_prefix`].
    #[must_use]
    pub fn path_prefix(mut self, prefix: &str) -> Self {
        self.path_prefix = prefix.trim_end_matches('/').into();
        self
    }

    /// Sets [`Route::upstream_prefixes`].
    #[must_use]
    pub fn upstream_prefixes<'a>(mut self, prefixes: impl IntoIterator<Item = &'a str>) -> Self {
        let prefixes = prefixes.into_iter().map(|prefix| prefix.trim_end_matches('/'));
        self.upstream_prefixes = prefixes.filter(|prefix| !prefix.is_empty()).map(Arc::from).collect();
        self
    }

    /// Sets [`Route::public_origin`].
    #[must_use]
    pub fn public_origin(mut self, origin: &str) -> Self {
        self.public_origin = Some(origin.trim_end_matches('/').into());
        self
    }

    /// Sets [`Route::on_deny`].
    #[must_use]
    pub fn on_deny(mut self, on_deny: OnDeny) -> Self {
        self.on_deny = on_deny;
        self
    }
}

/// What is spoken on a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RouteKind {
    /// A model API; the protocol is told by the path.
    Model,
    /// The Model Context Protocol.
    Mcp,
    /// Tools behind plain HTTP, by a table of methods and paths.
    HttpTool,
    /// The Agent2Agent protocol.
    A2a,
    /// Anything; nothing is inspected.
    Passthrough,
}

impl RouteKind {
    /// The name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            RouteKind::Model => "model",
            RouteKind::Mcp => "mcp",
            RouteKind::HttpTool => "http-tool",
            RouteKind::A2a => "a2a",
            RouteKind::Passthrough => "passthrough",
        }
    }
}

/// What happens when no call of an answer survived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDeny {
    /// The model is told the reasons and goes on in the same answer.
    #[default]
    Feedback,
    /// The answer ends with the reason as its text.
    End,
}

/// A tool whose calls start a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subagent {
    /// The tool's name.
    pub tool: Arc<str>,
    /// JSON Pointer to the sub-agent's id in the arguments.
    pub id: String,
    /// JSON Pointer to the delegated prompt in the arguments.
    pub prompt: String,
}

/// What is to be done with a request, told by its head.
#[derive(Debug)]
pub enum Plan {
    /// It goes to the upstream as it is, whatever its size.
    Pass,
    /// It is read and given to [`Hookgate::exchange`](super::Hookgate::exchange).
    Inspect(Inspection),
    /// It is answered with this.
    Refuse(Response<Body>),
}

/// A request that is to be inspected.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub(super) route: Arc<Route>,
    pub(super) target: Target,
    pub(super) body_limit: usize,
}

/// What kind of request it is that is to be inspected.
#[derive(Clone, Debug)]
pub(super) enum Target {
    /// To a model; `counting`: it only counts tokens.
    Model { protocol: Protocol, counting: bool },
    /// To an MCP server.
    Mcp,
    /// To a tool behind plain HTTP.
    HttpTool(http_tool::Called),
    /// To an agent.
    A2a(a2a::Target),
}

impl Inspection {
    /// The largest request body, in bytes, as sent.
    pub fn body_limit(&self) -> usize {
        self.body_limit
    }

    /// The answer to a body that is larger, in the protocol's own shape.
    pub fn too_large(&self, declared: Option<u64>) -> Response<Body> {
        let found = declared.map_or(String::new(), |bytes| format!(" of {bytes} bytes"));
        let message = format!(
            "the request body{found} is over hookgate's limit of {} bytes; raise [limits] max_request_bytes to allow it",
            self.body_limit
        );
        self.refusal(StatusCode::PAYLOAD_TOO_LARGE, &message)
    }

    /// The answer to a body that could not be read to its end.
    pub fn unreadable(&self, why: &str) -> Response<Body> {
        self.refusal(StatusCode::BAD_REQUEST, &format!("the request body could not be read: {why}"))
    }

    fn refusal(&self, status: StatusCode, message: &str) -> Response<Body> {
        match &self.target {
            Target::Model { protocol, .. } => error(*protocol, status, message),
            Target::Mcp => mcp::refusal(status, None, INVALID_REQUEST, message),
            Target::HttpTool(_) => http_tool::refusal(status, message),
            Target::A2a(target) => target.refusal(status, INVALID_REQUEST, message),
        }
    }
}

/// An error answer in the protocol's own shape.
pub(super) fn error(protocol: Protocol, status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(protocol.error_body(status, message)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert("x-should-retry", HeaderValue::from_static("false"));
    response
}

/// Removes what is only for hookgate.
pub(super) fn strip(headers: &mut HeaderMap) {
    let ours: Vec<_> = headers.keys().filter(|name| is_own(name)).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Whether a header is only for hookgate, and goes no further.
fn is_own(name: &HeaderName) -> bool {
    name.as_str().starts_with("x-hookgate-")
}
