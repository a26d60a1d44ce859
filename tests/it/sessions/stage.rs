//! A hookgate on either host, between an agent's model and a policy, and its control surface.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::error_handling::HandleError;
use bytes::Bytes;
use hookgate::callback::{Settings, TmpHooks, TokenKey};
use hookgate::control::{ControlState, Metrics, Readiness, router};
use hookgate::host::pingora::Proxy;
use hookgate::limits::Limits;
use hookgate::store::MemoryStore;
use hookgate::testing::{Agent, Client, Envelope, Hook, Message, Model, Policy, Ruling, document};
use hookgate::{Body, BoxError, HookLayer, Route};
use http::{Method, StatusCode};
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::{Layer as _, service_fn};

use crate::hosts::{Cast, forward};
pub(crate) use crate::suite::{Host, Outcome};

/// Everything running. Dropping it ends everything.
pub(crate) struct Stage {
    pub(crate) url: String,
    pub(crate) model: Model,
    pub(crate) policy: Policy,
    pub(crate) hooks: TmpHooks,
    _proxy: Option<Proxy>,
    _server: JoinSet<()>,
}

const BASE_URL: &str = "https://agents.example.com";

impl Stage {
    /// With handlers of these events that pass everything, and a model that says the number of the request.
    pub(crate) async fn with<const N: usize>(host: Host, events: [&str; N]) -> Result<Stage, BoxError> {
        Stage::deciding(host, events, |_| Ruling::pass()).await
    }

    /// With handlers of these events.
    pub(crate) async fn deciding<const N: usize>(
        host: Host,
        events: [&str; N],
        decide: impl Fn(&Envelope) -> Ruling + Send + Sync + 'static,
    ) -> Result<Stage, BoxError> {
        let policy = Policy::start(decide).await?;
        let hooks = events.map(|event| policy.hook(event));
        Stage::start(host, policy, &hooks, says_its_number().await?).await
    }

    pub(crate) async fn start(host: Host, policy: Policy, hooks: &[Hook], model: Model) -> Result<Stage, BoxError> {
        let hooks = document(hooks.iter().cloned());
        let (upstream, limits, denied) = (model.url(), Limits::default(), Vec::new());
        let cast = Cast { host, server: model, policy, upstream, hooks, limits, denied };
        let (mut server, mut proxy) = (JoinSet::new(), None);
        let (address, hooks) = match host {
            Host::Layer => {
                let (app, hooks) = service(&cast)?;
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let address = listener.local_addr()?;
                server.spawn(async move { axum::serve(listener, app).await.unwrap() });
                (address, hooks)
            }
            Host::Proxy => {
                let config = cast.config(&configuration(&cast.upstream))?;
                let started = tokio::task::spawn_blocking(|| Proxy::start(config)).await??;
                let parts = (started.addresses()[0], started.tmp_hooks().clone());
                proxy = Some(started);
                parts
            }
        };
        let url = format!("http://{address}");
        Ok(Stage { url, model: cast.server, policy: cast.policy, hooks, _proxy: proxy, _server: server })
    }

    /// An agent in that session.
    pub(crate) fn agent(&self, session: &str) -> Agent {
        Agent::new(&format!("{}/model", self.url)).session(session)
    }

    /// Sends a request to the control surface: `"GET sessions/s1"`. What is answered, as status and JSON.
    pub(crate) async fn ask(&self, request: &str, body: &str) -> Result<(u16, Value), BoxError> {
        self.ask_with(request, &[], body).await
    }

