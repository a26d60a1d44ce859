//! What stands in `tools.json` and `answers.json`: everything that is the same at each call.

use std::collections::HashMap;

use rmcp::model::{
    CallToolResult, ErrorData, JsonObject, Prompt, PromptMessage, Resource, ResourceContents, ResourceTemplate,
    ResultType, Tool,
};
use serde::Deserialize;
use serde_json::{Value, json};

const TOOLS: &str = include_str!("tools.json");
const ANSWERS: &str = include_str!("answers.json");

/// What there is to list and to read.
#[derive(Deserialize)]
pub(crate) struct Answers {
    #[serde(skip)]
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    /// What the tools answer whose answer is always the same.
    pub(crate) results: HashMap<String, CallToolResult>,
    /// The prompts' messages, with `{name}` where an argument stands.
    messages: HashMap<String, Value>,
    contents: Vec<ResourceContents>,
}

impl Answers {
    pub(crate) fn read() -> serde_json::Result<Answers> {
        let mut answers: Answers = serde_json::from_str(ANSWERS)?;
        answers.tools = serde_json::from_str(TOOLS)?;
        for result in answers.results.values_mut() {
            // Revision 2026-07-28 has this word; rmcp takes it out for the others.
            result.result_type = Some(ResultType::COMPLETE);
        }
        Ok(answers)
    }

    pub(crate) fn messages(&self, prompt: &str, arguments: &JsonObject) -> Result<Vec<PromptMessage>, ErrorData> {
        let mut messages = self
            .messages
            .get(prompt)
            .cloned()
            .ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt {prompt:?}"), None))?;
        fill(&mut messages, arguments);
        serde_json::from_value(messages).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    pub(crate) fn resource(&self, uri: &str) -> Result<ResourceContents, ErrorData> {
        let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        if let Some(id) = id {
            let text = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
            return Ok(ResourceContents::text(text, uri).with_mime_type("application/json"));
        }
        let is_it = |contents: &&ResourceContents| match contents {
            ResourceContents::TextResourceContents { uri: its, .. }
            | ResourceContents::BlobResourceContents { uri: its, .. } => its == uri,
            _ => false,
        };
        let not_found = || ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})));
        self.contents.iter().find(is_it).cloned().ok_or_else(not_found)
    }
}

/// Puts the arguments into all texts of a value.
fn fill(value: &mut Value, arguments: &JsonObject) {
    match value {
        Value::String(text) => {
            for (name, argument) in arguments {
                if let Some(argument) = argument.as_str() {
                    *text = text.replace(&format!("{{{name}}}"), argument);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, arguments)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, arguments)),
        _ => {}
    }
}
