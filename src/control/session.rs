//! Which session a path means.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use http::StatusCode;
use serde_json::json;

use super::ControlState;
use super::problem::Problem;
use crate::id::{DEFAULT_TENANT, SessionKey};

/// The id in the path.
pub(super) fn id(path: Result<Path<String>, PathRejection>) -> Result<String, Problem> {
    let Path(id) = path.map_err(|_| not_utf8())?;
    Ok(id)
}

/// An id that cannot be one.
pub(super) fn not_utf8() -> Problem {
    Problem::bad_request("The session id in the path is not percent-encoded UTF-8.")
}

/// The session of that id; `None` when no tenant has one.
pub(super) async fn find(state: &ControlState, id: &str, tenant: Option<&str>) -> Result<Option<SessionKey>, Problem> {
    if let Some(tenant) = tenant {
        return Ok(Some(SessionKey { tenant: tenant.into(), session: id.into() }));
    }
    let mut sessions = state.audit.sessions_named(id);
    sessions.extend(state.tmp_hooks.store().sessions_named(id.to_owned()).await.map_err(Problem::store)?);
    sessions.sort_by(|left, right| left.tenant.cmp(&right.tenant));
    sessions.dedup();
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
    Ok(find(state, id, tenant).await?.unwrap_or_else(new))
}
