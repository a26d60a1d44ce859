//! Background tasks of a session: begun and stopped.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::problem::Problem;
use super::{ControlState, session};
use crate::drive::Origin;
use crate::id::random_id;
use crate::{TaskError, TaskStatus};

/// What is asked for; the title can be left out, and so can the body.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    title: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stopping {
    status: String,
}

/// `POST …/sessions/{id}/tasks`. It is answered when the `TaskStart` handlers answered. A session that was never seen begins with it.
pub(super) async fn start(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let id = session::id(id)?;
    let tenant = session::tenant(query.as_deref())?;
    let Wanted { title } = match body.trim_ascii().is_empty() {
        true => Wanted::default(),
        false => read(&body, "a JSON object with a text \"title\", which can be left out")?,
    };
    let session = session::find_or_new(&state, &id, tenant.as_deref()).await?;
    let origin = Origin::request(&state.core, &headers);
    let begun =
        state.core.begin_task(&session, random_id().into(), title.as_deref(), &origin).await.map_err(refused)?;
    Ok((StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(begun)).into_response())
}

/// `POST …/sessions/{id}/tasks/{taskId}/stop`. Once more with the same status is fine: its first answer may have been lost.
pub(super) async fn stop(
    State(state): State<ControlState>,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, Problem> {
    let Path((id, task)) = path.map_err(|_| session::not_utf8())?;
    let tenant = session::tenant(query.as_deref())?;
    let names = TaskStatus::ALL.map(TaskStatus::name).join(", ");
    let Stopping { status } = read(&body, &format!("a JSON object with a \"status\", one of: {names}"))?;
    let status = TaskStatus::parse(&status)
        .ok_or_else(|| Problem::bad_request(format!("The status is {status:?}; it has to be one of: {names}.")))?;
    let session = session::find(&state, &id, tenant.as_deref()).await?.ok_or_else(|| refused(TaskError::Unknown))?;
    state.core.end_task(&session, &task, status, &Origin::request(&state.core, &headers)).map_err(refused)?;
    Ok(StatusCode::NO_CONTENT)
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8], accepted: &str) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::bad_request(format!("The body is not what is accepted ({error}): {accepted}.")))
}

fn refused(error: TaskError) -> Problem {
    let (status, kind) = match &error {
        TaskError::Title => (StatusCode::BAD_REQUEST, "bad-request"),
        TaskError::TooMany => (StatusCode::TOO_MANY_REQUESTS, "too-many-tasks"),
        TaskError::Deleting => (StatusCode::CONFLICT, "session-deleted"),
        TaskError::Unknown => (StatusCode::NOT_FOUND, "unknown-task"),
        TaskError::Ended(_) => (StatusCode::CONFLICT, "task-ended"),
    };
    let title = match &error {
        TaskError::Unknown | TaskError::Ended(_) => "The task was not stopped",
        _ => "No task was begun",
    };
    Problem::new(status, kind, title, error.to_string())
}
