//! Keys in front of routes, and the tenants that they name.

use std::path::Path;
use std::sync::{Arc, Mutex};

use hookgate::auth::KeysFile;
use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::testing::{Client, Message, Model, Policy, Ruling, document};
use hookgate::{Body, BoxError, HookLayer, Hookgate, Route, Tenant};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use tower::{Layer, ServiceExt as _, service_fn};

use crate::pingora_kit::{Upstream, Wire, json, pass, proxy_in, proxy_with};

fn keys(folder: &Path) -> KeysFile {
    KeysFile::new(folder.join("keys.toml"))
}

#[tokio::test]
async fn a_route_asks_for_a_key_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let key = keys(folder.path()).add("team-a").unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let upstream = Upstream::answering(move |request| {
        kept.lock().unwrap().push(request.head.clone());
        json("1")
    })
    .await;
    let proxy = proxy_in(folder.path(), &format!("[auth]\nprotect_routes = true\n{}", pass(upstream.address)));
    let status = async |headers: String| {
        let mut client = Wire::to(&proxy).await;
        client.send(format!("GET /x HTTP/1.1\r\nhost: a\r\n{headers}\r\n")).await;
        client.answer().await
    };
    for headers in [
        String::new(),
        "x-hookgate-key:\r\n".to_owned(),
        "x-hookgate-key: team-a\r\n".to_owned(),
        format!("x-hookgate-key: {key}0\r\n"),
        format!("x-hookgate-key: {}\r\n", &key[..key.len() - 1]),
        format!("x-hookgate-key: {}\r\n", key.to_uppercase()),
        format!("x-hookgate-key: {key}\r\nx-hookgate-key: {key}\r\n"),
        format!("authorization: Bearer {key}\r\n"),
        format!("cookie: x-hookgate-key={key}\r\n"),
    ] {
        let answer = status(headers.clone()).await;
        assert_eq!(answer.status(), 401, "{headers}");
        assert_eq!(answer.header("www-authenticate"), Some("x-hookgate-key realm=\"hookgate\""));
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(!answer.text().contains(&key[4..20]));
    }
    assert_eq!(upstream.connections(), 0);

    assert_eq!(status(format!("X-Hookgate-Key: {key}\r\nx-kept: 1\r\n")).await.status(), 200);
    let head = seen.lock().unwrap()[0].to_ascii_lowercase();
    assert!(!head.contains("x-hookgate") && !head.contains(&key) && head.contains("x-kept: 1"), "{head}");

    // Without a route a stranger does not learn which there are.
    let none = proxy_in(
        folder.path(),
        "[auth]\nprotect_routes = true\n[[routes]]\nname = \"secret-name\"\nkind = \"passthrough\"\npath_prefix = \"/a\"\nupstream = \"http://127.0.0.1:1\"\n",
    );
    let mut client = Wire::to(&none).await;
    client.send("GET /b HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let answer = client.answer().await;
    assert!(answer.status() == 401 && !answer.text().contains("secret-name"), "{}", answer.text());

    keys(folder.path()).remove("team-a").unwrap();
    assert_eq!(status(format!("x-hookgate-key: {key}\r\n")).await.status(), 401);
    std::fs::write(folder.path().join("keys.toml"), "[[keys]]").unwrap();
    assert_eq!(status(format!("x-hookgate-key: {key}\r\n")).await.status(), 503);
}

/// A prompt that nobody may ask, and who asked what.
async fn policy() -> Policy {
    Policy::start(|asked: &hookgate::testing::Envelope| match asked.text("/detail/prompt") {
        "forbidden" => Ruling::deny("not this"),
        _ => Ruling::pass(),
    })
    .await
    .unwrap()
}

