use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::client::{Incoming, SseEvent};
use crate::BoxError;

/// An answer as an agent has put it together.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The header.
    pub headers: HeaderMap,
    /// The message: of a streamed answer, what its events add up to. `null` when there is none.
    pub message: Value,
    /// The error that was answered, or that ended the stream.
    pub error: Option<Value>,
    /// Whether the answer came to its proper end.
    pub complete: bool,
    /// The events of a streamed answer.
    pub events: Vec<SseEvent>,
    /// The body as far as it came.
    pub raw: Bytes,
}

/// A tool call in a [`Reply`].
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub input: Value,
}

impl Reply {
    /// Reads an answer to its end, streamed or not by its media type; what was read of it before counts too.
    ///
    /// A broken connection is not an error here: the reply is then not complete.
    ///
    /// # Errors
    /// When the events do not add up as official SDKs add them: a block that starts at an index other than the number of
    /// blocks so far, a delta for a block that is not the open one, arguments that are not JSON when their block ends.
    pub async fn read(mut incoming: Incoming) -> Result<Reply, BoxError> {
        let streamed = incoming
            .headers
            .get("content-type")
            .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
        let mut reply = Reply {
            status: incoming.status,
            headers: incoming.headers.clone(),
            message: Value::Null,
            error: None,
            complete: false,
            events: Vec::new(),
            raw: Bytes::new(),
        };
        // Where it breaks off is told by what is there.
        while let Ok(Some(_)) = incoming.chunk().await {}
        if streamed {
            let mut assembly = Assembly::default();
            for event in incoming.all_events()? {
                assembly.add(&event.json()).map_err(|what| format!("{what}: {}", event.data))?;
                reply.events.push(event);
            }
            reply.message = assembly.message;
            reply.error = assembly.error;
            reply.complete = assembly.stopped;
        } else if let Ok(value) = serde_json::from_slice::<Value>(incoming.so_far()) {
            match value["type"] == "error" {
                true => reply.error = Some(value["error"].clone()),
                false => (reply.message, reply.complete) = (value, true),
            }
        }
        reply.raw = Bytes::copy_from_slice(incoming.so_far());
        Ok(reply)
    }

    /// The message's content blocks.
    pub fn blocks(&self) -> &[Value] {
        self.message["content"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The text blocks, joined by a newline.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.blocks().iter().filter_map(|block| block["text"].as_str()).collect();
        texts.join("\n")
    }

    /// The calls that the agent is to run.
    pub fn calls(&self) -> Vec<Call> {
        let calls = self.blocks().iter().filter(|block| block["type"] == "tool_use");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        calls
            .map(|block| Call { id: text(&block["id"]), name: text(&block["name"]), input: block["input"].clone() })
            .collect()
    }

    /// The stop reason; empty when there is none.
    pub fn stop_reason(&self) -> &str {
        self.message["stop_reason"].as_str().unwrap_or_default()
    }

    /// The error's message; empty when there is none.
    pub fn error_message(&self) -> &str {
        self.error.as_ref().and_then(|error| error["message"].as_str()).unwrap_or_default()
    }
}

/// Adds events up, by index.
#[derive(Default)]
struct Assembly {
    message: Value,
    open: Option<usize>,
    arguments: String,
    error: Option<Value>,
    stopped: bool,
}

impl Assembly {
    fn add(&mut self, event: &Value) -> Result<(), &'static str> {
        if self.stopped {
            return Err("an event after the end of the message");
        }
        match event["type"].as_str().unwrap_or_default() {
            "message_start" if !self.message.is_null() => return Err("a second start of the message"),
            "message_start" => self.message = event["message"].clone(),
            "error" => self.error = Some(event["error"].clone()),
            "ping" => {}
            _ if self.message.is_null() => return Err("an event before the start of the message"),
            "content_block_start" => {
                let blocks = self.message["content"].as_array_mut().ok_or("a message without content")?;
                if self.open.is_some() || event["index"] != blocks.len() {
                    return Err("a block starts out of order");
                }
                self.open = Some(blocks.len());
                blocks.push(event["content_block"].clone());
            }
            "content_block_delta" => self.delta(event)?,
            "content_block_stop" => {
                if self.open.is_none_or(|open| event["index"] != open) {
                    return Err("a block ends that is not open");
                }
                let arguments = std::mem::take(&mut self.arguments);
                if !arguments.is_empty() {
                    let input = serde_json::from_str(&arguments).map_err(|_| "arguments that are not JSON")?;
                    *self.block("input")? = input;
                }
                self.open = None;
            }
            "message_delta" => {
                for (name, value) in event["delta"].as_object().into_iter().flatten() {
                    self.message[name] = value.clone();
                }
                for (name, value) in event["usage"].as_object().into_iter().flatten() {
                    self.message["usage"][name] = value.clone();
                }
            }
            "message_stop" if self.open.is_some() => return Err("the message ends in an open block"),
            "message_stop" => self.stopped = true,
            _ => {}
        }
        Ok(())
    }

    fn delta(&mut self, event: &Value) -> Result<(), &'static str> {
        if self.open.is_none_or(|open| event["index"] != open) {
            return Err("a delta for a block that is not open");
        }
        let delta = &event["delta"];
        for name in ["text", "thinking", "signature"] {
            if let Some(piece) = delta[name].as_str() {
                let value = self.block(name)?;
                *value = json!(format!("{}{piece}", value.as_str().unwrap_or_default()));
            }
        }
        if let Some(piece) = delta["partial_json"].as_str() {
            self.arguments.push_str(piece);
        }
        Ok(())
    }

    fn block(&mut self, member: &str) -> Result<&mut Value, &'static str> {
        let block = self.open.and_then(|open| self.message["content"].get_mut(open)).ok_or("no open block")?;
        Ok(&mut block[member])
    }
}
