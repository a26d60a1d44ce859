//! The server: which request is answered by what.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use serde_json::Value;
use tokio::sync::broadcast;

use crate::answers::Answers;
use crate::calls::Calls;
use crate::cut::Again;
use crate::rounds::{Outcome, Round, Seal, said};
use crate::{jobs, talk};

type Context = RequestContext<RoleServer>;

/// What listeners are told of.
#[derive(Clone, Copy)]
enum Change {
    Tools,
    Prompts,
}

/// One client's view of the server.
#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) calls: Calls,
    pub(crate) again: Again,
    answers: Arc<Answers>,
    tasks: TaskManager,
    seal: Seal,
    changes: broadcast::Sender<Change>,
    /// Which logs the session wants. Revision 2026-07-28 says it with each request instead.
    level: Arc<Mutex<LoggingLevel>>,
}

impl Fixture {
    pub(crate) fn new() -> serde_json::Result<Fixture> {
        Ok(Fixture {
            calls: Calls::default(),
            again: Again::default(),
            answers: Arc::new(Answers::read()?),
            tasks: TaskManager::new(),
            seal: Seal::new(),
            changes: broadcast::channel(16).0,
            level: Arc::new(Mutex::new(LoggingLevel::Debug)),
        })
    }

    /// For another session.
    pub(crate) fn session(&self) -> Fixture {
        Fixture { level: Arc::new(Mutex::new(LoggingLevel::Debug)), ..self.clone() }
    }

    /// Which logs this request wants.
    fn level(&self, context: &Context) -> Option<LoggingLevel> {
        let of_session = || *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        // Revisions with a handshake name no revision in a request.
        context.meta.log_level().or_else(|| context.meta.protocol_version().is_none().then(of_session))
    }

    async fn changed(&self, change: Change, context: &Context) -> CallToolResult {
        // Without listeners there is nobody to tell.
        drop(self.changes.send(change));
        drop(match change {
            Change::Tools => context.peer.notify_tool_list_changed().await,
            Change::Prompts => context.peer.notify_prompt_list_changed().await,
        });
        talk::text("The change was announced.")
    }

    async fn call(&self, call: &CallToolRequestParams, context: &Context) -> Result<CallToolResponse, ErrorData> {
        let name = call.name.as_ref();
        let none = Default::default();
        let arguments = call.arguments.as_ref().unwrap_or(&none);
        let client = context.client_capabilities().unwrap_or_default();
        if let Some(result) = self.answers.results.get(name) {
            return Ok(result.clone().into());
        }
        let round =
            Round { answers: call.input_responses.as_ref(), state: call.request_state.as_deref(), client: &client };
        let answers = match self.seal.turn(name, round)? {
            Some(Outcome::Ask(questions)) => return Ok(questions.into()),
            Some(Outcome::Go(answers)) => Some(answers),
            None => None,
        };
        if let Some(answer) = jobs::call(&self.tasks, &client, name, arguments, answers.as_ref()).await {
            return answer;
        }
        if let Some(answers) = answers {
            return Ok(talk::text(said(name, &answers)).into());
        }
        if let Some(result) = talk::question(name, arguments, context).await {
            return result.map(CallToolResponse::from);
        }
        let argument = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let result = match name {
            "echo" => CallToolResult::structured(Value::Object(arguments.clone())),
            "greet" => talk::text(format!("Hello, {}!", argument("name"))),
            "test_header_argument" => talk::text(argument("region")),
            "test_tool_with_progress" => talk::progress(context).await,
            "test_tool_with_logging" => {
                let messages = ["Tool execution started", "Tool processing data", "Tool execution completed"];
                talk::log(context, self.level(context), &messages).await;
                talk::text("Logging test completed")
            }
            "test_logging_tool" => {
                talk::log(context, self.level(context), &["This was asked for"]).await;
                talk::text("Logging test completed")
            }
            "test_reconnection" => {
                self.again.wait(context).await;
                talk::text("Reconnection test completed")
            }
            "wait" => match talk::wait(context, arguments).await {
                Some(result) => result,
                None => std::future::pending().await,
            },
            "test_missing_capability" => match client.sampling {
                Some(_) => talk::text("The client offers sampling."),
                None => {
                    let needed = ClientCapabilities::builder().enable_sampling().build();
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
            },
            "test_trigger_tool_change" => self.changed(Change::Tools, context).await,
            "test_trigger_prompt_change" => self.changed(Change::Prompts, context).await,
            _ => return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None)),
        };
        Ok(result.into())
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_logging()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("mcp-fixture", "1.0.0"))
            .with_instructions("A server for tests.")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.answers.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: Context) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.answers.tools.clone()))
    }

    async fn call_tool(&self, call: CallToolRequestParams, context: Context) -> Result<CallToolResponse, ErrorData> {
        let running = self.calls.begin(&call.name, call.arguments.clone().unwrap_or_default());
        let answer = tokio::select! {
            answer = self.call(&call, &context) => answer,
            // Nobody reads what is answered now.
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
        };
        running.answered();
        answer
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(self.answers.prompts.clone()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let client = context.client_capabilities().unwrap_or_default();
        let (answers, state) = (request.input_responses.as_ref(), request.request_state.as_deref());
        match self.seal.turn(&request.name, Round { answers, state, client: &client })? {
            Some(Outcome::Ask(questions)) => return Ok(questions.into()),
            Some(Outcome::Go(answers)) => {
                let text = said(&request.name, &answers);
                let message = rmcp::model::PromptMessage::new_text(rmcp::model::Role::User, text);
                return Ok(GetPromptResult::new(vec![message]).into());
            }
            None => {}
        }
        let messages = self.answers.messages(&request.name, &request.arguments.unwrap_or_default())?;
        Ok(GetPromptResult::new(messages).into())
    }

    async fn complete(&self, request: CompleteRequestParams, _: Context) -> Result<CompleteResult, ErrorData> {
        let known = ["paris", "park", "party", "test"];
        let values = known.iter().filter(|value| value.starts_with(&request.argument.value));
        let values = values.map(|value| (*value).to_owned()).collect();
        CompletionInfo::new(values).map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.answers.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(self.answers.templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        Ok(ReadResourceResult::new(vec![self.answers.resource(&request.uri)?]).into())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.answers.resource(&request.uri).map(drop)
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.answers.resource(&request.uri).map(drop)
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => {
                    // What the client did not ask for is not sent.
                    drop(match change {
                        Ok(Change::Tools) => subscription.sink().notify_tool_list_changed().await,
                        Ok(Change::Prompts) => subscription.sink().notify_prompt_list_changed().await,
                        Err(_) => return Ok(()),
                    });
                }
            }
        }
    }

    async fn get_task(&self, request: GetTaskParams, _: Context) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn update_task(&self, request: UpdateTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: Context) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}
