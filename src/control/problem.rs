//! Errors as RFC 9457 describes them.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};

use crate::store::StoreError;

/// An error answer.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    members: Map<String, Value>,
}

impl Problem {
    /// `kind` is what programs tell problems apart by, `title` is the same for all of a kind, `detail` says what to do.
    pub(super) fn new(status: StatusCode, kind: &str, title: &str, detail: impl Into<String>) -> Self {
        let members = [
            ("type", json!(format!("urn:hookgate:problem:{kind}"))),
            ("title", json!(title)),
            ("status", json!(status.as_u16())),
            ("detail", json!(detail.into())),
        ];
        Problem { status, members: members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
    }

    /// A question that cannot be answered as it was asked.
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", "The request cannot be understood", detail)
    }

    /// A store that failed; the log says how.
    pub(super) fn store(error: StoreError) -> Self {
        tracing::error!(%error, "the control surface has no answer");
        let detail = "The store of callbacks failed, and the log says how; try again.";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", "The store failed", detail)
    }

    /// The sentence that says what to do.
    #[cfg(feature = "mcp")]
    pub(super) fn detail(&self) -> &str {
        self.members.get("detail").and_then(Value::as_str).unwrap_or_default()
    }

    /// Adds a member for programs.
    pub(super) fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Value::Object(self.members).to_string();
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        (self.status, headers, body).into_response()
    }
}
