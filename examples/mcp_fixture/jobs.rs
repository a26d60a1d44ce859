//! Tools that run as tasks, for clients that know the extension; and what some of them do for others.

use std::time::Duration;

use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateTaskResult, ErrorData, InputResponses,
    JsonObject,
};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value;

use crate::ask;
use crate::rounds::said;
use crate::talk::text;

/// How often a client may ask for the state of a task.
const POLL_MS: u64 = 100;

/// What there is to do.
enum Job {
    Compute(Duration),
    Fail,
    Break,
    Confirm(String),
    Two,
    Say(String),
}

impl Job {
    /// `None`: the tool never is a task. `answers` are those of the rounds before.
    fn of(name: &str, arguments: &JsonObject, answers: Option<&InputResponses>) -> Option<Job> {
        let seconds = || arguments.get("seconds").and_then(Value::as_f64).unwrap_or_default().clamp(0.0, 30.0);
        let file = || arguments.get("filename").and_then(Value::as_str).unwrap_or("it").to_owned();
        Some(match name {
            "slow_compute" => Job::Compute(Duration::from_secs_f64(seconds())),
            "failing_job" => Job::Fail,
            "protocol_error_job" => Job::Break,
            "confirm_delete" => Job::Confirm(file()),
            "multi_input" => Job::Two,
            "test_tool_with_task" => Job::Say(said(name, answers?)),
            _ => return None,
        })
    }

    async fn run(self, task: TaskContext) -> Result<CallToolResult, TaskExit> {
        match self {
            Job::Compute(time) => tokio::select! {
                () = task.cancelled() => Err(TaskExit::Cancelled),
                () = tokio::time::sleep(time) => Ok(computed(time)),
            },
            Job::Fail => {
                tokio::time::sleep(Duration::from_secs(1)).await;
                Ok(CallToolResult::error(vec![ContentBlock::text("The job failed.")]))
            }
            Job::Break => Err(broken().into()),
            Job::Confirm(file) => {
                let question = ask::user_for(&format!("Delete {file}?"), "confirm")?;
                let answer = task.request_input("confirm", question).await?;
                Ok(text(format!("{file}: {}", answer["action"].as_str().unwrap_or("no answer"))))
            }
            Job::Two => {
                let (first, second) =
                    (ask::user_for("What is the first?", "first")?, ask::user_for("And the second?", "second")?);
                let (first, second) =
                    tokio::try_join!(task.request_input("first", first), task.request_input("second", second))?;
                Ok(text(format!("{} and {}", first["action"], second["action"])))
            }
            Job::Say(said) => Ok(text(said)),
        }
    }

    /// What a client gets that knows no tasks.
    async fn at_once(self) -> Result<CallToolResult, ErrorData> {
        match self {
            Job::Compute(time) => {
                tokio::time::sleep(time).await;
                Ok(computed(time))
            }
            Job::Break => Err(broken()),
            Job::Fail | Job::Confirm(_) | Job::Two | Job::Say(_) => {
                let needed = ClientCapabilities::builder().enable_tasks().build();
                Err(ErrorData::missing_required_client_capability(needed))
            }
        }
    }
}

fn computed(time: Duration) -> CallToolResult {
    text(format!("Computed for {} s.", time.as_secs_f64()))
}

fn broken() -> ErrorData {
    ErrorData::internal_error("The job broke.", None)
}

/// Starts a task, or does the work at once for a client that knows no tasks. `None`: the tool never is a task.
pub(crate) async fn call(
    tasks: &TaskManager,
    client: &ClientCapabilities,
    name: &str,
    arguments: &JsonObject,
    answers: Option<&InputResponses>,
) -> Option<Result<CallToolResponse, ErrorData>> {
    let job = Job::of(name, arguments, answers)?;
    if !client.supports_tasks() {
        return Some(job.at_once().await.map(CallToolResponse::from));
    }
    let options = TaskOptions::new().with_poll_interval_ms(POLL_MS);
    let task = tasks.spawn(options, move |context| Box::pin(job.run(context)));
    Some(Ok(CreateTaskResult::new(task).into()))
}
