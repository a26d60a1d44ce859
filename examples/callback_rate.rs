//! How many callbacks hookgate issues and takes in a second: 10,000 tokens over HTTP, all at once, and every message has to
//! arrive exactly once.
//!
//! ```text
//! cargo run --release --example callback_rate --features full
//! ```

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use hookgate::BoxError;
use hookgate::config::Config;
use hookgate::host::pingora::Proxy;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// How many callbacks there are.
const CALLBACKS: usize = 10_000;
/// How many sessions they are for.
const SESSIONS: usize = 100;
/// How many requests are under way at once.
const AT_ONCE: usize = 256;

fn main() -> Result<(), BoxError> {
    let rates = run(CALLBACKS, AT_ONCE)?;
    println!("{CALLBACKS} callbacks for {SESSIONS} sessions, {AT_ONCE} requests at once; none lost, none doubled");
    println!("issued:    {:>8.0} a second", rates.issued);
    println!("delivered: {:>8.0} a second", rates.delivered);
    Ok(())
}

/// What was measured, in callbacks a second.
#[derive(Debug)]
pub struct Rates {
    /// Issued over the control surface.
    pub issued: f64,
    /// Delivered by POST.
    pub delivered: f64,
}

/// Issues and delivers that many callbacks through a proxy on loopback.
///
/// # Errors
/// When a message is lost or doubled, or a request fails.
pub fn run(callbacks: usize, at_once: usize) -> Result<Rates, BoxError> {
    let environment = [
        ("HOOKGATE__SERVER__LISTEN".to_owned(), "127.0.0.1:0".to_owned()),
        ("HOOKGATE__TMP_HOOKS__BASE_URL".to_owned(), "http://hookgate.example".to_owned()),
    ];
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("hookgate.toml");
    std::fs::write(&file, "")?;
    let proxy = Proxy::start(Config::load(Some(&file), environment)?)?;
    let address = proxy.addresses().first().ok_or("the proxy listens nowhere")?.to_string();
    let runtime = tokio::runtime::Runtime::new()?;
    let rates = runtime.block_on(measure(&address, callbacks, at_once))?;
    proxy.stop();
    Ok(rates)
}

async fn measure(address: &str, callbacks: usize, at_once: usize) -> Result<Rates, BoxError> {
    let worker =
        Worker { client: Client::builder(TokioExecutor::new()).build_http(), base: format!("http://{address}") };
    let session = |number: usize| format!("/hookgate/v1/sessions/s{}", number % SESSIONS);

    let begun = Instant::now();
    let issue = |number| {
        let path = format!("{}/tmp-hooks", session(number));
        let worker = &worker;
        async move { worker.send(Method::POST, &path, Bytes::new()).await }
    };
    let issued: Vec<Value> = stream::iter(0..callbacks).map(issue).buffer_unordered(at_once).try_collect().await?;
    let issuing = begun.elapsed();

    let begun = Instant::now();
    let deliver = |(number, hook): (usize, &Value)| {
        let path = hook["url"].as_str().unwrap_or_default().replace("http://hookgate.example", "");
        let worker = &worker;
        async move { worker.send(Method::POST, &path, Bytes::from(format!("result {number}"))).await }
    };
    let delivered: Vec<Value> =
        stream::iter(issued.iter().enumerate()).map(deliver).buffer_unordered(at_once).try_collect().await?;
    let delivering = begun.elapsed();
    if delivered.iter().any(|answer| answer["received"] != true) {
        return Err("a callback was refused".into());
    }

    let mut results = HashSet::new();
    for number in 0..SESSIONS.min(callbacks) {
        let page = worker.send(Method::GET, &format!("{}/inbox?take=true", session(number)), Bytes::new()).await?;
        for message in page["items"].as_array().into_iter().flatten() {
            let result = message["text"].as_str().and_then(|text| text.lines().last()).unwrap_or_default().to_owned();
            if !results.insert(result.clone()) {
                return Err(format!("{result:?} was delivered twice").into());
            }
        }
    }
    if results.len() != callbacks {
        return Err(format!("{} of {callbacks} messages arrived", results.len()).into());
    }
    let rate = |time: Duration| callbacks as f64 / time.as_secs_f64();
    Ok(Rates { issued: rate(issuing), delivered: rate(delivering) })
}

struct Worker {
    client: Client<HttpConnector, Full<Bytes>>,
    base: String,
}

impl Worker {
    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Value, BoxError> {
        let request = Request::builder().method(method).uri(format!("{}{path}", self.base)).body(Full::new(body))?;
        let answer = self.client.request(request).await?;
        if !answer.status().is_success() {
            return Err(format!("an answer {}", answer.status()).into());
        }
        Ok(serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?)
    }
}
