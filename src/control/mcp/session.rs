//! In which session a call was made.

use http::request;
use serde_json::{Map, Value};

use crate::callback::{Asked, Caller};
use crate::control::{ControlState, query, session};
use crate::id::{SessionKey, Tenant};

/// The header by which a client says it. Model traffic has the same one.
const HEADER: &str = "x-hookgate-session";

/// The session of a call, or a sentence that says what to do.
///
/// 1. The call that a model made, when `_meta` has the id that the model's API gave it.
/// 2. The session that the client names.
/// 3. The call of the same tool with the same arguments that a model made in these moments, when only one session made it.
pub(super) async fn of(
    state: &ControlState,
    head: &request::Parts,
    meta: &Map<String, Value>,
    tool: &str,
    arguments: &Value,
) -> Result<SessionKey, String> {
    let tenant = tenant(head)?;
    let asked = Asked { tool, arguments, tenant: tenant.as_deref() };
    // Each client has a name of its own for it (Claude Code: `claudecode/toolUseId`), and nothing else has such a value.
    let ids = meta.values().filter_map(Value::as_str);
    for caller in ids.map(|id| state.tmp_hooks.caller(asked, Some(id))) {
        if let Caller::Session(session) = caller {
            return Ok(session);
        }
    }
    if let Some(named) = head.headers.get(HEADER).filter(|named| !named.is_empty()) {
        let id = named.to_str().map_err(|_| format!("the header {HEADER} is not text"))?;
        return session::find_or_new(state, id, tenant.as_deref()).await.map_err(|problem| problem.detail().to_owned());
    }
    match state.tmp_hooks.caller(asked, None) {
        Caller::Session(session) => Ok(session),
        Caller::Several => Err(format!(
            "hookgate cannot tell which session this call is from: several sessions made the same call in these moments. \
             Make it again with a purpose that says more, or let the MCP client send the header {HEADER} with the session's id"
        )),
        Caller::Nobody => Err(format!(
            "hookgate cannot tell which session this call is from: it saw no model make it. Send the model's requests through \
             a route of this hookgate that has tmp_hooks = true, or let the MCP client send the header {HEADER} with the session's id"
        )),
    }
}

/// The only tenant that counts: the one that a service in front names, or the URL's `?tenant=`.
fn tenant(head: &request::Parts) -> Result<Option<String>, String> {
    if let Some(tenant) = head.extensions.get::<Tenant>() {
        return Ok(Some(tenant.name().to_owned()));
    }
    let pairs = query::pairs(head.uri.query().unwrap_or_default(), &["tenant"]);
    let mut pairs = pairs.map_err(|problem| problem.detail().to_owned())?;
    Ok(pairs.pop().map(|(_, tenant)| tenant.into_owned()))
}
