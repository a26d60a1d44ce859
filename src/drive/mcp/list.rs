//! The tools of a server: learnt from the lists that clients ask for, and asked for when a policy needs one that no client
//! asked for yet.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, header};
use http_body_util::{BodyExt, Limited};

use super::exchange::Exchange;
use crate::drive::answer::media_type;
use crate::drive::{decode, outgoing};
use crate::wire::json::{pointer, quote};
use crate::wire::jsonrpc::{Envelope, Kind, Payload, read};
use crate::wire::mcp::{Revision, ToolList};
use crate::wire::sse::Splitter;

/// How long a server may take for one page.
const PATIENCE: Duration = Duration::from_secs(10);
/// How many pages are asked for.
const PAGES: usize = 50;
/// The id of the requests. A string that no client has a reason to use.
const ID: &str = "\"hookgate-tools-list\"";

impl Exchange {
    /// The schema of a tool's arguments; `None` when the server has no such tool, no schema, or does not say.
    pub(super) async fn schema(&self, tool: &str) -> Option<Bytes> {
        let state = &self.plane.core.inner.mcp;
        if let Some(known) = state.list(&self.client) {
            return known.get(tool)?.clone();
        }
        let mut cursor = None;
        let mut found = Vec::new();
        for _ in 0..PAGES {
            let list = match tokio::time::timeout(PATIENCE, self.page(cursor.as_deref())).await {
                Ok(Some(list)) => list,
                Ok(None) | Err(_) => {
                    tracing::debug!(route = &*self.route.name, "the tools of an MCP server could not be listed");
                    return None;
                }
            };
            found.extend(list.tools.into_iter().map(|tool| (tool.name, tool.schema)));
            cursor = list.next;
            if cursor.is_none() {
                break;
            }
        }
        state.learn(self.client, found);
        state.list(&self.client)?.get(tool)?.clone()
    }

    async fn page(&self, cursor: Option<&str>) -> Option<ToolList> {
        let mut head = self.head.clone();
        head.method = Method::POST;
        let names = head.headers.keys().filter(|name| name.as_str().starts_with("mcp-param-")).cloned();
        for name in names.collect::<Vec<_>>() {
            head.headers.remove(name);
        }
        head.headers.remove("mcp-name");
        head.headers.remove(header::CONTENT_ENCODING);
        if self.revision == Revision::Modern {
            head.headers.insert("mcp-method", HeaderValue::from_static("tools/list"));
        }
        let mut params = String::new();
        if let Some(cursor) = cursor {
            params = format!("\"cursor\":{}", quote(cursor));
        }
        // What a modern request says of itself is said again.
        let meta = self.params.as_ref().and_then(|params| Some((pointer(params, "/_meta").ok()??, params)));
        if let Some(meta) = meta.and_then(|(meta, params)| std::str::from_utf8(meta.of(params)).ok()) {
            let comma = if params.is_empty() { "" } else { "," };
            params = format!("{params}{comma}\"_meta\":{meta}");
        }
        let body = format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":"tools/list","params":{{{params}}}}}"#);
        let response = self.upstream.call(outgoing::request(&head, Bytes::from(body).into(), true, true)).await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let limit = self.plane.core.inner.limits.max_request_bytes;
        let (head, body) = response.into_parts();
        if media_type(&head.headers) == "text/event-stream" {
            return list_in_stream(decode::stream(&head.headers, body).ok()?, limit).await;
        }
        let body = Limited::new(body, limit).collect().await.ok()?.to_bytes();
        list_in(&decode::whole(&head.headers, body, limit).await.ok()?)
    }
}

/// The list comes as one event; the server need not end the stream after it.
async fn list_in_stream(mut body: crate::Body, limit: usize) -> Option<ToolList> {
    let mut splitter = Splitter::new(limit);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        splitter.push(data);
        while let Some(event) = splitter.next().ok()? {
            if let Some(list) = list_in(&splitter.data(&event)) {
                return Some(list);
            }
        }
    }
    None
}

fn list_in(message: &[u8]) -> Option<ToolList> {
    match read(message) {
        Ok(Payload::One(Envelope { id: Some(id), kind: Kind::Result(result), .. }))
            if id.of(message) == ID.as_bytes() =>
        {
            ToolList::read(message, result).ok()
        }
        _ => None,
    }
}
