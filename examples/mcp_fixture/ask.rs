//! What a server asks its client: the user, the model, the roots.

use rmcp::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, ElicitRequest, ErrorData, InputRequest,
    ListRootsRequest, SamplingMessage, ServerRequest,
};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};

/// Asks the user for fields, all of which are wanted if `required`.
pub(crate) fn user(message: &str, properties: Value, required: bool) -> Result<InputRequest, ErrorData> {
    let mut schema = json!({"type": "object"});
    if let (true, Some(properties)) = (required, properties.as_object()) {
        schema["required"] = properties.keys().cloned().collect();
    }
    schema["properties"] = properties;
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    let params = serde_json::from_value(params).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(InputRequest::Elicitation(ElicitRequest::new(params)))
}

/// Asks the user for one text.
pub(crate) fn user_for(message: &str, field: &str) -> Result<InputRequest, ErrorData> {
    user(message, json!({field: {"type": "string"}}), true)
}

/// Asks the client's model.
pub(crate) fn model(prompt: &str, max_tokens: u32) -> InputRequest {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], max_tokens);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

/// Asks for the client's roots.
pub(crate) fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// Whether a client says that it can answer this.
pub(crate) fn is_answerable(request: &InputRequest, client: &ClientCapabilities) -> bool {
    match request {
        InputRequest::CreateMessage(_) => client.sampling.is_some(),
        InputRequest::Elicitation(_) => client.elicitation.is_some(),
        InputRequest::ListRoots(_) => client.roots.is_some(),
        _ => false,
    }
}

/// Sends it as a request of the server's own, as revisions with a handshake do. Gives the client's result.
pub(crate) async fn send(peer: &Peer<RoleServer>, request: InputRequest) -> Result<Value, ErrorData> {
    let request = match request {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(ErrorData::internal_error("this cannot be asked", None)),
    };
    let answer =
        peer.send_request(request).await.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    serde_json::to_value(answer).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// The text in a model's answer.
pub(crate) fn text_of(answer: &Value) -> &str {
    let content = &answer["content"];
    content["text"].as_str().or_else(|| content[0]["text"].as_str()).unwrap_or("nothing")
}
