//! Which paths are inspected, which pass, which are refused; and what is only for hookgate.

use hookgate::testing::{Answer, Ruling};
use http::Method;
use serde_json::json;

use super::stage::{Outcome, Setting, says, text};

const BATCHES: &str = "/v1/messages/batches";

fn ok(at: Setting) -> super::stage::Plan {
    at.answering(|_, _| Answer::json(200, r#"{"ok":  true}"#))
}

pub(super) async fn a_surface_that_cannot_be_inspected_is_refused(at: Setting) -> Outcome {
    let stage = ok(at).hooks(["PreToolUse"]).start().await?;
    for path in [BATCHES, "/v1/complete", "/v1/messages/", "/v1//messages", "/v1/sessions"] {
        let refused = stage.client().post(path, &[], "{}").await?;
        assert!(refused.status.is_client_error(), "{path}: {}", refused.status);
        let body = text(&refused.bytes().await?);
        assert!(body.contains("allow_uninspected") || refused_for_its_path(&body), "{path}: {body}");
    }
    assert!(stage.model.requests().is_empty());
    Ok(())
}

/// A host may refuse a path that can be read in two ways before the core sees it.
fn refused_for_its_path(body: &str) -> bool {
    body.contains("path")
}

pub(super) async fn a_surface_that_is_allowed_passes(at: Setting) -> Outcome {
    let stage = ok(at).hooks(["PreToolUse"]).allow_uninspected(BATCHES).start().await?;
    let answer = stage.client().post(BATCHES, &[], r#"{"requests" : []}"#).await?;
    assert_eq!(answer.bytes().await?, r#"{"ok":  true}"#);
    assert_eq!(stage.body(0), r#"{"requests" : []}"#);
    let refused = stage.client().post("/v1/complete", &[], "{}").await?;
    assert!(refused.status.is_client_error());
    Ok(())
}

pub(super) async fn every_surface_passes_where_nobody_judges(at: Setting) -> Outcome {
    let stage = ok(at).hooks(["PostToolUse", "StopFailure"]).start().await?;
    for path in [BATCHES, "/v1/complete"] {
        assert_eq!(stage.client().post(path, &[], "{}").await?.status, 200, "{path}");
    }
    Ok(())
}

pub(super) async fn helpers_pass(at: Setting) -> Outcome {
    let stage = ok(at).hooks(["UserPromptSubmit", "PreToolUse"]).start().await?;
    assert_eq!(stage.client().get("/v1/models?limit=2").await?.status, 200);
    assert_eq!(stage.client().send(Method::HEAD, "/", &[], Default::default()).await?.status, 200);
    let paths: Vec<String> = stage.model.requests().iter().map(|request| request.uri.to_string()).collect();
    assert_eq!(paths, ["/v1/models?limit=2", "/"]);
    assert!(stage.policy.asked().is_empty());
    Ok(())
}

/// Every end-to-end header reaches the other side; hookgate's own do not.
pub(super) async fn headers_pass_and_our_own_stay(at: Setting) -> Outcome {
    let answer = Answer::from(says("msg_1", "Hello.")).header("x-answer", "kept").header("set-cookie", "a=b");
    let stage = at.model([answer]).hooks(["UserPromptSubmit"]).start().await?;
    let agent =
        stage.agent().header("anthropic-beta", "a-1,b-2").header("x-future", "Kept As It Is").header("cookie", "c=d");
    let mut agent = agent.header("x-hookgate-future", "1").header("x-hookgate-dispatch", "forged.9999999999999.00");
    let reply = agent.request_for("hi").await?;
    assert_eq!(reply.headers["x-answer"], "kept");
    assert_eq!(reply.headers["set-cookie"], "a=b");
    let request = &stage.model.requests()[0];
    assert_eq!(request.header("anthropic-beta"), "a-1,b-2");
    assert_eq!(request.header("x-future"), "Kept As It Is");
    assert_eq!(request.header("cookie"), "c=d");
    assert!(request.headers.keys().all(|name| !name.as_str().starts_with("x-hookgate-")), "{:?}", request.headers);
    assert_eq!(stage.policy.asked().len(), 1, "a forged mark hides nothing");
    // What the policy gets holds nothing of the agent's credentials.
    let told = &stage.policy.asked()[0];
    assert!(told.headers.get("cookie").is_none() && told.headers.get("anthropic-beta").is_none());
    assert!(told.headers.contains_key("idempotency-key"));
    Ok(())
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A trace goes on to the model, in every round, and to the handlers; what comes beside it is not theirs.
pub(super) async fn a_trace_goes_on_to_model_and_handlers(at: Setting) -> Outcome {
    let script =
        [hookgate::testing::Message::new("msg_1").tool("toolu_1", "a", "{}"), says("msg_2", "Then without it.")];
    let stage = at
        .model(script)
        .hooks(["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"])
        .policy(|asked| if asked.event() == "PreToolUse" { Ruling::deny("no") } else { Ruling::pass() })
        .start()
        .await?;
    let agent =
        stage.agent().header("traceparent", TRACE).header("tracestate", "vendor=1").header("baggage", "user=ann");
    assert_eq!(agent.header("x-request-id", "r-1").prompt("hi").await?[0].text(), "Then without it.");
    assert_eq!(stage.model.requests().len(), 2);
    for request in stage.model.requests() {
        let kept = ["traceparent", "tracestate", "baggage"].map(|name| request.header(name).to_owned());
        assert_eq!(kept, [TRACE, "vendor=1", "user=ann"]);
    }
    let asked = stage.policy.asked();
    assert_eq!(asked.len(), 4);
    for asked in asked {
        assert_eq!(asked.headers["traceparent"], TRACE, "{}", asked.event());
        for other in ["tracestate", "baggage", "x-request-id"] {
            assert!(!asked.headers.contains_key(other), "{} got {other}", asked.event());
        }
    }
    Ok(())
}

/// What is no trace is the model's to judge, and is shown to nobody else.
pub(super) async fn what_is_no_trace_is_not_told(at: Setting) -> Outcome {
    let stage = at.answering(|_, _| says("msg_1", "Hello.").into()).hooks(["UserPromptSubmit"]).start().await?;
    for odd in ["sk-secret", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", &format!("{TRACE}-sk-secret")] {
        stage.agent().header("traceparent", odd).prompt(odd).await?;
        assert_eq!(
            stage.model.requests().last().map(|request| request.header("traceparent").to_owned()),
            Some(odd.into())
        );
    }
    assert_eq!(stage.policy.asked().len(), 3);
    assert!(stage.policy.asked().iter().all(|asked| !asked.headers.contains_key("traceparent")));
    Ok(())
}

/// A handler that calls through hookgate copies its mark: nothing is asked about that, and the mark goes no further.
pub(super) async fn a_handlers_own_traffic_fires_nothing(at: Setting) -> Outcome {
    let stage = at
        .answering(|_, _| says("msg_1", "Hello.").into())
        .hooks(["SessionStart", "UserPromptSubmit", "Stop"])
        .policy(|_| Ruling::pass())
        .start()
        .await?;
    stage.agent().prompt("hi").await?;
    let asked = stage.policy.asked();
    let mark = asked[1].headers["x-hookgate-dispatch"].to_str()?.to_owned();
    let body = json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "is this fine?"}]});
    let answer = stage.client().post("/v1/messages", &[("x-hookgate-dispatch", &mark)], body.to_string()).await?;
    assert_eq!(answer.status, 200);
    assert_eq!(stage.policy.asked().len(), asked.len());
    let requests = stage.model.requests();
    assert!(!requests[1].headers.contains_key("x-hookgate-dispatch"));
    Ok(())
}
