//! The audit records of a session.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::json;

use super::ControlState;
use super::problem::Problem;
use crate::audit::{AuditOutcome, AuditQuery, AuditRecord, Page};
use crate::hooks::Event;
use crate::id::SessionKey;

const NDJSON: &str = "application/x-ndjson";
const PARAMETERS: &str = "limit, before, turn, event, outcome, tenant";

/// `GET …/sessions/{id}/hooks`: the latest records, oldest first; `next` of one page is `before` of the page before it.
///
/// A session without records is an empty list: it may have begun this moment.
pub(super) async fn of_session(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Path(id) = id.map_err(|_| Problem::bad_request("The session id in the path is not percent-encoded UTF-8."))?;
    let query = parse(query.as_deref().unwrap_or(""))?;
    let key = session(&state, &id, query.tenant.clone())?;
    let page = key.map(|key| state.audit.session(&key, &query));
    answer(&page.unwrap_or(Page { items: Vec::new(), next: None }), &headers)
}

/// `GET /hookgate/v1/audit`: the same across all sessions.
pub(super) async fn of_all(
    State(state): State<ControlState>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = parse(query.as_deref().unwrap_or(""))?;
    answer(&state.audit.all(&query), &headers)
}

/// A page as JSON, or a record a line.
fn answer(page: &Page<AuditRecord>, headers: &HeaderMap) -> Result<Response, Problem> {
    let (media_type, text) =
        if wants_lines(headers) { (NDJSON, lines(page)) } else { ("application/json", serde_json::to_string(page)) };
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

/// The session that is meant; `None` when no tenant has one of that id.
fn session(state: &ControlState, id: &str, tenant: Option<String>) -> Result<Option<SessionKey>, Problem> {
    if let Some(tenant) = tenant {
        return Ok(Some(SessionKey { tenant: tenant.into(), session: id.into() }));
    }
    let mut sessions = state.audit.sessions_named(id);
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

fn parse(query: &str) -> Result<AuditQuery, Problem> {
    let mut parsed = AuditQuery::default();
    let mut seen = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if seen.contains(&name) {
            return Err(Problem::bad_request(format!("The parameter {name} is given twice; give it once.")));
        }
        match &*name {
            "limit" => parsed.limit = limit(&value)?,
            "before" => parsed.before = Some(value.into_owned()),
            "turn" => parsed.turn = Some(value.into_owned()),
            "event" => parsed.event = Some(one_of("event", &value, Event::parse, Event::ALL.map(Event::name))?),
            "outcome" => {
                let names = AuditOutcome::ALL.map(AuditOutcome::name);
                parsed.outcome = Some(one_of("outcome", &value, AuditOutcome::parse, names)?);
            }
            "tenant" => parsed.tenant = Some(value.into_owned()),
            _ => {
                let detail = format!("There is no parameter {name:?}; there are {PARAMETERS}.");
                return Err(Problem::bad_request(detail));
            }
        }
        seen.push(name);
    }
    Ok(parsed)
}

fn limit(value: &str) -> Result<usize, Problem> {
    let most = AuditQuery::default().limit;
    value.parse().ok().filter(|limit| (1..=most).contains(limit)).ok_or_else(|| {
        Problem::bad_request(format!("The parameter limit is {value:?}; it has to be a number from 1 to {most}."))
    })
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

/// Whether `accept` asks for a record a line. Whoever names the type wants it; preferences between types are not weighed.
fn wants_lines(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = values.flat_map(|value| value.split(',')).filter_map(|range| range.split(';').next());
    types.any(|range| range.trim().eq_ignore_ascii_case(NDJSON))
}

fn lines(page: &Page<AuditRecord>) -> serde_json::Result<String> {
    page.items.iter().try_fold(String::new(), |mut text, record| {
        text.push_str(&serde_json::to_string(record)?);
        text.push('\n');
        Ok(text)
    })
}
