//! The inbox of a session: a list, a long poll, or a stream of events.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream};
use http::{HeaderMap, header};
use serde::Serialize;

use super::ControlState;
use super::problem::Problem;
use super::{query, session};
use crate::audit::Page;
use crate::callback::{InboxQuery, TmpHooks};
use crate::id::SessionKey;
use crate::store::{InboxMessage, InboxState, MessageId};
use crate::time::Timestamp;

/// The most messages of one page, and the number when none is asked for.
const PAGE: usize = 500;
/// The longest that a list is waited for, in seconds: common clients and proxies give up at 300.
const MAX_WAIT: u64 = 300;
/// A stream of events gives a sign of life after this long without one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A message as it is shown.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    id: MessageId,
    received_at: Timestamp,
    purpose: Option<String>,
    content_type: Option<String>,
    text: String,
    state: InboxState,
}

impl From<InboxMessage> for Item {
    fn from(message: InboxMessage) -> Self {
        let InboxMessage { id, received_at, purpose, content_type, text, state, .. } = message;
        Item { id, received_at, purpose, content_type, text, state }
    }
}

/// `GET …/sessions/{id}/inbox`: the messages in the order in which they came; `next` of one page is `after` of the next.
///
/// Reading changes nothing, unless `take=true`: then only messages that wait are given, and nobody else gets them. `wait`
/// is how many seconds an empty answer is held back for the first message.
pub(super) async fn read(
    State(state): State<ControlState>,
    id: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = session::id(id)?;
    let (mut limit, mut wait, mut tenant) = (PAGE, 0, None);
    let mut wanted = InboxQuery::default();
    for (name, value) in query::pairs(query.as_deref().unwrap_or(""), &["wait", "take", "after", "limit", "tenant"])? {
        match &*name {
            "wait" => wait = query::number("wait", &value, 0, MAX_WAIT)?,
            "take" => wanted.take = query::flag("take", &value)?,
            "after" => wanted.after = Some(message_id("The parameter after", &value)?),
            "limit" => limit = query::number("limit", &value, 1, PAGE)?,
            _ => tenant = Some(value),
        }
    }
    let session = session::find_or_new(&state, &id, tenant.as_deref()).await?;
    if query::accepts(&headers, "text/event-stream") {
        // What a client names when it comes again is newer than what it was started with.
        if let Some(last) = headers.get("last-event-id").filter(|last| !last.is_empty()) {
            let last = last.to_str().unwrap_or("not text");
            wanted.after = Some(message_id("The header last-event-id", last)?);
        }
        let events = events(state.tmp_hooks, session, wanted);
        return Ok(([(header::CACHE_CONTROL, "no-store")], Sse::new(events)).into_response());
    }
    wanted.limit = Some(limit);
    let messages = state.tmp_hooks.inbox(&session, wanted, Duration::from_secs(wait)).await.map_err(Problem::store)?;
    let next = messages.last().filter(|_| messages.len() == limit).map(|message| message.id.to_string());
    let page = Page { items: messages.into_iter().map(Item::from).collect(), next };
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(page)).into_response())
}

fn message_id(what: &str, value: &str) -> Result<MessageId, Problem> {
    value.parse().map_err(|_| {
        Problem::bad_request(format!("{what} is {value:?}; it has to be the id of a message of this inbox."))
    })
}

/// What there is and what comes, one event a message. It ends when hookgate stops or its store fails: the client comes
/// again with the id of the last event that it got.
fn events(
    hooks: TmpHooks,
    session: SessionKey,
    wanted: InboxQuery,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let state = (hooks, session, wanted, VecDeque::new());
    stream::unfold(state, async |(hooks, session, mut wanted, mut queue)| {
        if queue.is_empty() {
            match hooks.inbox(&session, wanted, KEEP_ALIVE).await {
                Ok(messages) => queue.extend(messages),
                Err(error) => {
                    tracing::error!(%error, "a stream of an inbox ends");
                    return None;
                }
            }
        }
        let event = match queue.pop_front() {
            Some(message) => {
                wanted.after = Some(message.id);
                let event = Event::default().event("message").id(message.id.to_string());
                event.json_data(Item::from(message)).ok()?
            }
            None if hooks.is_closed() => return None,
            None => Event::default().comment("waiting"),
        };
        Some((Ok(event), (hooks, session, wanted, queue)))
    })
}
