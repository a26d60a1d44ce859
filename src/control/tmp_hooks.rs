//! One-time callbacks of a session: issued, listed, revoked.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{StatusCode, header};
use serde::Deserialize;

use super::ControlState;
use super::problem::Problem;
use super::{query, session};
use crate::audit::Page;
use crate::callback::{IssueError, ListedHook};
use crate::store::Revoking;

/// The most callbacks of one page, and the number when none is asked for.
const PAGE: usize = 500;

/// What is asked for; all of it can be left out, and so can the body.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    purpose: Option<String>,
    ttl_seconds: Option<i64>,
}

/// `POST …/sessions/{id}/tmp-hooks`. The answer is the only place where the token is shown.
pub(super) async fn issue(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    body: Bytes,
) -> Result<Response, Problem> {
    let id = session::id(id)?;
    let tenant = session::tenant(query.as_deref())?;
    let wanted = wanted(&body)?;
    let session = session::find_or_new(&state, &id, tenant.as_deref()).await?;
    let hook = state.tmp_hooks.issue(&session, wanted.purpose.as_deref(), wanted.ttl_seconds).await.map_err(refused)?;
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(hook)).into_response())
}

fn wanted(body: &[u8]) -> Result<Wanted, Problem> {
    if body.trim_ascii().is_empty() {
        return Ok(Wanted::default());
    }
    serde_json::from_slice(body).map_err(|error| {
        Problem::bad_request(format!(
            "The body is not what is accepted ({error}): a JSON object with a text \"purpose\" and an integer \
             \"ttl_seconds\", both of which can be left out."
        ))
    })
}

fn refused(error: IssueError) -> Problem {
    let (status, kind) = match &error {
        IssueError::Origin(_) => (StatusCode::INTERNAL_SERVER_ERROR, "no-callback-origin"),
        IssueError::Purpose => (StatusCode::BAD_REQUEST, "bad-request"),
        IssueError::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too-many-callbacks"),
        IssueError::Store(_) => {
            tracing::error!(error = &error as &dyn std::error::Error, "a callback was not issued");
            (StatusCode::SERVICE_UNAVAILABLE, "store")
        }
    };
    Problem::new(status, kind, "No callback was issued", error.to_string())
}

/// `GET …/sessions/{id}/tmp-hooks`: in the order in which they were issued; `next` of one page is `after` of the next.
pub(super) async fn list(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let id = session::id(id)?;
    let (mut limit, mut after, mut tenant) = (PAGE, None, None);
    for (name, value) in query::pairs(query.as_deref().unwrap_or(""), &["limit", "after", "tenant"])? {
        match &*name {
            "limit" => limit = query::number("limit", &value, 1, PAGE)?,
            "after" => after = Some(value),
            _ => tenant = Some(value),
        }
    }
    let mut items = match session::find(&state, &id, tenant.as_deref()).await? {
        // One more tells whether there is another page.
        Some(session) => state.tmp_hooks.list(&session, after.as_deref(), limit + 1).await.map_err(Problem::store)?,
        None => Vec::new(),
    };
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|hook| hook.hash.clone());
    let page: Page<ListedHook> = Page { items, next };
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(page)).into_response())
}

/// `DELETE …/sessions/{id}/tmp-hooks/{hash}`.
pub(super) async fn revoke(
    State(state): State<ControlState>,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<StatusCode, Problem> {
    let Path((id, hash)) = path.map_err(|_| session::not_utf8())?;
    let tenant = session::tenant(query.as_deref())?;
    let revoking = match session::find(&state, &id, tenant.as_deref()).await? {
        Some(session) => state.tmp_hooks.revoke(&session, &hash).await.map_err(Problem::store)?,
        None => Revoking::Unknown,
    };
    let problem = |status, kind, detail| Err(Problem::new(status, kind, "The callback was not revoked", detail));
    match revoking {
        Revoking::Revoked => Ok(StatusCode::NO_CONTENT),
        Revoking::Unknown => problem(
            StatusCode::NOT_FOUND,
            "unknown-callback",
            "The session has no callback of this hash; a GET of …/tmp-hooks lists those that it has.",
        ),
        Revoking::Claimed => problem(
            StatusCode::CONFLICT,
            "callback-in-delivery",
            "Its message is being delivered at this moment; ask again if the delivery fails.",
        ),
        Revoking::Delivered => {
            problem(StatusCode::CONFLICT, "callback-delivered", "Its message was delivered; it is in the inbox.")
        }
    }
}
