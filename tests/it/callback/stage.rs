//! A hookgate on either host, and what tests do with it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use hookgate::Hookgate;
use hookgate::callback::{TmpHook, TmpHooks, TokenKey};
use hookgate::config::Config;
use hookgate::control::{ControlState, Metrics, Readiness, router};
use hookgate::host::pingora::Proxy;
use hookgate::id::{DEFAULT_TENANT, SessionKey};
use hookgate::store::{InboxMessage, MemoryStore};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::config_support::Folder;
use crate::pingora_kit::{Message, Upstream, Wire, json, within};
pub(crate) use crate::suite::Host;

pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    pub(crate) hooks: TmpHooks,
    /// Where everything leads that is not hookgate's.
    pub(crate) upstream: Upstream,
    proxy: Option<Proxy>,
    _server: JoinSet<()>,
}

pub(crate) const SESSION: &str = "s1";

/// What is in a configuration that says no other.
pub(crate) const BASE: &str = "[tmp_hooks]\nbase_url = \"https://agents.example.com\"\n";

pub(crate) fn session() -> SessionKey {
    SessionKey { tenant: DEFAULT_TENANT.into(), session: SESSION.into() }
}

impl Stage {
    pub(crate) async fn plain(host: Host) -> Self {
        Stage::with(host, BASE).await
    }

    /// With that configuration beside a listener and a route for everything.
    pub(crate) async fn with(host: Host, text: &str) -> Self {
        Stage::with_environment(host, text, &[]).await
    }

    pub(crate) async fn with_environment(host: Host, text: &str, environment: &[(&str, &str)]) -> Self {
        let upstream = Upstream::answering(|_| json("\"upstream\"")).await;
        let text = format!(
            "{text}\n[[routes]]\nname = \"all\"\nkind = \"passthrough\"\npath_prefix = \"/\"\nupstream = \"http://{}\"\n",
            upstream.address
        );
        // A test's own [server] stands at the beginning of its text.
        let text = match text.contains("[server]") {
            true => text.replacen("[server]", "[server]\nlisten = \"127.0.0.1:0\"", 1),
            false => format!("[server]\nlisten = \"127.0.0.1:0\"\n{text}"),
        };
        let config = Folder::with(&text).load(environment).unwrap_or_else(|errors| panic!("{errors}"));
        match host {
            Host::Proxy => {
                let proxy = tokio::task::spawn_blocking(|| Proxy::start(config).unwrap()).await.unwrap();
                let (address, hooks) = (proxy.addresses()[0], proxy.tmp_hooks().clone());
                Stage { address, hooks, upstream, proxy: Some(proxy), _server: JoinSet::new() }
            }
            Host::Layer => {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let address = listener.local_addr().unwrap();
                let (app, hooks) = layer(&config);
                let mut server = JoinSet::new();
                server.spawn(async move { axum::serve(listener, app).await.unwrap() });
                Stage { address, hooks, upstream, proxy: None, _server: server }
            }
        }
    }

    /// Stops as the host does when it is told to.
    pub(crate) async fn stop(mut self) {
        match self.proxy.take() {
            Some(proxy) => within("the proxy to stop", tokio::task::spawn_blocking(|| proxy.stop())).await.unwrap(),
            None => self.hooks.close(),
        }
    }

    pub(crate) async fn issue(&self) -> TmpHook {
        self.hooks.issue(&session(), Some("the build"), None).await.unwrap()
    }

    pub(crate) async fn wire(&self) -> Wire {
        Wire::connect(self.address).await
    }

    /// One request on a connection of its own.
    pub(crate) async fn send(&self, head: &str, body: impl AsRef<[u8]>) -> Message {
        let mut wire = self.wire().await;
        let head = format!("{head}\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.as_ref().len());
        wire.send(head).await;
        wire.try_send(body).await;
        wire.answer().await
    }

    pub(crate) async fn post(&self, hook: &TmpHook, body: impl AsRef<[u8]>) -> Message {
        self.send(&format!("POST {} HTTP/1.1", path(hook)), body).await
    }

    pub(crate) async fn messages(&self) -> Vec<InboxMessage> {
        self.hooks.store().messages(session(), None, 100).await.unwrap()
    }

    /// What a request to the control surface is answered, with that status.
    pub(crate) async fn control(&self, request: &str, body: &str, status: u16) -> Value {
        let answer = self.send(&format!("{request} HTTP/1.1"), body).await;
        assert_eq!(answer.status(), status, "{request}: {}", answer.text());
        if status >= 400 {
            assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        }
        match answer.body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&answer.body).unwrap(),
        }
    }
}

/// A service as a user of the library makes it.
fn layer(config: &Config) -> (Router, TmpHooks) {
    let settings = config.tmp_hooks.settings.clone();
    let hooks =
        TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), Some(Arc::new(config.transport())));
    tokio::spawn(hooks.sweeping());
    let control = ControlState {
        core: Hookgate::builder().build(),
        tmp_hooks: hooks.clone(),
        readiness: Readiness::new(),
        metrics: Metrics::detached(),
    };
    let app = Router::new()
        .route_service(&format!("{}/{{*token}}", hooks.path_prefix()), hooks.service())
        .fallback_service(router(control));
    (app, hooks)
}

/// Where a callback goes.
pub(crate) fn path(hook: &TmpHook) -> String {
    format!("/api/tmp-hooks/{}", hook.token)
}

/// Checks an answer to the letter, and what every one has.
pub(crate) fn assert_answer(answer: &Message, status: u16, body: &str) {
    assert_eq!((answer.status(), answer.text()), (status, body), "{}", answer.head);
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{}", answer.head);
    assert_eq!(answer.header("content-type"), Some("application/json"), "{}", answer.head);
}

pub(crate) const RECEIVED: &str = r#"{"received":true}"#;

/// A refusal's body.
pub(crate) fn refusal(error: &str) -> String {
    format!(r#"{{"received":false,"error":"{error}"}}"#)
}

pub(crate) fn assert_refused(answer: &Message, status: u16, error: &str) {
    assert_answer(answer, status, &refusal(error));
}

/// Waits until the clock has passed a moment.
pub(crate) async fn until(moment: hookgate::time::Timestamp) {
    let wait = hookgate::time::Timestamp::now().until(moment);
    tokio::time::sleep(wait + std::time::Duration::from_millis(2)).await;
}
