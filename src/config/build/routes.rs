//! Routes: unambiguous, beside the control surface, with their credentials.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::{Surroundings, references, tools};
use crate::config::error::Problems;
use crate::config::keys::{Root, Route};
use crate::config::model::{RouteConfig, Scheme};
use crate::{HttpTools, OnDeny, Route as CoreRoute, RouteKind};

/// The longest silence within an answer where a route says none: models and tools that say nothing for so long are gone.
const ANSWER_SILENCE: Duration = Duration::from_secs(300);
/// The same where streams wait for what may happen: MCP's subscriptions, the tasks of agents. It is the most that a route can say.
const STREAM_SILENCE: Duration = Duration::from_secs(86_400);

/// Paths that the control surface answers.
pub(super) const CONTROL_PATHS: [&str; 5] = ["/hookgate", "/api/sessions", "/healthz", "/readyz", "/metrics"];

/// The routes, in the order in which they are tried.
pub(super) fn resolve(root: &Root, around: &Surroundings<'_>, problems: &mut Problems) -> Vec<RouteConfig> {
    if root.routes.is_empty() {
        root.routes.reject(problems, "found no route; expected at least one (without the key there are three)");
    }
    refuse_ambiguous(&root.routes, problems);
    let control_is_apart = !root.server.control_listen.0.is_empty();
    let mut routes = Vec::with_capacity(root.routes.len());
    for route in root.routes.iter() {
        let taken = CONTROL_PATHS.iter().find(|control| starts_with(&route.path_prefix, control));
        if let Some(control) = taken.filter(|_| !control_is_apart) {
            let message =
                format!("{control} belongs to the control surface; [server] control_listen would move that away");
            route.path_prefix.reject(problems, message);
        }
        if starts_with(&route.path_prefix, &root.tmp_hooks.path_prefix.0) {
            let message = "one-time callbacks come in there; [tmp_hooks] path_prefix would move them away";
            route.path_prefix.reject(problems, message);
        }
        if let Some(route) = resolve_one(route, root.hooks.on_deny, around, problems) {
            routes.push(route);
        }
    }
    routes.sort_by_key(|route| (Reverse(route.path_prefix.len()), route.host.is_none()));
    routes
}

/// Whether a path is, or is below, another.
pub(super) fn starts_with(path: &str, start: &str) -> bool {
    path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn refuse_ambiguous(routes: &[Route], problems: &mut Problems) {
    let mut names = HashMap::new();
    let mut places = HashMap::new();
    for route in routes {
        if let Some(first) = names.insert(&**route.name, route.name.origin()) {
            route.name.reject(problems, format!("the name {:?} is taken by the route at {first}", &**route.name));
        }
        let place = (route.host.as_deref(), &**route.path_prefix);
        if let Some(first) = places.insert(place, route) {
            let message = format!("the route {:?} takes the same host and path_prefix", &**first.name);
            route.path_prefix.reject(problems, message);
        }
    }
}

fn resolve_one(
    route: &Route,
    on_deny: OnDeny,
    around: &Surroundings<'_>,
    problems: &mut Problems,
) -> Option<RouteConfig> {
    let upstreams: Vec<_> = route.upstream.0.iter().map(|url| url.0.clone()).collect();
    if upstreams.is_empty() {
        route.upstream.reject(problems, "found no server; expected at least one URL");
    }
    refuse_what_would_have_no_effect(route, problems);
    let headers: Option<Vec<(HeaderName, HeaderValue)>> = {
        let mut resolve = |(name, variable): &(String, _)| {
            let header = references::name(name, variable, problems);
            let value = references::variable(variable, around, problems);
            header.zip(value.and_then(|value| references::secret(value, variable, problems)))
        };
        // Every header is looked at before one fault ends it.
        let headers: Vec<_> = route.header_env.0.iter().map(&mut resolve).collect();
        headers.into_iter().collect()
    };
    let tools = tools::resolve(route, around, problems);
    Some(RouteConfig {
        route: Arc::new(core(route, on_deny, tools)),
        host: route.host.as_ref().map(|host| host.to_string()),
        path_prefix: route.path_prefix.to_string(),
        upstreams,
        connect_timeout: route.connect_timeout,
        first_byte_timeout: route.first_byte_timeout,
        idle_timeout: route.idle_timeout.unwrap_or(match route.kind {
            RouteKind::Mcp | RouteKind::A2a => STREAM_SILENCE,
            _ => ANSWER_SILENCE,
        }),
        check_interval: route.check_interval,
        ca_file: route.ca_file.as_ref().and_then(|path| around.folder.certificates(path, problems)),
        client_cert: route.client_cert.as_ref().and_then(|files| around.folder.tls(files, problems)),
        headers: headers?,
    })
}

fn core(route: &Route, on_deny: OnDeny, tools: HttpTools) -> CoreRoute {
    let allowed = route.allow_uninspected.iter().map(|path| path.to_string());
    let core = match route.kind {
        RouteKind::Model => CoreRoute::model(&route.name)
            .allow_uninspected(allowed)
            .on_deny(route.on_deny.unwrap_or(on_deny))
            .tmp_hooks(route.tmp_hooks),
        RouteKind::Mcp => CoreRoute::mcp(&route.name, route.server.as_deref().unwrap_or(&route.name)),
        RouteKind::HttpTool => CoreRoute::http_tool(&route.name, tools).allow_uninspected(allowed),
        RouteKind::A2a => CoreRoute::a2a(&route.name)
            .path_prefix(&route.path_prefix)
            .upstream_prefixes(route.upstream.0.iter().map(|url| url.0.path_prefix.as_str())),
        RouteKind::Passthrough => CoreRoute::passthrough(&route.name),
    };
    route.public_origin.iter().fold(core, |core, origin| core.public_origin(origin))
}

/// A setting that is accepted and then changes nothing would be a false comfort.
fn refuse_what_would_have_no_effect(route: &Route, problems: &mut Problems) {
    let plain = route.upstream.0.iter().all(|url| url.0.scheme == Scheme::Http);
    if plain && (route.ca_file.is_some() || route.client_cert.is_some()) {
        route.upstream.reject(problems, "ca_file and client_cert need an https upstream");
    }
    let kind = route.kind.name();
    let mut useless = |keys: &str, given: bool, expected: &str| {
        if given {
            let message =
                format!("{keys} has no effect on a route of kind = {kind:?}; remove it or use kind = {expected}");
            route.name.reject(problems, message);
        }
    };
    let to_a_model = route.kind == RouteKind::Model;
    useless("tmp_hooks", route.tmp_hooks && !to_a_model, "\"model\"");
    let to_tools = route.kind == RouteKind::HttpTool;
    let inspected_by_path = to_a_model || to_tools;
    useless(
        "allow_uninspected",
        !route.allow_uninspected.is_empty() && !inspected_by_path,
        "\"model\" or \"http-tool\"",
    );
    useless("tools", !route.tools.is_empty() && !to_tools, "\"http-tool\"");
    useless("on_deny", route.on_deny.is_some() && !to_a_model, "\"model\"");
    let (to_mcp, to_an_agent) = (route.kind == RouteKind::Mcp, route.kind == RouteKind::A2a);
    useless("public_origin", route.public_origin.is_some() && !to_mcp && !to_an_agent, "\"mcp\" or \"a2a\"");
    useless("server", route.server.is_some() && !to_mcp, "\"mcp\"");
}
