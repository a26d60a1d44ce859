//! Asking as fast as answers come, over connections that are kept: wrk does it.

use std::path::Path;

use hookgate::BoxError;
use serde::Deserialize;
use tokio::process::Command;

use crate::ask::Ask;
use crate::figures::{Figure, Sample};
use crate::process::Process;

/// Whole seconds, as wrk takes them.
const SECONDS: u64 = 1;
/// Makes wrk post, and print its figures in a form for programs.
const SCRIPT: &str = include_str!("wrk.lua");

/// The last line that the script prints.
#[derive(Deserialize)]
struct Printed {
    requests: u64,
    micros: u64,
    p50: u64,
    p99: u64,
    errors: u64,
}

/// Asks over so many connections; CPU is divided by the events of each answer.
pub(crate) async fn run(
    process: &Process,
    folder: &Path,
    ask: Ask,
    connections: usize,
    events: usize,
) -> Result<Sample, BoxError> {
    let (script, body) = (folder.join("wrk.lua"), folder.join("body"));
    std::fs::write(&script, SCRIPT)?;
    std::fs::write(&body, ask.body())?;
    let mut command = Command::new("wrk");
    command.args(["--threads", "1", "--timeout", "10s"]).arg("--connections").arg(connections.to_string());
    command.arg("--duration").arg(format!("{SECONDS}s")).arg("--script").arg(&script);
    command.arg(format!("{}{}", process.url, ask.path())).arg("--").arg(&body);
    command.args(ask.headers().into_iter().flat_map(|(name, value)| [name, value])).kill_on_drop(true);
    let before = process.threads()?;
    let output = command.output().await;
    let output = output.map_err(|error| format!("wrk cannot be run: {error}; `make bench` says how to install it"))?;
    let micros = process.micros_since(&before)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let printed: Printed = text
        .lines()
        .next_back()
        .and_then(|line| serde_json::from_str(line).ok())
        .ok_or_else(|| format!("wrk failed: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
    if printed.errors > 0 || printed.requests == 0 {
        return Err(format!("wrk: of {} requests {} failed", printed.requests, printed.errors).into());
    }
    let requests = printed.requests as f64;
    Ok(Sample::from([
        (Figure::Rate, requests * 1e6 / printed.micros as f64),
        (Figure::P50, printed.p50 as f64),
        (Figure::P99, printed.p99 as f64),
        match events {
            1 => (Figure::RequestCpu, micros / requests),
            events => (Figure::EventCpu, micros / (requests * events as f64)),
        },
        (Figure::Memory, process.memory()? / 1024.0),
    ]))
}
