//! The processes that are measured: how they are started, and what the kernel says of them.

use std::collections::HashMap;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hookgate::BoxError;
use hookgate::testing::{Hook, document};

/// The time of each thread, by its folder in `/proc`.
pub(crate) type Threads = HashMap<PathBuf, Duration>;

/// A process under measurement. It ends when this is dropped.
pub(crate) struct Process {
    pub(crate) name: &'static str,
    pub(crate) url: String,
    child: Child,
}

/// The scripted upstream, the floor and hookgate, in this order: fresh ones, so that no row inherits another's memory.
pub(crate) async fn start(folder: &Path) -> Result<[Process; 3], BoxError> {
    let own = std::env::current_exe()?;
    let examples = own.parent().ok_or("no folder")?;
    let binaries = examples.parent().ok_or("no folder")?;
    let (model, floor, gate) = (free_address()?, free_address()?, free_address()?);
    let upstream = Process::start("upstream alone", &model, Command::new(&own).args(["--upstream", &model])).await?;
    let mut command = Command::new(examples.join("floor_proxy"));
    let floor = Process::start("floor", &floor, command.args([&floor, &model])).await?;
    configure(folder, &gate, &model)?;
    let mut command = Command::new(binaries.join("hookgate"));
    command.args(["run", "--log", "error", "--config"]).arg(folder.join("hookgate.toml")).stdout(Stdio::null());
    Ok([upstream, floor, Process::start("hookgate", &gate, &mut command).await?])
}

/// One handler that is asked about calls of the tool `deploy` and no others.
fn configure(folder: &Path, listen: &str, upstream: &str) -> Result<(), BoxError> {
    let hook = Hook::new("PreToolUse", &format!("http://{upstream}/policy")).matcher(["deploy"]);
    std::fs::write(folder.join("hooks.json"), document([hook]))?;
    let config = format!(
        r#"[server]
listen = ["{listen}"]

[hooks]
documents = ["hooks.json"]
allow_insecure_loopback = true
allowed_hosts = ["127.0.0.1"]

[[routes]]
name = "model"
kind = "model"
path_prefix = "/"
upstream = "http://{upstream}"

[[routes]]
name = "tools"
kind = "mcp"
path_prefix = "/mcp"
upstream = "http://{upstream}/mcp"
"#
    );
    Ok(std::fs::write(folder.join("hookgate.toml"), config)?)
}

/// How many files this process and those that it starts may open.
pub(crate) fn open_files() -> Result<usize, BoxError> {
    let limits = std::fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).ok_or("no limit of open files")?;
    Ok(line.split_whitespace().next().and_then(|soft| soft.parse().ok()).unwrap_or(usize::MAX))
}

fn free_address() -> Result<String, BoxError> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

impl Process {
    async fn start(name: &'static str, address: &str, command: &mut Command) -> Result<Process, BoxError> {
        let child = command.spawn().map_err(|error| format!("{name}: {:?}: {error}", command.get_program()))?;
        let mut process = Process { name, url: format!("http://{address}"), child };
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            if start.elapsed() > Duration::from_secs(20) || process.child.try_wait()?.is_some() {
                return Err(format!("{name} does not listen at {address}").into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(process)
    }

    /// The time that each of its threads had on a core so far. The kernel knows it to the nanosecond; what it counts for the
    /// whole process is in hundredths of a second.
    pub(crate) fn threads(&self) -> Result<Threads, BoxError> {
        let mut threads = Threads::new();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let task = task?.path();
            // A thread may end meanwhile.
            let Ok(line) = std::fs::read_to_string(task.join("schedstat")) else { continue };
            let nanos = line.split_whitespace().next().ok_or("no time in schedstat")?.parse()?;
            threads.insert(task, Duration::from_nanos(nanos));
        }
        if threads.is_empty() {
            Err("this kernel tells no thread's time: no /proc/PID/task/*/schedstat".into())
        } else {
            Ok(threads)
        }
    }

    /// The time that it had since then, in microseconds.
    pub(crate) fn micros_since(&self, before: &Threads) -> Result<f64, BoxError> {
        let spent = |(task, now)| now - before.get(&task).copied().unwrap_or_default();
        Ok(self.threads()?.into_iter().map(spent).sum::<Duration>().as_secs_f64() * 1e6)
    }

    /// What it has in memory, in KiB.
    pub(crate) fn memory(&self) -> Result<f64, BoxError> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
