//! Sessions: listed, shown, put away, deleted.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde::Serialize;

use super::problem::Problem;
use super::{ControlState, query, session};
use crate::audit::Page;
use crate::drive::Origin;
use crate::id::SessionKey;
use crate::{SessionQuery, SessionRecord};

/// A session as it is shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    #[serde(flatten)]
    record: SessionRecord,
    open_callbacks: usize,
}

impl Item {
    fn of(state: &ControlState, record: SessionRecord) -> Self {
        let key = SessionKey { tenant: record.tenant.clone(), session: record.id.clone() };
        Item { open_callbacks: state.tmp_hooks.open_callbacks(&key), record }
    }
}

/// `GET /hookgate/v1/sessions`: the newest first; `next` of one page is `after` of the next.
pub(super) async fn list(State(state): State<ControlState>, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    let mut wanted = SessionQuery::default();
    for (name, value) in query::pairs(query.as_deref().unwrap_or(""), &["limit", "after", "tenant"])? {
        match &*name {
            "limit" => wanted.limit = Some(query::number("limit", &value, 1, SessionQuery::MOST)?),
            "after" => wanted.after = Some(place(&value)?),
            _ => wanted.tenant = Some(value.into_owned()),
        }
    }
    let Page { items, next } = state.core.sessions(&wanted);
    let items = items.into_iter().map(|record| Item::of(&state, record)).collect();
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(Page::<Item> { items, next })).into_response())
}

fn place(value: &str) -> Result<u64, Problem> {
    value.parse().map_err(|_| {
        Problem::bad_request(format!("The parameter after is {value:?}; it has to be what a list gave as \"next\"."))
    })
}

/// `GET …/sessions/{id}`.
pub(super) async fn show(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let id = session::id(id)?;
    let session = named(&state, &id, query.as_deref()).await?;
    let record = session.and_then(|session| state.core.session(&session)).ok_or_else(|| session::unknown(&id))?;
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(Item::of(&state, record))).into_response())
}

/// `POST …/sessions/{id}/archive`.
pub(super) async fn archive(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Problem> {
    put_away(&state, id, query.as_deref(), true).await
}

/// `POST …/sessions/{id}/unarchive`.
pub(super) async fn unarchive(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Problem> {
    put_away(&state, id, query.as_deref(), false).await
}

async fn put_away(
    state: &ControlState,
    id: Result<Path<String>, PathRejection>,
    query: Option<&str>,
    archived: bool,
) -> Result<StatusCode, Problem> {
    let id = session::id(id)?;
    let session = named(state, &id, query).await?;
    let done = session.is_some_and(|session| state.core.archive_session(&session, archived));
    if done { Ok(StatusCode::NO_CONTENT) } else { Err(session::unknown(&id)) }
}

/// `DELETE …/sessions/{id}`. It is answered when nothing is left. A session whose record was forgotten can still have audit
/// records and callbacks: they are deleted in the same way.
pub(super) async fn delete(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let id = session::id(id)?;
    let tenant = session::tenant(query.as_deref())?;
    let known = session::known(&state, &id).await?.into_iter();
    let known = known.filter(|key| tenant.as_deref().is_none_or(|tenant| *key.tenant == *tenant)).collect();
    let session = session::the_only(known)?.ok_or_else(|| session::unknown(&id))?;
    state.core.delete(&session, Origin::request(&state.core, &headers)).await.map_err(Problem::store)?;
    // A service may not have given its callbacks to the core.
    state.tmp_hooks.forget(&session).await.map_err(Problem::store)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The session of that id, as far as it is told without looking whether it is there.
async fn named(state: &ControlState, id: &str, query: Option<&str>) -> Result<Option<SessionKey>, Problem> {
    let tenant = session::tenant(query)?;
    session::find(state, id, tenant.as_deref()).await
}
