//! The tour that `hookgate demo` gives: one process, real sockets, nothing to install.
//!
//! A scripted model asks an agent to use tools; between them stands the proxy, and a policy service decides. What each
//! side saw is printed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Agent, Envelope, Message, Model, Policy, Reply, Ruling, document};
use crate::BoxError;
use crate::config::Config;
use crate::host::pingora::Proxy;

/// Runs the tour and writes its transcript. It takes about a second and must not be called from within a tokio runtime.
///
/// # Errors
/// When a port of loopback cannot be had, the transcript cannot be written, or something else happened than the tour is
/// meant to show.
pub fn run(out: &mut impl Write) -> Result<(), BoxError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (model, policy) = runtime
        .block_on(async { Ok::<_, io::Error>((Model::scripted(script()).await?, Policy::start(decide).await?)) })?;
    // The proxy has a runtime of its own, which must not be dropped inside of this one.
    let proxy = start_proxy(&model, &policy)?;
    let address = proxy.addresses().first().ok_or("the proxy has no address")?;
    runtime.block_on(tour(out, &format!("http://{address}"), &model, &policy))
}

/// What the model says, request by request.
fn script() -> Vec<Message> {
    vec![
        Message::new("msg_1")
            .text("I will read the notes, copy them and clean up.")
            .tool("toolu_1", "read_file", r#"{"path": "notes.txt"}"#)
            .tool("toolu_2", "write_file", r#"{"path": "/etc/notes.txt", "text": "hello"}"#)
            .tool("toolu_3", "remove_file", r#"{"path": "notes.txt"}"#),
        Message::new("msg_2").text("The notes are copied; I was not allowed to remove the original."),
        Message::new("msg_3").text("It was kept because files are never removed here."),
    ]
}

/// What the policy says.
fn decide(asked: &Envelope) -> Ruling {
    match (asked.event(), asked.tool()) {
        ("PreToolUse", "write_file") if asked.text("/detail/input/path").starts_with('/') => {
            Ruling::modify(json!({"path": "workspace/notes.txt", "text": asked.detail()["input"]["text"]}))
        }
        ("PreToolUse", "remove_file") => Ruling::deny("files are never removed here"),
        ("UserPromptSubmit", _) if asked.text("/detail/prompt").contains("password") => {
            Ruling::deny("Passwords are not given to the model.")
        }
        ("Stop", _) if asked.detail()["attempt"] == 1 => Ruling::go_on("Say why the original was kept."),
        _ => Ruling::pass(),
    }
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("hookgate-demo-{}", crate::id::random_id()));
        std::fs::create_dir(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start_proxy(model: &Model, policy: &Policy) -> Result<Proxy, BoxError> {
    let folder = Folder::new()?;
    let file = folder.0.join("hookgate.toml");
    let hooks = ["UserPromptSubmit", "PreToolUse", "Stop"].map(|event| policy.hook(event));
    std::fs::write(folder.0.join("hooks.json"), document(hooks))?;
    std::fs::write(&file, configuration(&model.url()))?;
    Ok(Proxy::start(Config::load(Some(&file), [])?)?)
}

fn configuration(upstream: &str) -> String {
    format!(
        r#"[server]
listen = ["127.0.0.1:0"]
shutdown_grace = "1s"

[hooks]
documents = ["hooks.json"]
allow_insecure_loopback = true
allowed_hosts = ["127.0.0.1"]

[[routes]]
name = "demo"
kind = "model"
path_prefix = "/"
upstream = "{upstream}"
"#
    )
}

async fn tour(out: &mut impl Write, url: &str, model: &Model, policy: &Policy) -> Result<(), BoxError> {
    writeln!(out, "agent ──▶ hookgate ({url}) ──▶ model ({})", model.url())?;
    writeln!(out, "              └──▶ policy ({})\n", policy.url())?;

    let ran = Arc::new(Mutex::new(Vec::new()));
    let mut agent = Agent::new(url).session("demo");
    for name in ["read_file", "write_file", "remove_file"] {
        let ran = ran.clone();
        agent = agent.tool(name, move |input| {
            ran.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{name} {input}"));
            Ok("done".to_owned())
        });
    }
    let prompt = "Copy my notes and remove the original.";
    writeln!(out, "The user says: {prompt}")?;
    let replies = agent.prompt(prompt).await?;
    let ran = ran.lock().unwrap_or_else(PoisonError::into_inner).clone();
    tools(out, &ran)?;
    told(out, model)?;
    stopped(out, &replies)?;
    refused(out, &mut agent, model).await?;
    decisions(out, policy)
}

/// One call allowed, one rewritten, one denied.
fn tools(out: &mut impl Write, ran: &[String]) -> Result<(), BoxError> {
    writeln!(out, "\nThe model asks for three tools in one answer:")?;
    for message in script().iter().take(1) {
        for block in message.block_texts().iter().skip(1) {
            let block: Value = serde_json::from_str(block)?;
            writeln!(out, "  {} {}", text(&block["name"]), block["input"])?;
        }
    }
    writeln!(out, "The agent runs two, the second with another path, and never hears of the third:")?;
    ran.iter().try_for_each(|call| writeln!(out, "  {call}"))?;
    let expected = [r#"read_file {"path":"notes.txt"}"#, r#"write_file {"path":"workspace/notes.txt","text":"hello"}"#];
    ensure(ran == expected, "the agent ran other tools than the policy let through")
}

/// The denied call is put back, with its reason as the result.
fn told(out: &mut impl Write, model: &Model) -> Result<(), BoxError> {
    let requests = model.requests();
    let second = requests.get(1).ok_or("the model got no results")?.json();
    let results = second["messages"][2]["content"].as_array().cloned().unwrap_or_default();
    writeln!(out, "\nThe model gets a result for each call that it made:")?;
    for result in &results {
        let failed = if result["is_error"] == true { " (failed)" } else { "" };
        writeln!(out, "  {}{failed}: {}", text(&result["tool_use_id"]), text(&result["content"]))?;
    }
    let denied = results.iter().find(|result| result["tool_use_id"] == "toolu_3").unwrap_or(&Value::Null);
    ensure(text(&denied["content"]).contains("files are never removed here"), "the model was not told of the denial")
}

/// The turn was not accepted as complete at first.
fn stopped(out: &mut impl Write, replies: &[Reply]) -> Result<(), BoxError> {
    let answer = replies.last().ok_or("there is no answer")?.text();
    writeln!(out, "\nThe policy asks once more before the turn may end. In one answer, the agent reads:")?;
    answer.lines().try_for_each(|line| writeln!(out, "  {line}"))?;
    ensure(answer.ends_with("It was kept because files are never removed here."), "the turn was not continued")
}

/// A prompt that never reaches the model.
async fn refused(out: &mut impl Write, agent: &mut Agent, model: &Model) -> Result<(), BoxError> {
    let before = model.requests().len();
    let prompt = "My password is hunter2, remember it.";
    writeln!(out, "\nThe user says: {prompt}")?;
    let answer = agent.prompt(prompt).await?.last().map(Reply::text).unwrap_or_default();
    writeln!(out, "  {answer}")?;
    ensure(answer.contains("Passwords are not given to the model."), "the prompt was not refused")?;
    ensure(model.requests().len() == before, "the model got a prompt that was refused")?;
    writeln!(out, "  (the model got no request)")?;
    Ok(())
}

fn decisions(out: &mut impl Write, policy: &Policy) -> Result<(), BoxError> {
    writeln!(out, "\nThe policy was asked {} times:", policy.asked().len())?;
    for asked in policy.asked() {
        let about = match asked.event() {
            "PreToolUse" => format!("{} {}", asked.tool(), asked.detail()["input"]),
            "UserPromptSubmit" => asked.text("/detail/prompt").to_owned(),
            _ => format!("attempt {}", asked.detail()["attempt"]),
        };
        writeln!(out, "  {:<17} {about}", asked.event())?;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn ensure(held: bool, what: &str) -> Result<(), BoxError> {
    if held { Ok(()) } else { Err(what.into()) }
}
