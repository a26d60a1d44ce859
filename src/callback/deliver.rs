//! Handing a message to the controller: the service that runs the sessions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use serde::Serialize;
use url::{Host, Url};

use crate::dispatch::{ConnectionName, HandlerTransport};
use crate::id::Hasher;
use crate::store::{TokenHash, TokenRecord};

/// What of the controller's answer is read: only its status counts.
const MAX_ANSWER: usize = 4 << 10;

/// Where messages go instead of waiting in the inbox.
#[derive(Clone, PartialEq, Eq)]
pub struct Controller {
    url: Url,
    connection: Option<Arc<str>>,
}

impl Controller {
    /// The controller at that address: `https`, or `http` on this machine; `None` for anything else. User information has
    /// no place in it.
    ///
    /// ```
    /// use hookgate::callback::Controller;
    /// assert!(Controller::at("https://runtime.example.com/prompt").is_some());
    /// assert!(Controller::at("http://127.0.0.1:9000/prompt").is_some());
    /// assert!(Controller::at("http://runtime.example.com/prompt").is_none());
    /// ```
    pub fn at(url: &str) -> Option<Self> {
        if url.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
            return None;
        }
        let url = Url::parse(url).ok()?;
        let local = match url.host()? {
            Host::Domain(name) => name == "localhost",
            Host::Ipv4(address) => address.is_loopback(),
            Host::Ipv6(address) => address.is_loopback(),
        };
        let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        let reachable = url.scheme() == "https" || url.scheme() == "http" && local;
        (plain && reachable && url.as_str().parse::<http::Uri>().is_ok())
            .then_some(Controller { url, connection: None })
    }

    /// With the credential of that connection.
    #[must_use]
    pub fn connection(mut self, name: impl Into<Arc<str>>) -> Self {
        self.connection = Some(name.into());
        self
    }
}

/// Without the path and the query, which may hold secrets.
impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("host", &self.url.host_str()).field("connection", &self.connection).finish()
    }
}

/// The way to the controller.
pub(super) struct Deliverer {
    controller: Controller,
    transport: Option<Arc<dyn HandlerTransport>>,
}

/// What the controller is sent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Prompt<'a> {
    session_id: &'a str,
    /// With the token masked: until the controller says that it took the message over, the token is not spent.
    message: &'a str,
    token: String,
    purpose: Option<&'a str>,
}

impl Deliverer {
    pub(super) fn new(controller: Controller, transport: Option<Arc<dyn HandlerTransport>>) -> Self {
        Deliverer { controller, transport }
    }

    /// Asks the controller to take a message over. Any status of success means that it has.
    ///
    /// The idempotency key is the same for every attempt with a token: a controller that took the message over and was not
    /// heard recognises the repetition.
    pub(super) async fn hand_over(&self, token: &TokenRecord, message: &str, time: Duration) -> Result<(), String> {
        let Some(transport) = &self.transport else { return Err("this build has no transport to it".to_owned()) };
        let request = self.request(token, message).map_err(|error| error.to_string())?;
        let answer = tokio::time::timeout(time, transport.send(request, MAX_ANSWER)).await;
        let answer = answer.map_err(|_| format!("it did not answer within {} ms", time.as_millis()))?;
        let answer = answer.map_err(|error| error.to_string())?;
        match answer.status {
            status if status.is_success() => Ok(()),
            status if status.is_redirection() => Err(format!("it answered {status}; redirects are not followed")),
            status => Err(format!("it answered {status}")),
        }
    }

    fn request(&self, token: &TokenRecord, message: &str) -> Result<Request<Bytes>, Box<dyn std::error::Error>> {
        let prompt = Prompt {
            session_id: &token.session.session,
            message,
            token: token.hash.prefix(),
            purpose: token.purpose.as_deref(),
        };
        let mut request = Request::post(self.controller.url.as_str())
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header("idempotency-key", idempotency_key(token.hash))
            .body(Bytes::from(serde_json::to_vec(&prompt)?))?;
        if let Some(name) = &self.controller.connection {
            request.extensions_mut().insert(ConnectionName(name.clone()));
        }
        Ok(request)
    }
}

/// Follows from the token's hash, and does not lead back to it.
fn idempotency_key(hash: TokenHash) -> String {
    Hasher::new().with(b"callback delivery").with(hash.as_bytes()).finish().to_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_is_reached_by_tls_or_on_this_machine() {
        for url in ["https://a.example/x?y=1", "http://localhost:1/", "http://[::1]:9/p", "http://127.0.0.2/"] {
            assert!(Controller::at(url).is_some(), "{url}");
        }
        for url in
            ["http://a.example/", "ftp://a", "https://u:p@a.example/", "https://a/#f", "a.example", "", "https://a b"]
        {
            assert!(Controller::at(url).is_none(), "{url}");
        }
        assert!(!format!("{:?}", Controller::at("https://a.example/secret")).contains("secret"));
    }
}