    pub(crate) async fn ask_with(
        &self,
        request: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<(u16, Value), BoxError> {
        let (method, path) = request.split_once(' ').ok_or("no method")?;
        let path = format!("/hookgate/v1/{path}");
        let body = Bytes::copy_from_slice(body.as_bytes());
        let answer = Client::new(&self.url).send(method.parse::<Method>()?, &path, headers, body).await?;
        let (status, media_type) = (answer.status, answer.headers.get("content-type").cloned());
        let body = answer.bytes().await?;
        let json = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
        if status.is_client_error() || status.is_server_error() {
            assert_eq!(media_type.ok_or("no media type")?, "application/problem+json");
            assert!(json["type"].is_string() && json["title"].is_string() && json["status"] == status.as_u16());
        }
        if status == StatusCode::NO_CONTENT {
            assert_eq!(json, Value::Null);
        }
        Ok((status.as_u16(), json))
    }

    /// What a request to the control surface is answered with that status.
    pub(crate) async fn control(&self, request: &str, body: &str, status: u16) -> Result<Value, BoxError> {
        let (got, json) = self.ask(request, body).await?;
        if got != status {
            return Err(format!("{request}: {got} and not {status}: {json}").into());
        }
        Ok(json)
    }

    /// What is said to a request that is refused with that status.
    pub(crate) async fn problem(&self, request: &str, body: &str, status: u16) -> Result<String, BoxError> {
        let problem = self.control(request, body, status).await?;
        Ok(problem["detail"].as_str().ok_or("no detail")?.to_owned())
    }

    /// Begins a task; gives its id and its turn.
    pub(crate) async fn start_task(&self, session: &str, body: &str) -> Result<(String, String), BoxError> {
        let begun = self.control(&format!("POST sessions/{session}/tasks"), body, 201).await?;
        let text = |name: &str| begun[name].as_str().map(str::to_owned).ok_or("no text");
        Ok((text("taskId")?, text("turnId")?))
    }

    pub(crate) async fn stop_task(&self, session: &str, task: &str, status: &str) -> Outcome {
        let body = json!({"status": status}).to_string();
        self.control(&format!("POST sessions/{session}/tasks/{task}/stop"), &body, 204).await?;
        Ok(())
    }

    /// The audit records of a session.
    pub(crate) async fn audit(&self, session: &str) -> Result<Vec<Value>, BoxError> {
        let page = self.control(&format!("GET sessions/{session}/hooks"), "", 200).await?;
        Ok(page["items"].as_array().cloned().unwrap_or_default())
    }

    /// Waits until a session's audit has a record of that event.
    pub(crate) async fn audited(&self, session: &str, event: &str) -> Result<Value, BoxError> {
        loop {
            let audit = self.audit(session).await?;
            if let Some(record) = audit.into_iter().find(|record| record["event"] == event) {
                return Ok(record);
            }
            // Records are written behind what they record, and there is no signal for them.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the session is not there.
    pub(crate) async fn is_gone(&self, session: &str) -> Outcome {
        while self.ask(&format!("GET sessions/{session}"), "").await?.0 != 404 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// The ids of the sessions in the order of the list.
    pub(crate) async fn listed(&self, query: &str) -> Result<Vec<String>, BoxError> {
        Ok(ids(&self.control(&format!("GET sessions{query}"), "", 200).await?))
    }

    /// The texts of the last message of a request that the model got.
    pub(crate) fn last_texts(&self, number: usize) -> Vec<String> {
        let request = self.model.requests().get(number).map(|request| request.json()).unwrap_or_default();
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        let parts = messages.last().and_then(|last| last["content"].as_array()).cloned().unwrap_or_default();
        parts.iter().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
    }

    /// A request that the model got, as text.
    pub(crate) fn request(&self, number: usize) -> String {
        let body = self.model.requests().get(number).map(|request| request.body.clone()).unwrap_or_default();
        String::from_utf8_lossy(&body).into_owned()
    }
}

pub(crate) fn ids(page: &Value) -> Vec<String> {
    let items = page["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["id"].as_str().map(str::to_owned)).collect()
}

pub(crate) async fn says_its_number() -> Result<Model, BoxError> {
    Ok(Model::answering(|number, _| Message::new(&format!("msg_{number}")).text(&number.to_string()).into()).await?)
}

/// A service as a user of the library makes it.
fn service(cast: &Cast) -> Result<(Router, TmpHooks), BoxError> {
    let settings = Settings::default().base_url(BASE_URL)?;
    let tmp_hooks = TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None);
    let core = cast.core()?.callbacks(tmp_hooks.clone(), Duration::ZERO).build();
    let upstream: http::Uri = cast.upstream.parse()?;
    let authority = upstream.authority().cloned().ok_or("an upstream without an authority")?;
    let client = Hyper::builder(TokioExecutor::new()).build_http::<Body>();
    let forward = service_fn(move |request| forward(client.clone(), authority.clone(), request));
    let failed = |error: BoxError| async move { (StatusCode::BAD_GATEWAY, error.to_string()) };
    let model = HandleError::new(HookLayer::new(core.clone(), Route::model("model")).layer(forward.clone()), failed);
    let tools = HandleError::new(HookLayer::new(core.clone(), Route::mcp("tools", "files")).layer(forward), failed);
    let control =
        ControlState { core, tmp_hooks: tmp_hooks.clone(), readiness: Readiness::new(), metrics: Metrics::detached() };
    let app = Router::new()
        .nest_service("/model", model)
        .nest_service("/tools", tools)
        .route_service(&format!("{}/{{*token}}", tmp_hooks.path_prefix()), tmp_hooks.service())
        .fallback_service(router(control));
    Ok((app, tmp_hooks))
}

/// The same as a configuration.
fn configuration(upstream: &str) -> String {
    format!(
        r#"
[[routes]]
name = "model"
kind = "model"
path_prefix = "/model"
upstream = "{upstream}"

[[routes]]
name = "tools"
kind = "mcp"
server = "files"
path_prefix = "/tools"
upstream = "{upstream}"

[tmp_hooks]
base_url = "{BASE_URL}"
"#
    )
}
