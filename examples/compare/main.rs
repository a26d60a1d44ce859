//! Compares hookgate with a bare pingora proxy on this machine, and writes BENCHMARKS.md. `make bench` runs it.
//!
//! The scripted model, the floor and hookgate are processes of their own; the runs are interleaved, so that what else the
//! machine does falls on all of them; medians are compared. CPU is the proxy's own.

mod load;
mod upstream;

use std::fmt::Write;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hookgate::BoxError;
use hookgate::testing::{Hook, document};
use load::Run;
use tokio::signal::unix::{SignalKind, signal};

const ROUNDS: usize = 5;
const TIME: Duration = Duration::from_secs(2);

/// What is asked, and how many connections ask it.
struct Case {
    name: &'static str,
    answer: &'static str,
    history: usize,
    connections: usize,
    /// Whether a handler is asked about the answer.
    asked: bool,
}

const CASES: [Case; 5] = [
    Case { name: "JSON answer", answer: "json", history: 1 << 10, connections: 16, asked: false },
    Case { name: "JSON answer to 1 MB of history", answer: "json", history: 1 << 20, connections: 4, asked: false },
    Case { name: "200 events at once", answer: "burst", history: 1 << 10, connections: 16, asked: false },
    Case { name: "200 events one by one", answer: "events", history: 1 << 10, connections: 64, asked: false },
    Case { name: "JSON answer with a call", answer: "call", history: 1 << 10, connections: 16, asked: true },
];

/// A process under measurement. It ends when this is dropped.
struct Process {
    name: &'static str,
    url: String,
    child: Child,
}

impl Process {
    async fn start(name: &'static str, address: &str, command: &mut Command) -> Result<Process, BoxError> {
        let mut process = Process { name, url: format!("http://{address}"), child: command.spawn()? };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if start.elapsed() > Duration::from_secs(20) || process.child.try_wait()?.is_some() {
                return Err(format!("{name} does not listen at {address}").into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(process)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn main() -> Result<(), BoxError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut arguments = std::env::args().skip(1);
    if let (Some("upstream"), Some(address)) = (arguments.next().as_deref(), arguments.next()) {
        return Ok(runtime.block_on(upstream::serve(&address))?);
    }
    let folder = std::env::temp_dir().join(format!("hookgate-compare-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let outcome = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        // However this ends, the processes are dropped, and end with it.
        tokio::select! {
            outcome = async { measure(&processes(&folder).await?).await } => outcome,
            _ = terminated.recv() => Err("terminated".into()),
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        }
    });
    std::fs::remove_dir_all(&folder)?;
    let table = outcome?;
    println!("{table}");
    std::fs::write("BENCHMARKS.md", table)?;
    Ok(())
}

async fn processes(folder: &Path) -> Result<[Process; 4], BoxError> {
    let own = std::env::current_exe()?;
    let examples = own.parent().ok_or("no folder")?;
    let binaries = examples.parent().ok_or("no folder")?;
    let model = free_address()?;
    let upstream = Process::start("model alone", &model, Command::new(&own).args(["upstream", &model])).await?;
    let address = free_address()?;
    let floor =
        Process::start("pingora", &address, Command::new(examples.join("floor_proxy")).args([&address, &model]))
            .await?;
    let hook = Hook::new("PreToolUse", &format!("http://{model}/policy")).matcher(["deploy"]);
    std::fs::write(folder.join("hooks.json"), document([hook]))?;
    let documents =
        "[hooks]\ndocuments = [\"hooks.json\"]\nallow_insecure_loopback = true\nallowed_hosts = [\"127.0.0.1\"]";
    Ok([
        upstream,
        floor,
        hookgate("no hooks", &binaries.join("hookgate"), folder, &model, "").await?,
        hookgate("one handler", &binaries.join("hookgate"), folder, &model, documents).await?,
    ])
}

async fn hookgate(
    name: &'static str,
    binary: &Path,
    folder: &Path,
    model: &str,
    hooks: &str,
) -> Result<Process, BoxError> {
    let address = free_address()?;
    let file: PathBuf = folder.join(format!("{}.toml", name.replace(' ', "-")));
    let route =
        format!("[[routes]]\nname = \"model\"\nkind = \"model\"\npath_prefix = \"/\"\nupstream = \"http://{model}\"");
    std::fs::write(&file, format!("[server]\nlisten = [\"{address}\"]\n\n{hooks}\n\n{route}\n"))?;
    let mut command = Command::new(binary);
    command.args(["run", "--log", "error", "--config"]).arg(&file).stdout(std::process::Stdio::null());
    Process::start(name, &address, &mut command).await
}

fn free_address() -> Result<String, BoxError> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// A request with a history of about that many bytes.
fn request(size: usize) -> Bytes {
    let result = "A line of a tool's result with \\\"quotes\\\" and \\n in it. ".repeat(20);
    let mut messages = String::from(r#"{"role":"user","content":"Begin."}"#);
    while messages.len() < size {
        messages.push_str(&format!(
            r#",{{"role":"assistant","content":[{{"type":"tool_use","id":"toolu_{0}","name":"read","input":{{"path":"a"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{0}","content":"{result}"}}]}}"#,
            messages.len()
        ));
    }
    format!(r#"{{"model":"m","max_tokens":1024,"messages":[{messages},{{"role":"user","content":"Go on."}}]}}"#).into()
}

async fn measure(processes: &[Process; 4]) -> Result<String, BoxError> {
    let mut text = String::from(
        "# Benchmarks\n\nWritten by `make bench`: hookgate and a bare pingora proxy on loopback, in one interleaved run. Medians; CPU is the\nprocess's own time for one request; ratios are to pingora.\n",
    );
    for case in &CASES {
        let body = request(case.history);
        let mut runs: [Vec<Run>; 4] = Default::default();
        for round in 1..=ROUNDS {
            for (process, runs) in processes.iter().zip(&mut runs) {
                eprintln!("{}, round {round} of {ROUNDS}: {}", case.name, process.name);
                let pid = process.child.id();
                let run = load::run(pid, &process.url, case.answer, body.clone(), case.connections, TIME);
                runs.push(run.await.map_err(|error| format!("{}: {error}", process.name))?);
            }
        }
        let asked = if case.asked { "; the handler is asked" } else { "" };
        let _ = write!(text, "\n## {} ({} connections{asked})\n\n", case.name, case.connections);
        text.push_str("| | requests/s | p50 µs | p99 µs | CPU µs | CPU ratio | p50 ratio | RSS MB |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
        let medians: Vec<Run> = runs.iter().map(|runs| median(runs)).collect();
        let floor = &medians[1];
        for (process, run) in processes.iter().zip(&medians) {
            let _ = writeln!(
                text,
                "| {} | {:.0} | {:.0} | {:.0} | {:.1} | {:.2} | {:.2} | {:.1} |",
                process.name,
                run.requests_per_second,
                run.p50_micros,
                run.p99_micros,
                run.cpu_micros,
                run.cpu_micros / floor.cpu_micros,
                run.p50_micros / floor.p50_micros,
                run.rss_megabytes,
            );
        }
    }
    Ok(text)
}

fn median(runs: &[Run]) -> Run {
    let of = |field: fn(&Run) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(field).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    Run {
        requests_per_second: of(|run| run.requests_per_second),
        p50_micros: of(|run| run.p50_micros),
        p99_micros: of(|run| run.p99_micros),
        cpu_micros: of(|run| run.cpu_micros),
        rss_megabytes: of(|run| run.rss_megabytes),
    }
}
