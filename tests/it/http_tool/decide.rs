//! What a decision does to a call.

use std::sync::{Arc, Mutex};

use hookgate::dispatch::HyperTransport;
use hookgate::hooks::HookSet;
use hookgate::testing::{Policy, Ruling, document};
use hookgate::{Body, HookLayer, Hookgate, HttpTool, HttpTools, Route};
use http::{Method, Request, Response};
use serde_json::json;
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::stage::Plan;
use crate::suite::{Host, Outcome};

const REFUND: &str = "/v1/charges/ch%5f1/refund?dry=1&tag=a&tag=b%20c";
const BODY: &str = "{ \"amount\": 50,\n  \"why\": \"\\u00e9\" }";

pub(super) async fn a_call_is_judged_by_path_query_and_body(host: Host) -> Outcome {
    let stage = Plan::on(host).gate(|_| Ruling::pass()).start().await?;
    let answer = stage.call("POST", REFUND, &[("x-hookgate-session", "s"), ("x-own", "1")], BODY).await?;
    assert_eq!((answer.status, &*answer.body), (200, &b"{\"done\": true}"[..]));

    let asked = &stage.policy.asked_of("PreToolUse")[0];
    assert_eq!((asked.tool(), asked.text("/plane"), asked.text("/route")), ("refund", "tool", "billing"));
    assert_eq!(asked.text("/sessionId"), "s");
    let input = format!(r#"{{"path":{{"charge":"ch_1"}},"query":{{"dry":"1","tag":["a","b c"]}},"body":{BODY}}}"#);
    assert!(String::from_utf8_lossy(&asked.raw).contains(&input), "as it was written: {:?}", asked.raw);

    let request = stage.request(0)?;
    assert_eq!((request.uri.to_string(), &*request.body), (REFUND.to_owned(), BODY.as_bytes()));
    assert_eq!((request.header("x-own"), request.header("x-hookgate-session")), ("1", ""));

    let answer = stage.call("GET", "/v1/charges/ch_1", &[], "").await?;
    assert_eq!(answer.status, 200);
    assert!(!stage.request(1)?.headers.contains_key("content-length"), "a request without a body stays one");
    let asked = stage.policy.asked_of("PreToolUse");
    assert_eq!(asked[1].detail()["input"], json!({"path": {"charge": "ch_1"}, "query": {}}));
    Ok(())
}

pub(super) async fn a_denied_call_is_not_forwarded(host: Host) -> Outcome {
    let stage = Plan::on(host).gate(|_| Ruling::deny("no refunds on Sundays")).start().await?;
    let answer = stage.call("POST", REFUND, &[], BODY).await?;
    assert_eq!((answer.status, answer.detail()), (403, "no refunds on Sundays".to_owned()));
    assert!(stage.server.requests().is_empty());
    Ok(())
}

pub(super) async fn nothing_but_what_changed_is_written_anew(host: Host) -> Outcome {
    let path = json!({"charge": "ch_1"});
    let query = json!({"dry": "1", "tag": ["a", "b c"]});
    let body = json!({"why": "é", "amount": 50});
    let written = |path: &str, query: &str| format!("/v1/charges/{path}/refund?{query}");
    let same = "dry=1&tag=a&tag=b%20c";
    for (replacement, uri, sent) in [
        (json!({"path": path, "query": query, "body": body}), REFUND.to_owned(), BODY),
        (json!({"path": {"charge": "ä b"}, "query": query, "body": body}), written("%C3%A4%20b", same), BODY),
        (json!({"path": path, "query": {"dry": "a&b"}, "body": body}), written("ch%5f1", "dry=a%26b"), BODY),
        (json!({"path": path, "query": {}, "body": body}), "/v1/charges/ch%5f1/refund".to_owned(), BODY),
        (json!({"path": path, "query": query, "body": {"amount": 7}}), REFUND.to_owned(), "{\"amount\":7}"),
        (json!({"path": path, "query": query}), REFUND.to_owned(), ""),
    ] {
        let ruling = Ruling::modify(replacement.clone());
        let stage = Plan::on(host).gate(move |_| ruling.clone()).start().await?;
        let headers = [("digest", "sha-256=x"), ("content-md5", "x")];
        let answer = stage.call("POST", REFUND, &headers, BODY).await?;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let request = stage.request(0)?;
        let got = String::from_utf8_lossy(&request.body).into_owned();
        assert_eq!((request.uri.to_string(), &*got), (uri, sent), "{replacement}");
        assert_eq!(request.header("content-length"), sent.len().to_string());
        assert_eq!(request.headers.contains_key("digest"), sent == BODY, "no digest of another body: {replacement}");
        assert_eq!(request.headers.contains_key("content-type"), !sent.is_empty());
    }
    Ok(())
}

pub(super) async fn a_replaced_parameter_stays_in_its_segment(host: Host) -> Outcome {
    for charge in ["..", ".", "", "a/b", "a\\b", "%2e%2e", "a%2Fb", "a\nb", "search"] {
        let replacement = json!({"path": {"charge": charge}, "query": {}});
        let stage = Plan::on(host).gate(move |_| Ruling::modify(replacement.clone())).start().await?;
        let answer = stage.call("GET", "/v1/charges/ch_1", &[], "").await?;
        assert_eq!(answer.status, 403, "{charge:?}");
        assert!(answer.detail().contains("replacement"), "{}", answer.detail());
        assert!(stage.server.requests().is_empty());
        let audit = stage.gateway.audit().await?;
        assert!(audit.iter().any(|record| record["outcome"] == "deny" && record["handlerId"].is_null()), "{audit:?}");
    }
    // Elsewhere it is no other tool's path.
    let replacement = json!({"path": {"charge": "search"}, "query": {}});
    let stage = Plan::on(host).gate(move |_| Ruling::modify(replacement.clone())).start().await?;
    assert_eq!(stage.call("DELETE", "/v1/charges/ch_1", &[], "").await?.status, 200);
    assert_eq!(stage.request(0)?.uri, "/v1/charges/search");
    Ok(())
}

pub(super) async fn a_replacement_fits_the_schema(host: Host) -> Outcome {
    for (amount, status) in [(100, 200), (101, 403)] {
        let replacement = json!({"path": {"charge": "ch_1"}, "query": {}, "body": {"amount": amount}});
        let stage = Plan::on(host).gate(move |_| Ruling::modify(replacement.clone())).start().await?;
        let answer = stage.call("POST", "/v1/charges/ch_1/refund", &[], "{\"amount\":1}").await?;
        assert_eq!((answer.status, stage.server.requests().len()), (status, usize::from(status == 200)));
        assert!(status == 200 || answer.detail().contains("/body/amount"), "{:?}", answer.body);
    }
    Ok(())
}

pub(super) async fn bodies_that_cannot_be_told_are_undecidable(host: Host) -> Outcome {
    let unreadable: [(&str, &[u8]); 6] = [
        ("application/x-www-form-urlencoded", b"amount=1"),
        ("multipart/form-data; boundary=x", b"--x--"),
        ("application/octet-stream", b"\x00\xff"),
        ("application/json", b"{\"amount\":"),
        ("application/json", b"{\"amount\":1,\"am\\u006funt\":2}"),
        ("text/plain", b"\xff"),
    ];
    let closed = Plan::on(host).gate(|_| Ruling::pass()).start().await?;
    let open = Plan::on(host).hook(|policy| policy.hook("PreToolUse").open()).start().await?;
    for (media, body) in unreadable {
        let answer = closed.call("POST", "/v1/notes", &[("content-type", media)], body).await?;
        assert_eq!(answer.status, 403, "{media}");
        assert!(answer.detail().contains("cannot be judged"), "{}", answer.detail());
        let answer = open.call("POST", "/v1/notes", &[("content-type", media)], body).await?;
        assert_eq!(answer.status, 200, "{media}");
        assert_eq!(open.server.requests().last().map(|request| request.body.to_vec()).as_deref(), Some(body));
    }
    assert!(closed.server.requests().is_empty() && closed.policy.asked().is_empty() && open.policy.asked().is_empty());
    assert_eq!(closed.gateway.audit().await?[0]["outcome"], "malformed_input");

    // A text is told as one, and a compressed body as what it is.
    let answer = closed.call("POST", "/v1/notes", &[("content-type", "text/plain")], "hi \"there\"").await?;
    assert_eq!(answer.status, 200);
    assert_eq!(closed.policy.asked()[0].detail()["input"]["body"], "hi \"there\"");
    let gzip = [31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 171, 86, 74, 84, 178, 50, 172, 5, 0, 175, 172, 27, 86, 7, 0, 0, 0];
    let answer = closed.call("POST", "/v1/notes", &[("content-encoding", "gzip")], gzip.to_vec()).await?;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(closed.policy.asked()[1].detail()["input"]["body"], json!({"a": 1}));
    assert_eq!(closed.request(1)?.body, gzip.to_vec());
    Ok(())
}

pub(super) async fn a_tool_that_is_denied_is_nobodys_to_allow(host: Host) -> Outcome {
    for gated in [false, true] {
        let plan = Plan::on(host).denied("refund");
        let stage = if gated { plan.gate(|_| Ruling::pass()) } else { plan }.start().await?;
        for headers in [&[][..], &[("content-type", "application/x-www-form-urlencoded")]] {
            let answer = stage.call("POST", REFUND, headers, BODY).await?;
            assert_eq!(answer.status, 403);
            assert!(answer.detail().contains("refund is denied by the configuration"), "{}", answer.detail());
        }
        assert!(stage.policy.asked().is_empty() && stage.server.requests().is_empty());
        assert_eq!(stage.call("GET", "/v1/charges/ch_1", &[], "").await?.status, 200);
        let denied = stage.gateway.audit().await?.into_iter().filter(|record| record["outcome"] == "deny");
        assert!(denied.map(|record| record["toolName"].clone()).eq(["refund", "refund"]));
    }
    Ok(())
}

pub(super) async fn context_has_no_place(host: Host) -> Outcome {
    let stage = Plan::on(host).gate(|_| Ruling::pass().context("ask a manager first")).start().await?;
    let answer = stage.call("GET", "/v1/charges/ch_1", &[], "").await?;
    assert_eq!(answer.status, 403);
    assert!(answer.detail().contains("additionalContext"), "{}", answer.detail());
    assert!(stage.server.requests().is_empty());
    Ok(())
}

pub(super) async fn a_head_request_is_what_its_get_is(host: Host) -> Outcome {
    let stage = Plan::on(host)
        .gate(|asked| match asked.text("/detail/input/path/charge") {
            "secret" => Ruling::deny("not this one"),
            _ => Ruling::pass(),
        })
        .start()
        .await?;
    assert_eq!(stage.call("HEAD", "/v1/charges/secret", &[], "").await?.status, 403);
    let answer = stage.call("HEAD", "/v1/charges/ch_1", &[], "").await?;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(stage.server.requests().len(), 1);
    assert_eq!(stage.request(0)?.method, "HEAD");
    assert!(stage.policy.asked().iter().all(|asked| asked.tool() == "show"));
    Ok(())
}

/// A layer leaves the route's prefix in the address; what is written anew stands behind it.
#[tokio::test]
async fn a_prefix_that_the_layer_leaves_stays() -> Outcome {
    let replacement = json!({"path": {"a": "x y"}, "query": {"q": "1"}});
    let policy = Policy::start(move |_| Ruling::modify(replacement.clone())).await?;
    let hooks = HookSet::builder()
        .document("d", &document([policy.hook("PreToolUse")]))
        .allowed_hosts(["127.0.0.1"])
        .allow_insecure_loopback(true);
    let core = Hookgate::builder().hooks(hooks.build()?).transport(Arc::new(HyperTransport::new())).build();
    let route = Route::http_tool("r", HttpTools::new([HttpTool::new("t", Method::GET, "/v1/{a}")?])?);
    let seen = Arc::new(Mutex::new(String::new()));
    let sees = seen.clone();
    let server = service_fn(move |request: Request<Body>| {
        *sees.lock().unwrap() = request.uri().to_string();
        async { Ok::<_, std::convert::Infallible>(Response::new(Body::empty())) }
    });
    let layer = HookLayer::new(core, route).path_prefix("/v1").layer(server);
    let request = Request::get("http://tools.example/v1/v1/old?x").body(Body::empty())?;
    assert_eq!(layer.oneshot(request).await?.status(), 200);
    assert_eq!(*seen.lock().unwrap(), "http://tools.example/v1/v1/x%20y?q=1");
    Ok(())
}
