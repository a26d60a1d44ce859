//! The layer on the server side: in front of a service of your own that proxies to a model API.
//!
//! Here an axum server has it in front of a handler that sends requests on. The model and the policy are scripted, so
//! that this runs anywhere: `cargo run --example server_layer --features test-util`.

use std::convert::Infallible;
use std::sync::Arc;

use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::testing::{Agent, Message, Model, Policy, Ruling, document};
use hookgate::{Body, BoxError, HookLayer, Hookgate, Route};
use http::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tower::{Layer, service_fn};

type Http = Client<HttpConnector, Body>;

/// The service that was there before: it sends a request to the model API and gives back what comes.
async fn forward(http: Http, upstream: String, mut request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = format!("{upstream}{path}").parse::<Uri>().unwrap_or_default();
    request.headers_mut().remove("host");
    Ok(match http.request(request).await {
        Ok(response) => response.map(Body::wrap),
        Err(_) => {
            let mut response = Response::new(Body::from("the model API cannot be reached"));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
    })
}

/// Starts a server with the layer and gives its address.
async fn serve(upstream: String, hooks: HookSet) -> Result<String, BoxError> {
    let gate = Hookgate::builder().hooks(hooks).transport(Arc::new(HyperTransport::new())).build();
    let http: Http = Client::builder(TokioExecutor::new()).build_http();
    let forward = service_fn(move |request| forward(http.clone(), upstream.clone(), request));
    let service = HookLayer::new(gate, Route::model("anthropic")).layer(forward);

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let router = axum::Router::new().fallback_service(service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(format!("http://{address}"))
}

/// Plays one turn in which the policy denies one of two calls.
pub async fn run() -> Result<(), BoxError> {
    let model = Model::scripted([
        Message::new("msg_1").tool("toolu_1", "read", "{}").tool("toolu_2", "remove", "{}"),
        Message::new("msg_2").text("I read it, but could not remove it."),
    ])
    .await?;
    let policy = Policy::start(|asked| match asked.tool() {
        "remove" => Ruling::deny("nothing is removed here"),
        _ => Ruling::pass(),
    })
    .await?;
    let hooks = HookSet::builder()
        .document("hooks.json", &document([policy.hook("PreToolUse")]))
        .allowed_hosts(["127.0.0.1"])
        .allow_insecure_loopback(true)
        .build()?;

    let url = serve(model.url(), hooks).await?;
    let mut agent = Agent::new(&url).tool("read", |_| Ok("text".to_owned())).tool("remove", |_| Ok("gone".to_owned()));
    let replies = agent.prompt("Read it and remove it.").await?;

    assert_eq!(replies[0].calls().len(), 1, "the agent never sees the denied call");
    let results = &model.requests()[1].json()["messages"][2]["content"];
    assert!(results.to_string().contains("nothing is removed here"), "the model learns why");
    println!("{}", replies[1].text());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    run().await
}
