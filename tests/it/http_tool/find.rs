//! Which requests are calls of which tool.

use hookgate::testing::Ruling;

use super::stage::{MAX_REQUEST, Plan};
use crate::suite::{Host, Outcome};

pub(super) async fn what_is_no_tools_call_is_refused(host: Host) -> Outcome {
    // The table is the route's, whether anybody judges or not.
    for stage in [Plan::on(host).start().await?, Plan::on(host).gate(|_| Ruling::pass()).start().await?] {
        let answer = stage.call("GET", "/v1/balance", &[], "").await?;
        assert_eq!(answer.status, 404);
        assert!(answer.detail().contains("allow_uninspected = [\"/v1/balance\"]"), "{}", answer.detail());
        let answer = stage.call("PUT", "/v1/charges/ch_1", &[], "").await?;
        assert_eq!((answer.status, &answer.headers["allow"]), (405, &"DELETE, GET".parse()?));
        for path in ["/", "/v1/charges", "/v1/charges/a/b", "/V1/charges/ch_1"] {
            assert_eq!(stage.call("GET", path, &[], "").await?.status, 404, "{path}");
        }
        assert!(stage.server.requests().is_empty());
        assert_eq!(stage.call("GET", "/v1/charges/ch_1", &[], "").await?.status, 200);
    }
    Ok(())
}

pub(super) async fn what_is_allowed_passes(host: Host) -> Outcome {
    let stage = Plan::on(host).gate(|_| Ruling::deny("never")).allow_uninspected("/v1").start().await?;
    for (method, path) in [("GET", "/v1/balance"), ("PUT", "/v1/charges/ch_1"), ("POST", "/v1")] {
        assert_eq!(stage.call(method, path, &[], "").await?.status, 200, "{path}");
    }
    // What is a tool's is asked about all the same, in whatever way it is written.
    for path in ["/v1/charges/ch_1", "/v1/charges/ch_1/", "/v1/%63harges/ch_1"] {
        let answer = stage.call("GET", path, &[], "").await?;
        assert_eq!((answer.status, answer.detail()), (403, "never".to_owned()), "{path}");
    }
    assert_eq!(stage.call("GET", "/v1/balance%20sheet", &[], "").await?.status, 404, "no plain path below it");
    assert_eq!(stage.server.requests().len(), 3);
    Ok(())
}

pub(super) async fn a_path_of_two_readings_is_refused(host: Host) -> Outcome {
    let stage = Plan::on(host).allow_uninspected("/v1").start().await?;
    for path in [
        "/v1//charges/ch_1",
        "/v1/charges/ch_1//refund",
        "/v1/charges/%2e%2e/refund",
        "/v1/charges/a%2Frefund",
        "/v1/charges/a%5crefund",
        "/v1/charges/a%252Frefund",
        "/v1/charges/a;b",
        "/v1/charges/%00",
    ] {
        let answer = stage.call("GET", path, &[], "").await?;
        assert_eq!(answer.status, 400, "{path}");
        assert!(answer.detail().contains("path"), "{path}");
    }
    for header in ["x-http-method-override", "x-method-override", "x-http-method", "x-original-url", "x-rewrite-url"] {
        let answer = stage.call("GET", "/v1/charges/ch_1", &[(header, "DELETE")], "").await?;
        assert_eq!(answer.status, 400, "{header}");
        assert!(answer.detail().contains(header), "{}", answer.detail());
    }
    assert!(stage.server.requests().is_empty());
    Ok(())
}

pub(super) async fn the_most_specific_tool_is_asked_about(host: Host) -> Outcome {
    let stage = Plan::on(host).gate(|_| Ruling::pass()).start().await?;
    for path in ["/v1/charges/search", "/v1/charges/%73earch", "/v1/charges/searches"] {
        assert_eq!(stage.call("GET", path, &[], "").await?.status, 200, "{path}");
    }
    let asked = stage.policy.asked();
    let tools: Vec<_> = asked.iter().map(|asked| asked.tool()).collect();
    assert_eq!(tools, ["search", "search", "show"]);
    Ok(())
}

pub(super) async fn a_body_over_the_limit_is_refused(host: Host) -> Outcome {
    let stage = Plan::on(host).gate(|_| Ruling::pass()).start().await?;
    let answer = stage.call("POST", "/v1/notes", &[], vec![b' '; MAX_REQUEST + 1]).await?;
    assert_eq!(answer.status, 413);
    assert!(answer.detail().contains("max_request_bytes"), "{}", answer.detail());
    assert!(stage.server.requests().is_empty());
    Ok(())
}
