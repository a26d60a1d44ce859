//! The audit records of a session.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};

use super::ControlState;
use super::problem::Problem;
use super::{query, session};
use crate::audit::{AuditOutcome, AuditQuery, AuditRecord, Page};
use crate::hooks::Event;

const NDJSON: &str = "application/x-ndjson";
const PARAMETERS: &[&str] = &["limit", "before", "turn", "event", "outcome", "tenant"];

/// `GET …/sessions/{id}/hooks`: the latest records, oldest first; `next` of one page is `before` of the page before it.
///
/// A session without records is an empty list: it may have begun this moment.
pub(super) async fn of_session(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = session::id(id)?;
    let query = parse(query.as_deref().unwrap_or(""))?;
    let key = session::find(&state, &id, query.tenant.as_deref()).await?;
    let page = key.map(|key| state.core.audit().session(&key, &query));
    answer(&page.unwrap_or(Page { items: Vec::new(), next: None }), &headers)
}

/// `GET /hookgate/v1/audit`: the same across all sessions.
pub(super) async fn of_all(
    State(state): State<ControlState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = parse(query.as_deref().unwrap_or(""))?;
    answer(&state.core.audit().all(&query), &headers)
}

/// A page as JSON, or a record a line.
fn answer(page: &Page<AuditRecord>, headers: &HeaderMap) -> Result<Response, Problem> {
    let (media_type, text) = if query::accepts(headers, NDJSON) {
        (NDJSON, lines(page))
    } else {
        ("application/json", serde_json::to_string(page))
    };
    let text = text.map_err(|error| {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Problem::new(
            status,
            "internal",
            "The records cannot be written",
            format!("This is a fault of hookgate: {error}."),
        )
    })?;
    let headers = [(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-store"), (header::VARY, "accept")];
    Ok((headers, text).into_response())
}

fn parse(query: &str) -> Result<AuditQuery, Problem> {
    let mut parsed = AuditQuery::default();
    for (name, value) in query::pairs(query, PARAMETERS)? {
        match &*name {
            "limit" => parsed.limit = query::number("limit", &value, 1, AuditQuery::default().limit)?,
            "before" => parsed.before = Some(value.into_owned()),
            "turn" => parsed.turn = Some(value.into_owned()),
            "event" => parsed.event = Some(one_of("event", &value, Event::parse, Event::ALL.map(Event::name))?),
            "outcome" => {
                let names = AuditOutcome::ALL.map(AuditOutcome::name);
                parsed.outcome = Some(one_of("outcome", &value, AuditOutcome::parse, names)?);
            }
            // What is left of those that there are.
            _ => parsed.tenant = Some(value.into_owned()),
        }
    }
    Ok(parsed)
}

fn one_of<T, const N: usize>(
    parameter: &str,
    value: &str,
    parse: fn(&str) -> Option<T>,
    names: [&'static str; N],
) -> Result<T, Problem> {
    parse(value).ok_or_else(|| {
        let names = names.join(", ");
        Problem::bad_request(format!("The parameter {parameter} is {value:?}; it has to be one of: {names}."))
    })
}

fn lines(page: &Page<AuditRecord>) -> serde_json::Result<String> {
    page.items.iter().try_fold(String::new(), |mut text, record| {
        text.push_str(&serde_json::to_string(record)?);
        text.push('\n');
        Ok(text)
    })
}
