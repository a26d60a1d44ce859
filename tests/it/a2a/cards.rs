//! Agents' cards lead to the route, and tell the agent's name.

use std::convert::Infallible;

use hookgate::testing::Answer;
use hookgate::{Body, HookLayer, Hookgate, Route};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::dialect::Dialect;
use super::stage::{At, BASE, Host, Outcome, PREFIX, Stage};

const CARD: &str = "/.well-known/agent-card.json";

/// A card of 1.0 of an agent at that address; the spaces are no printer's.
fn card(url: &str) -> String {
    let grpc = r#"{"url":"agent.internal:50051","protocolBinding":"GRPC","protocolVersion":"1.0"}"#;
    format!(
        r#"{{ "name" : "Tea Agent","signatures":[{{"protected":"e30","signature":"c2ln"}}],
  "supportedInterfaces":[{{"url":"{url}/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}},{grpc},
    {{"url":"{url}","protocolBinding":"HTTP+JSON","protocolVersion":"1.0","tenant":"acme"}}],
  "documentationUrl":"https://tea.example/doc", "n":1.0 }}"#
    )
}

fn moved(url: &str) -> String {
    format!(
        r#"{{ "name" : "Tea Agent","supportedInterfaces":[{{"url":"{url}/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}},{{"url":"{url}","protocolBinding":"HTTP+JSON","protocolVersion":"1.0","tenant":"acme"}}],
  "documentationUrl":"https://tea.example/doc", "n":1.0 }}"#
    )
}

/// Where an agent believes to be, which is behind the part of the path that the proxy adds.
fn internal(at: At) -> &'static str {
    if at.host == Host::Proxy { "http://agent.internal:9000/base" } else { "http://agent.internal:9000" }
}

async fn get(stage: &Stage, path: &str, headers: &[(&str, &str)]) -> Result<String, hookgate::BoxError> {
    let incoming = stage.client().send(Method::GET, path, headers, bytes::Bytes::new()).await?;
    Ok(String::from_utf8(incoming.bytes().await?.to_vec())?)
}

pub(super) async fn a_card_leads_to_the_route(at: At) -> Outcome {
    let served = card(internal(at));
    for with_hooks in [true, false] {
        let served = served.clone();
        let plan =
            at.agent(move |_, _| Answer::json(200, served.clone()).header("etag", "\"1\"").header("x-agent", "yes"));
        let plan = if with_hooks { plan } else { plan.no_hooks() };
        let stage = plan.start().await?;
        let headers = [("if-none-match", "\"1\""), ("range", "bytes=0-9")];
        let incoming = stage.client().send(Method::GET, CARD, &headers, bytes::Bytes::new()).await?;
        assert_eq!((incoming.status.as_u16(), &incoming.headers["x-agent"]), (200, &"yes".parse()?));
        assert!(!incoming.headers.contains_key("etag"));
        let length: usize = incoming.headers["content-length"].to_str()?.parse()?;
        let text = incoming.bytes().await?;
        assert_eq!(String::from_utf8_lossy(&text), moved(&stage.url));
        assert_eq!(length, text.len());
        let sent = &stage.agent.requests()[0];
        assert_eq!((sent.header("if-none-match"), sent.header("range")), ("", ""));
        let base = if at.host == Host::Proxy { BASE } else { "" };
        assert_eq!(sent.uri.to_string(), format!("{base}{CARD}"));
    }
    Ok(())
}

pub(super) async fn a_card_of_0_3_leads_to_the_route(at: At) -> Outcome {
    let url = internal(at);
    let served = json!({"name": "Tea Agent", "url": format!("{url}/"), "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": "grpc.internal", "transport": "GRPC"}, {"url": url, "transport": "HTTP+JSON"}]});
    let stage = at.agent(move |_, _| Answer::json(200, served.to_string())).start().await?;
    let own = &stage.url;
    let expected = json!({"name": "Tea Agent", "url": format!("{own}/"), "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": own, "transport": "HTTP+JSON"}]});
    let read: Value = serde_json::from_str(&get(&stage, "/.well-known/agent.json", &[]).await?)?;
    assert_eq!(read, expected);
    Ok(())
}

pub(super) async fn a_public_origin_comes_first(at: At) -> Outcome {
    let served = card(internal(at));
    let stage = at
        .agent(move |_, _| Answer::json(200, served.clone()))
        .public_origin("https://agents.example.com")
        .start()
        .await?;
    let prefix = if at.host == Host::Proxy { PREFIX } else { "" };
    let expected = moved(&format!("https://agents.example.com{prefix}"));
    assert_eq!(get(&stage, CARD, &[("host", "elsewhere.example")]).await?, expected);
    Ok(())
}

