//! What a whole exchange costs in the layer, by how many handlers are asked. Handlers and upstream answer at once, from
//! memory, so what is measured is hookgate.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::future::BoxFuture;
use hookgate::dispatch::{AnswerBody, HandlerAnswer, HandlerTransport, TransportError};
use hookgate::hooks::HookSet;
use hookgate::testing::{Hook, Message, document};
use hookgate::{Body, HookLayer, Hookgate, Route};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use tower::{Layer, ServiceExt, service_fn};

struct Passes;

impl HandlerTransport for Passes {
    fn send(&self, _: Request<Bytes>, _: usize) -> BoxFuture<'static, Result<HandlerAnswer, TransportError>> {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let body = AnswerBody::Complete(Bytes::from_static(br#"{"schemaVersion":1,"outcome":"pass"}"#));
        Box::pin(async move { Ok(HandlerAnswer { status: StatusCode::OK, headers, body }) })
    }
}

fn exchange(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut message = Message::new("msg_1");
    for _ in 0..50 {
        message = message.text("Some words of an answer.");
    }
    let answer = message.tool("toolu_1", "read", r#"{"path":"a.txt"}"#).sse();
    let request = Bytes::from_static(
        br#"{"model":"m","max_tokens":1024,"stream":true,"tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"hi"}]}"#,
    );
    let mut group = criterion.benchmark_group("layer");
    group.throughput(Throughput::Bytes(answer.len() as u64));
    for handlers in [0, 1, 5] {
        let url = "https://policy.internal/";
        let hooks = (0..handlers).map(|number| Hook::new("PreToolUse", url).id(&format!("policy-{number}")));
        let hooks = HookSet::builder().document("hooks.json", &document(hooks)).allowed_hosts(["policy.internal"]);
        let gate = Hookgate::builder().hooks(hooks.build().expect("valid hooks")).transport(Arc::new(Passes)).build();
        let upstream = answer.clone();
        let upstream = service_fn(move |_: Request<Body>| {
            let mut response = Response::new(Body::from(upstream.clone()));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            async move { Ok::<_, Infallible>(response) }
        });
        let service = HookLayer::new(gate, Route::model("anthropic")).layer(upstream);
        let mut session = 0;
        group.bench_function(BenchmarkId::new("handlers", handlers), |bencher| {
            bencher.iter(|| {
                // A request of its own each time: what was decided once is not decided again.
                session += 1;
                let request = Request::post("/v1/messages")
                    .header(header::CONTENT_TYPE, "application/json")
                    .header("x-hookgate-session", session)
                    .body(Body::from(request.clone()))
                    .expect("a request");
                runtime.block_on(async {
                    let response = service.clone().oneshot(request).await.expect("an answer");
                    response.into_body().collect().await.expect("a whole answer").to_bytes().len()
                })
            });
        });
    }
    group.finish();
}

criterion_group!(benches, exchange);
criterion_main!(benches);
