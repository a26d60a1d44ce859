//! A worker: it is handed a URL with its task, does the work, and calls the URL once with the result.
//!
//! ```text
//! cargo run --example callback_worker -- http://127.0.0.1:8787/api/tmp-hooks/… "42 tests, all green"
//! ```
//!
//! Everything that a worker has to know of hookgate is in [`report`]: which answers end the matter, and after which it
//! tries again.

use std::time::Duration;

use bytes::Bytes;
use hookgate::BoxError;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

/// How often it tries.
const ATTEMPTS: u32 = 5;
/// The pause after the first failure; it doubles.
const PAUSE: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, summary] = arguments.as_slice() else {
        return Err("usage: callback_worker URL SUMMARY".into());
    };
    let result = serde_json::json!({"status": "done", "summary": summary});
    println!("{}", report(url, &result).await?);
    Ok(())
}

/// Calls back. What it gives is how the matter ended.
///
/// # Errors
/// When the result did not arrive and will not: it is too large, the URL is wrong or too old, or nobody could be reached.
pub async fn report(url: &str, result: &serde_json::Value) -> Result<&'static str, BoxError> {
    let connector = HttpsConnectorBuilder::new()
        .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
        .https_or_http()
        .enable_all_versions()
        .build();
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let mut pause = PAUSE;
    // Once an answer got lost, "already used" may be the answer to this very result.
    let mut unheard = false;
    for _ in 0..ATTEMPTS {
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(serde_json::to_vec(result)?)))?;
        match client.request(request).await.map(|answer| answer.status()) {
            Ok(StatusCode::OK) => return Ok("received"),
            Ok(StatusCode::GONE) if unheard => {
                return Ok("received, as it seems: the answer to an earlier attempt was lost");
            }
            Ok(status) if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT => {
                return Err(format!("refused with {status}: trying again would change nothing").into());
            }
            // 408, 502 and whatever a proxy in between says: the URL is still good.
            Ok(_) => {}
            Err(_) => unheard = true,
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
    Err("nobody took the result".into())
}
