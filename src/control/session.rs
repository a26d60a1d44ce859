//! Which session a path means.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use http::StatusCode;
use serde_json::json;

use super::problem::Problem;
use super::{ControlState, query};
use crate::id::{DEFAULT_TENANT, SessionKey};
use crate::limits::MAX_ID_BYTES;

/// The id in the path.
pub(super) fn id(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let Path(id) = path.map_err(|_| not_utf8())?;
    Ok(id)
}

/// An id that cannot be one.
pub(super) fn not_utf8() -> Problem {
    Problem::bad_request("The session id in the path is not percent-encoded UTF-8.")
}

/// The tenant of a query that has nothing else.
pub(super) fn tenant(query: Option<&str>) -> Result<Option<String>, Problem> {
    let mut pairs = query::pairs(query.unwrap_or(""), &["tenant"])?;
    Ok(pairs.pop().map(|(_, tenant)| tenant.into_owned()))
}

/// The session of that id; `None` when no tenant has one. Of a tenant that is named it need not be there.
pub(super) async fn find(state: &ControlState, id: &str, tenant: Option<&str>) -> Result<Option<SessionKey>, Problem> {
    if let Some(tenant) = tenant {
        return Ok(Some(SessionKey { tenant: tenant.into(), session: id.into() }));
    }
    the_only(known(state, id).await?)
}

/// The sessions of that id of which anything is known: a record, audit records, callbacks.
pub(super) async fn known(state: &ControlState, id: &str) -> Result<Vec<SessionKey>, Problem> {
    let mut sessions = state.core.sessions_named(id);
    sessions.extend(state.core.audit().sessions_named(id));
    sessions.extend(state.tmp_hooks.store().sessions_named(id.to_owned()).await.map_err(Problem::store)?);
    sessions.sort_by(|left, right| left.tenant.cmp(&right.tenant));
    sessions.dedup();
    Ok(sessions)
}

/// The session when there is one; several have to be told apart.
pub(super) fn the_only(mut sessions: Vec<SessionKey>) -> Result<Option<SessionKey>, Problem> {
    if sessions.len() > 1 {
        let tenants: Vec<&str> = sessions.iter().map(|key| &*key.tenant).collect();
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "ambiguous-session",
            "Several tenants have a session of this id",
            format!("Add ?tenant=NAME with one of: {}.", tenants.join(", ")),
        )
        .with("tenants", json!(tenants)));
    }
    Ok(sessions.pop())
}

/// The session of that id; one that was never seen belongs to the default tenant.
pub(super) async fn find_or_new(state: &ControlState, id: &str, tenant: Option<&str>) -> Result<SessionKey, Problem> {
    let new = || SessionKey { tenant: DEFAULT_TENANT.into(), session: id.into() };
    let session = find(state, id, tenant).await?.unwrap_or_else(new);
    if id.len() > MAX_ID_BYTES && state.core.session(&session).is_none() {
        let detail = format!("The session id has {} bytes; a new session's has at most {MAX_ID_BYTES}.", id.len());
        return Err(Problem::bad_request(detail));
    }
    Ok(session)
}

/// There is no session of that id.
pub(super) fn unknown(id: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "unknown-session",
        "There is no such session",
        format!(
            "hookgate knows no session {id:?}, or no longer, or not of this tenant; GET /hookgate/v1/sessions lists those that it knows."
        ),
    )
}
