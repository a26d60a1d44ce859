//! The two tools.

use std::sync::Arc;

use http::request;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;

use super::cancel::Waits;
use super::{session, wait};
use crate::callback::tool::{AWAIT, REQUEST, REQUEST_DESCRIPTION, REQUEST_SCHEMA};
use crate::control::ControlState;

const INSTRUCTIONS: &str = "One-time callbacks: a URL to which a worker sends its result when it is done, and the \
result reaches this session.";
/// What stands behind [`REQUEST_DESCRIPTION`].
const OR_AWAIT: &str = "To have the result within this turn instead, call await_tmp_hook.";
const AWAIT_DESCRIPTION: &str = "Wait for a one-time callback of this session, and get the message that it brings. Use it \
after request_tmp_hook when you cannot go on without the result and it will be there in minutes; else end your turn. Each \
message is given once. When nothing came in time you are told so and can call it again: the callback stays open.";
const AWAIT_SCHEMA: &str = r#"{"type":"object","properties":{"url":{"type":"string","description":"The url of the callback to wait for, as request_tmp_hook returned it. Left out, whichever callback of this session comes first."},"timeout_seconds":{"type":"integer","minimum":1,"description":"How long to wait, in seconds. Never longer than the callback is open."}},"additionalProperties":false}"#;

/// What answers the calls.
#[derive(Clone)]
pub(super) struct Tools {
    state: ControlState,
    waits: Arc<Waits>,
    list: Arc<[Tool]>,
}

impl Tools {
    pub(super) fn new(state: ControlState, waits: Arc<Waits>) -> Self {
        // A worker's result comes from elsewhere; nothing here is destroyed.
        let hints = |read_only| ToolAnnotations::new().read_only(read_only).destructive(false).open_world(true);
        let request = Tool::new(REQUEST, format!("{REQUEST_DESCRIPTION} {OR_AWAIT}"), schema(REQUEST_SCHEMA));
        let wait = Tool::new(AWAIT, AWAIT_DESCRIPTION, schema(AWAIT_SCHEMA));
        let list = [request.with_annotations(hints(false)), wait.with_annotations(hints(false))];
        Tools { state, waits, list: list.into() }
    }

    async fn call(&self, call: CallToolRequestParams, context: &RequestContext<RoleServer>) -> Result<Said, String> {
        let head = context.extensions.get::<request::Parts>().ok_or("the call came without its request's head")?;
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        let session = session::of(&self.state, head, &context.meta.0, &call.name, &arguments).await?;
        if call.name == AWAIT {
            let awaited = wait::Awaited::read(&arguments)?;
            return wait::run(&self.state.tmp_hooks, &self.waits, &session, awaited, head, context)
                .await
                .map(Said::Text);
        }
        let hook = self.state.tmp_hooks.request(&session, arguments.to_string().as_bytes()).await?;
        let hook = serde_json::to_value(hook).map_err(|error| format!("the callback could not be told: {error}"))?;
        Ok(Said::Structure(hook))
    }
}

/// What a call came to.
enum Said {
    Text(String),
    Structure(Value),
}

fn schema(text: &str) -> JsonObject {
    // They are written above; a test reads them.
    serde_json::from_str(text).unwrap_or_default()
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("hookgate", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.list.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.list.to_vec()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.get_tool(&call.name).is_none() {
            let message = format!("there is no such tool here; there are {REQUEST} and {AWAIT}");
            return Err(ErrorData::invalid_params(message, None));
        }
        let result = match self.call(call, &context).await {
            Ok(Said::Text(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Ok(Said::Structure(value)) => CallToolResult::structured(value),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        };
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_are_objects_with_their_arguments() {
        for (text, known) in [(REQUEST_SCHEMA, ["purpose", "ttl_seconds"]), (AWAIT_SCHEMA, ["url", "timeout_seconds"])]
        {
            let schema = Value::Object(schema(text));
            let names: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names, known);
            assert_eq!(
                (schema["type"].as_str(), schema["additionalProperties"].as_bool()),
                (Some("object"), Some(false))
            );
        }
    }
}
