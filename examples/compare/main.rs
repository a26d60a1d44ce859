//! Compares hookgate with a bare pingora proxy on this machine. `make bench` runs it; it needs Linux and wrk.
//!
//! The scripted upstream, the floor and hookgate are processes of their own. Their runs are interleaved, so that what else
//! the machine does falls on all of them, and medians are compared. CPU and memory are what the kernel says of each process.

mod ask;
mod figures;
mod process;
mod report;
mod rows;
mod streams;
mod upstream;
mod wrk;

use std::path::Path;
use std::time::{Duration, Instant};

use ask::Ask;
use clap::Parser;
use figures::Sample;
use hookgate::BoxError;
use process::Process;
use report::Outcome;
use rows::{Load, ROWS, Row};
use streams::Asker;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

/// No run takes longer, unless something hangs.
const LONGEST: Duration = Duration::from_secs(60);
/// Files that a proxy needs besides two connections for each stream.
const OTHER_FILES: usize = 200;

/// Compares hookgate with a bare pingora proxy.
#[derive(Parser)]
struct Options {
    /// Runs of each process that the medians are of; nearly twice as many where they are short.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Only rows whose name has this text; prints the tables and writes nothing.
    #[arg(long, default_value = "")]
    only: String,
    /// Prints the tables and writes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Is the scripted upstream, at that address.
    #[arg(long, hide = true)]
    upstream: Option<String>,
}

fn main() -> Result<(), BoxError> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Some(address) = &options.upstream {
        return Ok(runtime.block_on(upstream::serve(address))?);
    }
    let folder = tempfile::tempdir()?;
    runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        // However this ends, the processes are dropped, and end with it.
        tokio::select! {
            outcome = compare(&options, folder.path()) => outcome,
            _ = terminated.recv() => Err("terminated".into()),
            _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
        }
    })
}

async fn compare(options: &Options, folder: &Path) -> Result<(), BoxError> {
    let start = Instant::now();
    let mut outcomes = Vec::new();
    for row in ROWS.iter().filter(|row| row.name.contains(&options.only)) {
        let outcome = measure(row, options.rounds.into(), folder).await?;
        println!("{}", outcome.table());
        outcomes.push(outcome);
    }
    let summary = report::summary(&outcomes)?;
    println!("{summary}\nThis took {:.0} s.", start.elapsed().as_secs_f64());
    if options.only.is_empty() && !options.dry_run {
        report::put("README.md", &summary)?;
        report::put("BENCHMARKS.md", &outcomes.iter().map(Outcome::table).collect::<String>())?;
    }
    Ok(())
}

async fn measure(row: &'static Row, rounds: usize, folder: &Path) -> Result<Outcome, BoxError> {
    let processes = process::start(folder).await?;
    let mut runs: [Vec<Sample>; 3] = Default::default();
    let (load, note) = within_limits(row.load)?;
    let rounds = load.rounds(rounds);
    for round in 1..=rounds {
        for (process, runs) in processes.iter().zip(&mut runs) {
            let sample = timeout(LONGEST, run(row.ask, load, process, folder)).await.map_err(Into::into).flatten();
            let sample = sample.map_err(|error: BoxError| format!("{}, {}: {error}", row.name, process.name))?;
            let figures: Vec<_> =
                sample.iter().map(|(figure, value)| format!("{} {}", figure.print(*value), figure.label())).collect();
            eprintln!("{}, {round} of {rounds}: {}: {}", row.name, process.name, figures.join(", "));
            runs.push(sample);
        }
    }
    Ok(Outcome { row, names: processes.each_ref().map(|process| process.name), runs, note })
}

async fn run(ask: Ask, load: Load, process: &Process, folder: &Path) -> Result<Sample, BoxError> {
    match load {
        Load::Fast { connections, events } => wrk::run(process, folder, ask, connections, events).await,
        Load::Paced { streams } => Asker::new(process, ask).paced(streams).await,
        Load::Idle { streams } => Asker::new(process, ask).idle(streams).await,
        Load::Slow { streams } => Asker::new(process, ask).slow(streams).await,
    }
}

/// As many streams as the open files allow, and what the reader should know of that.
fn within_limits(load: Load) -> Result<(Load, Option<String>), BoxError> {
    let files = process::open_files()?;
    let most = files.saturating_sub(OTHER_FILES) / 2;
    let note = |wanted| {
        format!(
            "With {files} open files for a process, as many as may be had here (`ulimit -n`), a proxy has {most} streams, not {wanted}."
        )
    };
    Ok(match load {
        Load::Idle { streams } if streams > most => (Load::Idle { streams: most }, Some(note(streams))),
        Load::Slow { streams } if streams > most => (Load::Slow { streams: most }, Some(note(streams))),
        load => (load, None),
    })
}
