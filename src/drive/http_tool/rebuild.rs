//! A request with other arguments: what a replacement did not change stays as it came.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri, header, request};

use super::find::Called;
use super::table::Found;
use crate::drive::route::Route;
use crate::wire::http_tool::{Changes, NewBody, PlainPath};

/// Puts changes into a request's head; gives the new body, if it is to have another one.
///
/// # Errors
/// Why the request cannot be made, in words that hold none of its values.
pub(super) fn rebuild(
    head: &mut request::Parts,
    route: &Route,
    called: &Called,
    changes: Changes,
) -> Result<Option<Bytes>, String> {
    if !changes.path.is_empty() || changes.query.is_some() {
        head.uri = uri(&head.uri, route, called, head.method.clone(), &changes)?;
    }
    Ok(changes.body.map(|body| match body {
        NewBody::None => {
            head.headers.remove(header::CONTENT_TYPE);
            Bytes::new()
        }
        NewBody::Text(text) => text.into(),
        NewBody::Json(text) => {
            head.headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            text
        }
    }))
}

fn uri(uri: &Uri, route: &Route, called: &Called, method: http::Method, changes: &Changes) -> Result<Uri, String> {
    let no_uri = || "no address can be made of its path and query".to_owned();
    let mut path = called.path.to_string();
    for (index, _, written) in changes.path.iter().rev() {
        let at = called.parameters.get(*index).ok_or_else(no_uri)?.at.clone();
        if path.get(at.clone()).is_none() {
            return Err(no_uri());
        }
        path.replace_range(at, written);
    }
    // Another value may be a literal of another tool, about which nobody was asked.
    let plain = PlainPath::read(&path).map_err(|why| why.to_string())?;
    match route.tools.find(&method, &plain) {
        Found::Tool(tool, _) if tool.method == called.tool.method && tool.template == called.tool.template => {}
        _ => return Err("its path is no longer that of the tool".to_owned()),
    }
    // A host may have left the route's prefix in front.
    let prefix = match uri.path().strip_suffix(&*called.path) {
        Some(prefix) => prefix,
        None if changes.path.is_empty() => "",
        None => return Err(no_uri()),
    };
    let path = if changes.path.is_empty() { uri.path().to_owned() } else { format!("{prefix}{path}") };
    let query = changes.query.as_deref().or(uri.query()).filter(|query| !query.is_empty());
    let target = match query {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(target).map_err(|_| no_uri())?);
    Uri::from_parts(parts).map_err(|_| no_uri())
}
