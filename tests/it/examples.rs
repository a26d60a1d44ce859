//! The programs of `examples/` do what they are meant to show, and README.md shows what is there.

use std::path::Path;
use std::sync::Arc;

use hookgate::config::Config;
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::{Event, FailureMode, HookSet};
use hookgate::id::SessionKey;
use hookgate::testing::{Agent, Client, Message, Model, Policy, Ruling, document};
use hookgate::{BoxError, Hookgate};
use tokio::net::TcpListener;

#[path = "../../examples/callback_rate.rs"]
#[expect(dead_code, reason = "its main is for cargo run")]
mod callback_rate;
#[path = "../../examples/callback_worker.rs"]
#[expect(dead_code, reason = "its main is for cargo run")]
mod callback_worker;
#[path = "../../examples/client_layer.rs"]
#[expect(dead_code, reason = "its main is for cargo run")]
mod client_layer;
#[path = "../../examples/server_layer.rs"]
#[expect(dead_code, reason = "its main is for cargo run")]
mod server_layer;

const README: &str = include_str!("../../README.md");
const REASON: &str = "the policy keeps no notes of tea";

/// A model that asks for two notes, one an answer, and comments on what came of the second.
async fn model() -> Result<Model, BoxError> {
    let script = [
        Message::new("msg_1").tool("toolu_1", "note", r#"{"text":"coffee"}"#),
        Message::new("msg_2").tool("toolu_2", "note", r#"{"text":"tea"}"#),
        Message::new("msg_3").text("I may not note that."),
    ];
    Ok(Model::scripted(script).await?)
}

async fn policy() -> Result<Policy, BoxError> {
    let decide = |asked: &hookgate::testing::Envelope| match asked.text("/detail/input/text") {
        "tea" => Ruling::deny(REASON),
        _ => Ruling::pass(),
    };
    Ok(Policy::start(decide).await?)
}

fn gate(hooks: HookSet) -> Hookgate {
    Hookgate::builder().hooks(hooks).transport(Arc::new(HyperTransport::new())).build()
}

/// The last request that the model got ends with a failed result that holds the reason.
fn assert_told(model: &Model) {
    let requests = model.requests();
    let last = requests.last().unwrap().json();
    let result = &last["messages"].as_array().unwrap().last().unwrap()["content"][0];
    assert_eq!((&result["tool_use_id"], &result["is_error"]), (&"toolu_2".into(), &true.into()), "{last}");
    assert!(result["content"].to_string().contains(REASON), "{last}");
}

#[tokio::test]
async fn the_server_layer_denies_a_call() -> Result<(), BoxError> {
    let (model, policy) = (model().await?, policy().await?);
    let gate = gate(server_layer::hooks("hooks.json", &document([policy.hook("PreToolUse")]))?);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let server = tokio::spawn(
        axum::serve(listener, server_layer::app(gate, server_layer::callbacks(&url)?, model.url().parse()?)?)
            .into_future(),
    );

    let notes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = notes.clone();
    let mut agent = Agent::new(&format!("{url}/anthropic")).session("s1").tool("note", move |input| {
        kept.lock().unwrap().push(input["text"].clone());
        Ok("noted".to_owned())
    });
    let replies = agent.prompt("Note what I like.").await?;

    assert_eq!(*notes.lock().unwrap(), ["coffee"]);
    assert_eq!(replies.last().unwrap().text(), "I may not note that.");
    assert_told(&model);
    let mut records = Client::new(&url).get("/hookgate/v1/sessions/s1/hooks").await?;
    while records.chunk().await?.is_some() {}
    let records: serde_json::Value = serde_json::from_slice(records.so_far())?;
    let outcomes: Vec<_> = records["items"].as_array().unwrap().iter().map(|record| &record["outcome"]).collect();
    assert_eq!(outcomes, ["pass", "deny"]);
    server.abort();
    Ok(())
}

#[tokio::test]
async fn the_client_layer_denies_a_call() -> Result<(), BoxError> {
    let (model, policy) = (model().await?, policy().await?);
    let gate = gate(client_layer::hooks("hooks.json", &document([policy.hook("PreToolUse")]))?);
    let mut agent = client_layer::Agent::new(gate, &model.url(), "key")?;

    assert_eq!(agent.prompt("Note what I like.").await?, "I may not note that.");

    assert_eq!(agent.notes, ["coffee"]);
    assert_told(&model);
    assert_eq!(model.requests()[0].header("x-api-key"), "key");
    assert_eq!(policy.asked().len(), 2);
    Ok(())
}

#[test]
fn callbacks_are_counted_and_none_is_lost() {
    let rates = callback_rate::run(300, 100).unwrap();
    assert!(rates.issued > 0.0 && rates.delivered > 0.0, "{rates:?}");
}

/// Along the service that the example of the layer makes.
#[tokio::test]
async fn the_worker_calls_back_once() -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let callbacks = server_layer::callbacks(&url)?;
    let app = server_layer::app(gate(HookSet::empty()), callbacks.clone(), "http://127.0.0.1:9".parse()?)?;
    let server = tokio::spawn(axum::serve(listener, app).into_future());
    let session = SessionKey { tenant: "default".into(), session: "s1".into() };
    let hook = callbacks.issue(&session, Some("the build"), None).await?;

    let result = serde_json::json!({"status": "done"});
    assert_eq!(callback_worker::report(&hook.url, &result).await?, "received");
    assert!(callback_worker::report(&hook.url, &result).await.unwrap_err().to_string().contains("410"));
    let messages = callbacks.take_for_injection(&session).await;
    assert_eq!(messages.len(), 1);
    assert!(messages[0].text.ends_with("Payload:\n{\n  \"status\": \"done\"\n}"), "{}", messages[0].text);
    server.abort();
    Ok(())
}

#[test]
fn the_tour_is_what_readme_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tour");
    for file in ["policy.py", "hooks.json"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        assert!(README.contains(&text), "README.md shows another {file} than examples/tour");
    }
    let config = Config::load(Some(&folder.join("hookgate.toml")), []).unwrap();
    assert_eq!(config.hooks.iter().map(|handler| &*handler.id).collect::<Vec<_>>(), ["prompts", "commands"]);
}

