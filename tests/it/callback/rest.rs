//! Issuing, listing and revoking over the control surface.

use super::stage::{BASE, Host, SESSION, Stage};

fn hooks(method: &str) -> String {
    format!("{method} /hookgate/v1/sessions/{SESSION}/tmp-hooks")
}

pub(crate) async fn a_callback_is_issued_listed_and_revoked(host: Host) {
    let stage = Stage::plain(host).await;
    let issued = stage.control(&hooks("POST"), r#"{"purpose": "the build", "ttl_seconds": 600}"#, 201).await;
    let keys: Vec<&str> = issued.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["url", "token", "session_id", "expires_at", "expires_in_seconds"]);
    let token = issued["token"].as_str().unwrap();
    assert_eq!(issued["url"], format!("https://agents.example.com/api/tmp-hooks/{token}"));
    assert_eq!((&issued["session_id"], &issued["expires_in_seconds"]), (&SESSION.into(), &600.into()));

    let list = stage.control(&hooks("GET"), "", 200).await;
    assert!(!list.to_string().contains(token), "{list}");
    let item = &list["items"][0];
    let keys: Vec<&str> = item.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["hash", "purpose", "state", "createdAt", "expiresAt", "deliveredAt"]);
    assert_eq!((&item["purpose"], &item["state"]), (&"the build".into(), &"open".into()));
    assert_eq!((&item["expiresAt"], &item["deliveredAt"]), (&issued["expires_at"], &serde_json::Value::Null));
    let hash = item["hash"].as_str().unwrap().to_owned();
    assert!(hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");

    let delete = format!("{}/{hash}", hooks("DELETE"));
    stage.control(&delete, "", 204).await;
    stage.control(&delete, "", 204).await;
    assert_eq!(stage.control(&hooks("GET"), "", 200).await["items"][0]["state"], "revoked");
    stage.control(&format!("{}/00000000", hooks("DELETE")), "", 404).await;

    let delivered = stage.issue().await;
    stage.post(&delivered, "").await;
    let item = stage.control(&hooks("GET"), "", 200).await["items"][1].clone();
    assert!(item["state"] == "delivered" && item["deliveredAt"].is_string(), "{item}");
    stage.control(&format!("{}/{}", hooks("DELETE"), item["hash"].as_str().unwrap()), "", 409).await;
}

pub(crate) async fn lifetimes_are_clamped(host: Host) {
    let text = format!("{BASE}ttl_seconds = 7\nmin_ttl_seconds = 10\nmax_ttl_seconds = 20\n");
    let stage = Stage::with(host, &text).await;
    for (body, granted) in [
        ("", 7),
        ("{}", 7),
        (r#"{"ttl_seconds": null}"#, 7),
        (r#"{"ttl_seconds": 15}"#, 15),
        (r#"{"ttl_seconds": 9}"#, 10),
        (r#"{"ttl_seconds": -9223372036854775808}"#, 10),
        (r#"{"ttl_seconds": 9223372036854775807}"#, 20),
    ] {
        assert_eq!(stage.control(&hooks("POST"), body, 201).await["expires_in_seconds"], granted, "{body}");
    }
}

pub(crate) async fn what_is_asked_wrongly_is_explained(host: Host) {
    let stage = Stage::plain(host).await;
    let long = format!(r#"{{"purpose": "{}"}}"#, "x".repeat(1025));
    for body in
        ["[]", "{", r#"{"ttl": 1}"#, r#"{"ttl_seconds": 1.5}"#, r#"{"ttl_seconds": "60"}"#, r#"{"purpose": 1}"#, &long]
    {
        let problem = stage.control(&hooks("POST"), body, 400).await;
        assert!(problem["detail"].as_str().unwrap().contains("purpose"), "{problem}");
    }
    for query in ["limit=0", "limit=501", "before=x", "after=a&after=b"] {
        stage.control(&format!("{}?{query}", hooks("GET")), "", 400).await;
    }
    for query in ["wait=301", "wait=-1", "take=yes", "after=x", "limit=0", "x=y"] {
        stage.control(&format!("GET /hookgate/v1/sessions/{SESSION}/inbox?{query}"), "", 400).await;
    }
    stage.control("POST /hookgate/v1/sessions/%ff/tmp-hooks", "", 400).await;
    stage.control(&hooks("PUT"), "", 405).await;
    assert_eq!(stage.control(&hooks("GET"), "", 200).await["items"], serde_json::json!([]));
}

pub(crate) async fn without_an_origin_nothing_is_issued(host: Host) {
    for text in [
        "",
        "[server]\ntrusted_hosts = [\"127.0.0.1\", \"localhost\", \"a.example:8443\"]\n",
        "[server]\ntrusted_hosts = [\"a.example\", \"b.example\"]\n",
    ] {
        let stage = Stage::with(host, text).await;
        let problem = stage.control(&hooks("POST"), "", 500).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("[tmp_hooks] base_url") && detail.contains("[server] trusted_hosts"), "{detail}");
    }
}

pub(crate) async fn the_origin_is_derived_and_never_taken_from_a_request(host: Host) {
    let text = "[server]\ntrusted_hosts = [\"localhost\", \"Agents.example.com\"]\n\
                [tmp_hooks]\nbase_url_scheme = \"http\"\npath_prefix = \"/done\"\n";
    let stage = Stage::with(host, text).await;
    let request = format!(
        "{} HTTP/1.1\r\nx-forwarded-host: evil.example\r\nx-forwarded-proto: https\r\nforwarded: host=evil.example",
        hooks("POST")
    );
    let issued: serde_json::Value = serde_json::from_slice(&stage.send(&request, "").await.body).unwrap();
    let url = issued["url"].as_str().unwrap();
    assert!(url.starts_with("http://agents.example.com/done/"), "{url}");
}

pub(crate) async fn a_list_has_pages(host: Host) {
    let stage = Stage::plain(host).await;
    for number in 0..3 {
        stage.control(&hooks("POST"), &format!(r#"{{"purpose": "{number}"}}"#), 201).await;
    }
    let purposes = |page: &serde_json::Value| {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["purpose"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = stage.control(&format!("{}?limit=2", hooks("GET")), "", 200).await;
    assert_eq!(purposes(&first), ["0", "1"]);
    let after = first["next"].as_str().unwrap();
    let second = stage.control(&format!("{}?limit=2&after={after}", hooks("GET")), "", 200).await;
    assert_eq!((purposes(&second), &second["next"]), (vec!["2".to_owned()], &serde_json::Value::Null));
    assert!(purposes(&stage.control(&format!("{}?tenant=other", hooks("GET")), "", 200).await).is_empty());
}
