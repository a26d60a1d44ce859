//! Refusals where no protocol says how they look, as RFC 9457 problem details.

use http::{HeaderValue, Response, StatusCode, header};

use crate::body::Body;

/// An answer that says what is wrong and what can be done.
pub(crate) fn problem(status: StatusCode, detail: &str) -> Response<Body> {
    let title = status.canonical_reason().unwrap_or("Refused");
    let body = serde_json::json!({
        "type": "about:blank",
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
    });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_problem_is_json_with_its_status() {
        let response = problem(StatusCode::NOT_FOUND, "no \"route\"");
        assert_eq!(response.status(), 404);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["status"], 404);
        assert_eq!(body["detail"], "no \"route\"");
    }
}