/// That hookgate answers so is tested with the callbacks.
#[test]
fn the_table_of_callbacks_is_complete() {
    for (status, error) in [
        (404, "unknown token"),
        (410, "token expired"),
        (410, "token already used"),
        (405, "method not allowed"),
        (413, "payload too large"),
        (415, "unsupported content encoding"),
        (400, "request aborted"),
        (408, "request timed out"),
        (502, "delivery failed"),
    ] {
        let end = format!(r#"`{{"received":false,"error":"{error}"}}` |"#);
        let row = README.lines().find(|line| line.ends_with(&end));
        assert!(row.is_some_and(|row| row.starts_with(&format!("| {status}"))), "{error}");
    }
}

#[test]
fn the_event_table_is_the_real_one() {
    for event in Event::ALL {
        let outcomes: Vec<&str> = event.outcomes().map(|outcome| outcome.name()).collect();
        let mode = match (event.default_failure_mode(), event.failure_mode_is_fixed()) {
            (FailureMode::Open, true) => "open, fixed",
            (FailureMode::Open, false) => "open",
            (FailureMode::Closed, _) => "closed",
        };
        let context = if event.accepts_context() { "yes" } else { "no" };
        let end = format!("| {} | {mode} | {context} |", outcomes.join(", "));
        let start = format!("| `{}` |", event.name());
        let row = README.lines().find(|line| line.starts_with(&start));
        assert!(row.is_some_and(|row| row.ends_with(&end)), "README.md needs a row {start} … {end}, not {row:?}");
    }
}

#[test]
fn the_demo_shows_what_it_says() {
    let mut transcript = Vec::new();
    hookgate::testing::demo::run(&mut transcript).unwrap();
    let transcript = String::from_utf8(transcript).unwrap();
    for shown in [
        r#"write_file {"path":"workspace/notes.txt","text":"hello"}"#,
        "toolu_3 (failed): files are never removed here",
        "Passwords are not given to the model.",
        "Stop              attempt 2",
    ] {
        assert!(transcript.contains(shown), "{shown}\n{transcript}");
    }
}