pub(super) async fn an_extended_card_leads_to_the_route(at: At) -> Outcome {
    let served = card(internal(at));
    let stage = at
        .agent(move |_, request| match request.method {
            Method::GET => Answer::json(200, served.clone()),
            // In pieces, so that its length is not known before.
            _ => Answer::json(200, r#"{"jsonrpc":"2.0","id":"q-1","#).then(format!(r#""result": {served}}}"#)),
        })
        .no_hooks()
        .start()
        .await?;
    let own = moved(&stage.url);
    assert_eq!(get(&stage, "/acme/extendedAgentCard", &[]).await?, own);
    assert_eq!(get(&stage, "/v1/card", &[]).await?, own);
    for method in ["GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"] {
        let text = stage.text(&Dialect::Rpc1.call(method, json!({}))).await?;
        assert_eq!(text, format!(r#"{{"jsonrpc":"2.0","id":"q-1","result": {own}}}"#));
    }
    Ok(())
}

pub(super) async fn a_card_names_the_agent(at: At) -> Outcome {
    let said = at.dialect;
    let stage = at
        .agent(move |_, request| match request.method {
            Method::GET if request.uri.path().contains("coffee") => Answer::json(200, r#"{"name": "Coffee Agent"}"#),
            Method::GET => Answer::json(200, r#"{"name": "Tea Agent"}"#),
            _ => at.tell(&[said.task("t-1", "working", "")]),
        })
        .start()
        .await?;
    stage.text(&at.ask("Make tea.")).await?;
    get(&stage, CARD, &[]).await?;
    get(&stage, &format!("/coffee{CARD}"), &[]).await?;
    stage.text(&at.ask("Make tea.")).await?;
    let mut coffee = at.ask("Make coffee.");
    coffee.path = "/coffee/rpc".to_owned();
    stage.text(&coffee).await?;
    let asked = stage.policy.asked_of("SubagentStart");
    let names: Vec<&str> = asked.iter().map(|asked| asked.text("/detail/subagent")).collect();
    assert_eq!(names, ["billing", "Tea Agent", "Coffee Agent"]);
    Ok(())
}

pub(super) async fn what_is_no_card_passes(at: At) -> Outcome {
    for (status, body) in [(404, "{\"url\":\"http://x\"}"), (200, "<html>"), (200, "[]"), (200, "{ \"name\":\"A\" }")] {
        let stage = at.agent(move |_, _| Answer::json(status, body).header("etag", "\"1\"")).start().await?;
        let incoming = stage.client().get(CARD).await?;
        assert_eq!((incoming.status.as_u16(), &incoming.headers["etag"]), (status, &"\"1\"".parse()?));
        assert_eq!(incoming.bytes().await?, body);
    }
    Ok(())
}

pub(super) async fn a_card_may_be_compressed(at: At) -> Outcome {
    let served = card(internal(at));
    let stage = at.agent(move |_, _| Answer::json(200, served.clone()).gzip()).start().await?;
    let incoming = stage.client().get(CARD).await?;
    assert!(!incoming.headers.contains_key("content-encoding"));
    assert_eq!(incoming.bytes().await?, moved(&stage.url));
    Ok(())
}

pub(super) async fn a_card_that_is_too_large_is_refused(at: At) -> Outcome {
    let stage = at.agent(|_, _| Answer::json(200, format!("{{\"url\":\"{}\"}}", "x".repeat(1 << 20)))).start().await?;
    let incoming = stage.client().get(CARD).await?;
    assert_eq!(incoming.status, 502);
    assert!(String::from_utf8_lossy(&incoming.bytes().await?).contains("larger than 1048576 bytes"));
    Ok(())
}

/// The layer leaves paths as they are: what it knows of its own place goes into the card alone.
#[tokio::test]
async fn a_layer_knows_its_prefix_and_on_which_side_it_is() -> Outcome {
    let agent = service_fn(|request: Request<Body>| async move {
        let card = format!(r#"{{"url":"http://agent.internal/rpc","asked":"{}"}}"#, request.uri().path());
        Ok::<_, Infallible>(Response::new(Body::from(card)))
    });
    let service = HookLayer::new(Hookgate::builder().build(), Route::a2a("tea")).path_prefix("/tea/").layer(agent);
    let get = |request: http::request::Builder| {
        let (service, request) = (service.clone(), request.body(Body::empty()));
        async move {
            let body = service.oneshot(request?).await?.into_body().collect().await?.to_bytes();
            Ok::<_, hookgate::BoxError>(String::from_utf8(body.to_vec())?)
        }
    };
    let path = format!("/tea{CARD}");
    let moved = |url: &str| format!(r#"{{"url":"{url}","asked":"{path}"}}"#);
    let plain = Request::get(&path).header("host", "gate.example:8080");
    assert_eq!(get(plain).await?, moved("http://gate.example:8080/tea/rpc"));
    let http2 = Request::get(format!("https://gate.example{path}")).version(http::Version::HTTP_2);
    assert_eq!(get(http2).await?, moved("https://gate.example/tea/rpc"));
    let told = Request::get(&path).header("host", "gate.example").extension(http::uri::Scheme::HTTPS);
    assert_eq!(get(told).await?, moved("https://gate.example/tea/rpc"));
    // Around a client of its own, all addresses are right as they are.
    let own = Request::get(format!("http://agent.internal{path}"));
    assert_eq!(get(own).await?, moved("http://agent.internal/rpc"));
    Ok(())
}
