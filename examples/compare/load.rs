//! Asking as fast as answers come, over connections that are kept.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinSet;

use crate::upstream::ANSWER;

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) requests_per_second: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
    /// The process's own time for each request.
    pub(crate) cpu_micros: f64,
    pub(crate) rss_megabytes: f64,
}

/// Sends the request over so many connections for so long; `pid` is the process that is looked at.
pub(crate) async fn run(
    pid: u32,
    url: &str,
    answer: &'static str,
    body: Bytes,
    connections: usize,
    time: Duration,
) -> Result<Run, hookgate::BoxError> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let ask = {
        let uri: http::Uri = format!("{url}/v1/messages").parse()?;
        move || {
            let (client, uri, body) = (client.clone(), uri.clone(), body.clone());
            async move {
                let request = Request::post(uri)
                    .header(ANSWER, answer)
                    .header("content-type", "application/json")
                    .body(Full::new(body))?;
                let response = client.request(request).await?;
                if response.status() != 200 {
                    return Err(format!("answered {}", response.status()).into());
                }
                let mut body = response.into_body();
                while let Some(frame) = body.frame().await {
                    frame?;
                }
                Ok::<_, hookgate::BoxError>(())
            }
        }
    };
    // Connections are made and caches filled before the clock starts.
    futures_util::future::try_join_all((0..connections).map(|_| ask())).await?;
    let before = cpu(pid)?;
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let ask = ask.clone();
        tasks.spawn(async move {
            let mut latencies = Vec::new();
            while start.elapsed() < time {
                let asked = Instant::now();
                ask().await?;
                latencies.push(asked.elapsed());
            }
            Ok::<_, hookgate::BoxError>(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(done) = tasks.join_next().await {
        latencies.extend(done??);
    }
    let spent = cpu(pid)? - before;
    let elapsed = start.elapsed();
    latencies.sort_unstable();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    Ok(Run {
        requests_per_second: latencies.len() as f64 / elapsed.as_secs_f64(),
        p50_micros: at(0.5),
        p99_micros: at(0.99),
        cpu_micros: spent.as_secs_f64() * 1e6 / latencies.len() as f64,
        rss_megabytes: rss(pid)?,
    })
}

/// User and system time of a process. The kernel counts it in hundredths of a second for all programs.
fn cpu(pid: u32) -> Result<Duration, hookgate::BoxError> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in brackets, may hold spaces.
    let fields = stat.rsplit_once(')').ok_or("no stat")?.1;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

fn rss(pid: u32) -> Result<f64, hookgate::BoxError> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<f64>()? / 1024.0)
}
