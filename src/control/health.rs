//! Whether hookgate runs, whether it is ready, and what it counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use super::ControlState;
use super::problem::Problem;

/// How often what was recorded is condensed when nobody asks for it.
const UPKEEP: Duration = Duration::from_secs(5);
/// Upper bounds of histogram buckets in seconds: from a local handler's answer to the longest that a handler may take.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0, 30.0];

/// Whether new requests are welcome: from the moment that listeners accept until shutdown begins. Clones are one switch.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Arc<AtomicBool>);

impl Readiness {
    /// Not ready yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whether new requests are welcome from now on.
    pub fn set(&self, ready: bool) {
        self.0.store(ready, Ordering::Relaxed);
    }

    /// What was said last.
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The numbers that `metrics` macros record, in Prometheus' text form.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

/// Something in this process records metrics elsewhere already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "another metrics recorder is installed in this process; install hookgate's first, or serve the metrics of that one"
)]
#[non_exhaustive]
pub struct MetricsError;

impl Metrics {
    /// Records the metrics of the whole process from now on.
    ///
    /// Samples of histograms are kept until they are condensed: run [`Metrics::keep_up`] beside.
    ///
    /// # Errors
    /// When another recorder is installed.
    pub fn install() -> Result<Self, MetricsError> {
        let recorder = builder().build_recorder();
        let metrics = Metrics(recorder.handle());
        metrics::set_global_recorder(recorder).map_err(|_| MetricsError)?;
        Ok(metrics)
    }

    /// Records nothing: for tests, and for services that show metrics in another way.
    pub fn detached() -> Self {
        Metrics(builder().build_recorder().handle())
    }

    /// Condenses samples every few seconds, so that their memory is bounded although nobody reads them. Never returns.
    pub async fn keep_up(&self) {
        let mut ticks = tokio::time::interval(UPKEEP);
        loop {
            ticks.tick().await;
            self.0.run_upkeep();
        }
    }

    /// The current numbers.
    pub fn render(&self) -> String {
        self.0.render()
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

fn builder() -> PrometheusBuilder {
    let builder = PrometheusBuilder::new();
    // Only an empty list of buckets is an error.
    builder.set_buckets(&BUCKETS).unwrap_or_else(|_| PrometheusBuilder::new())
}

pub(super) async fn alive() -> Response {
    text("text/plain; charset=utf-8", "ok\n".to_owned())
}

pub(super) async fn ready(State(state): State<ControlState>) -> Response {
    if state.readiness.is_ready() {
        return text("text/plain; charset=utf-8", "ready\n".to_owned());
    }
    let detail = "hookgate is starting or stopping; send new requests elsewhere, or ask again in a moment.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "not-ready", "Not ready", detail).into_response()
}

pub(super) async fn metrics(State(state): State<ControlState>) -> Response {
    text("text/plain; version=0.0.4; charset=utf-8", state.metrics.render())
}

fn text(media_type: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, media_type), (header::CACHE_CONTROL, "no-store")], text).into_response()
}