fn body(prompt: &str) -> String {
    format!(r#"{{"model":"m","max_tokens":9,"messages":[{{"role":"user","content":"{prompt}"}}]}}"#)
}

/// Two tenants that name the same session and send the same: each is asked about for itself, and neither sees the other's.
#[tokio::test]
async fn tenants_share_no_session() -> Result<(), BoxError> {
    let folder = tempfile::tempdir()?;
    let (red, blue) = (keys(folder.path()).add("red")?, keys(folder.path()).add("blue")?);
    let (policy, model) = (
        policy().await,
        Model::scripted([
            Message::new("msg_1").text("hi"),
            Message::new("msg_2").text("hi"),
            Message::new("msg_3").text("hi"),
        ])
        .await?,
    );
    std::fs::write(folder.path().join("own.json"), document([policy.hook("UserPromptSubmit")]))?;
    let text = format!(
        "[auth]\nmode = \"token\"\nprotect_routes = true\n[hooks]\ndocuments = [\"own.json\"]\nallowed_hosts = [\"127.0.0.1\"]\n\
         allow_insecure_loopback = true\n[[routes]]\nname = \"r\"\nkind = \"model\"\npath_prefix = \"/m\"\nupstream = \"{}\"\n",
        model.url()
    );
    let token = "correct-token-0123456789";
    let proxy = proxy_with(folder.path(), &text, &[("HOOKGATE_TOKEN", token)]);
    let client = Client::new(&format!("http://{}", proxy.addresses()[0]));
    for key in [&red, &blue, &red] {
        let headers = [("x-hookgate-key", key.as_str()), ("x-hookgate-session", "same")];
        let mut answer = client.post("/m/v1/messages", &headers, body("hello")).await?;
        assert_eq!(answer.status, 200);
        while answer.chunk().await?.is_some() {}
    }
    let refused = client.post("/m/v1/messages", &[("x-hookgate-session", "same")], body("hello")).await?;
    assert_eq!(refused.status, 401);
    assert_eq!(policy.asked().len(), 2, "the third request is one of a known session");

    let bearer = format!("Bearer {token}");
    let list = async |tenant: &str| -> Result<serde_json::Value, BoxError> {
        let path = format!("/hookgate/v1/sessions/same/hooks{tenant}");
        let mut answer =
            client.send(http::Method::GET, &path, &[("authorization", &bearer)], bytes::Bytes::new()).await?;
        while answer.chunk().await?.is_some() {}
        Ok(serde_json::from_slice(answer.so_far())?)
    };
    assert_eq!(list("").await?["tenants"], serde_json::json!(["blue", "red"]));
    for tenant in ["red", "blue"] {
        let records = list(&format!("?tenant={tenant}")).await?;
        assert_eq!(records["items"].as_array().unwrap().len(), 1, "{records}");
        assert_eq!(records["items"][0]["tenant"], tenant);
        for secret in [red.as_str(), blue.as_str(), token] {
            assert!(!records.to_string().contains(secret));
        }
    }
    for asked in policy.asked() {
        let told = format!("{asked:?}");
        assert!(![red.as_str(), blue.as_str(), token].iter().any(|secret| told.contains(secret)), "{told}");
    }
    for request in model.requests() {
        assert!(!format!("{request:?}").contains("hgk_"), "{request:?}");
    }
    Ok(())
}

/// The layer is told by the service in front of it.
#[tokio::test]
async fn a_service_names_the_tenant_for_the_layer() -> Result<(), BoxError> {
    let policy = policy().await;
    let hooks = HookSet::builder()
        .allowed_hosts(["127.0.0.1"])
        .allow_insecure_loopback(true)
        .document("hooks.json", &document([policy.hook("UserPromptSubmit")]))
        .build()?;
    let gate = Hookgate::builder().hooks(hooks).transport(Arc::new(HyperTransport::new())).build();
    let upstream = service_fn(|_: Request<Body>| async {
        Ok::<_, BoxError>(Response::new(Body::from(r#"{"type":"message","content":[]}"#)))
    });
    let service = HookLayer::new(gate.clone(), Route::model("r")).layer(upstream);
    for tenant in [Some("red"), None] {
        let mut request = Request::post("/v1/messages")
            .header("x-hookgate-session", "s")
            .header("content-type", "application/json")
            .body(Body::from(body("forbidden")))?;
        if let Some(tenant) = tenant {
            request.extensions_mut().insert(Tenant::new(tenant));
        }
        service.clone().oneshot(request).await?.into_body().collect().await?;
    }
    let mut tenants: Vec<String> = gate.audit().sessions_named("s").iter().map(|key| key.tenant.to_string()).collect();
    tenants.sort();
    assert_eq!(tenants, ["default", "red"]);
    assert_eq!(policy.asked().len(), 2);
    Ok(())
}
