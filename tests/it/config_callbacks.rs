//! `[tmp_hooks]`, `[delivery]` and `trusted_hosts`.

use std::sync::Arc;
use std::time::Duration;

use hookgate::callback::{Settings, TmpHooks, TokenKey};
use hookgate::config::Config;
use hookgate::id::SessionKey;
use hookgate::store::MemoryStore;

use crate::config_support::{Folder, accepted, faults};

/// The start of the URLs that are issued, or why there are none.
async fn origin(config: &Config) -> Result<String, String> {
    let settings = config.tmp_hooks.settings.clone();
    let hooks = TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None);
    let session = SessionKey { tenant: "default".into(), session: "s".into() };
    let issued = hooks.issue(&session, None, None).await.map_err(|error| error.to_string())?;
    Ok(issued.url.strip_suffix(&issued.token).unwrap().to_owned())
}

fn route(keys: &str) -> String {
    format!("[[routes]]\nname = \"a\"\nupstream = \"https://a.example\"\n{keys}\n")
}

#[test]
fn the_defaults_are_those_that_are_documented() {
    let config = accepted("");
    let Settings {
        ttl,
        min_ttl,
        max_ttl,
        max_body_bytes,
        sweep_interval,
        deliver_timeout,
        body_read_timeout,
        replay_grace,
        tombstone,
        controller,
        ..
    } = config.tmp_hooks.settings;
    let seconds = Duration::from_secs;
    assert_eq!([ttl, min_ttl, max_ttl], [seconds(1800), seconds(30), seconds(86_400)]);
    assert_eq!([sweep_interval, deliver_timeout, body_read_timeout], [seconds(60), seconds(15), seconds(30)]);
    assert_eq!([replay_grace, tombstone], [seconds(0), seconds(86_400)]);
    assert_eq!((max_body_bytes, controller), (262_144, None));
    assert!(config.tmp_hooks.allow_unauthenticated);
    assert_eq!(config.delivery.hold_stop, Duration::ZERO);
    assert!(config.routes.iter().all(|route| !route.route.tmp_hooks));
}

#[tokio::test]
async fn every_key_reaches_its_place() {
    let folder = Folder::with(
        "[tmp_hooks]\nbase_url = \"https://A.example/gate//\"\npath_prefix = \"/done/\"\nttl_seconds = 2\n\
         min_ttl_seconds = 1\nmax_ttl_seconds = 3\nmax_body_bytes = 4\nsweep_interval_ms = 0\ndeliver_timeout_ms = 6\n\
         body_read_timeout_ms = 7\nreplay_grace_seconds = 8\ntombstone_seconds = 9\nallow_unauthenticated = false\n\
         [delivery]\ncontroller_url = \"https://runtime.example/prompt\"\ncontroller_connection = \"runtime\"\n\
         hold_stop_seconds = 10\n[connections.runtime]\nbearer_env = \"RUNTIME\"\n",
    );
    let config = folder.load(&[("RUNTIME", "s3cret")]).unwrap();
    assert_eq!(origin(&config).await.unwrap(), "https://a.example/gate/done/");
    let settings = config.tmp_hooks.settings;
    let seconds = [settings.ttl, settings.min_ttl, settings.max_ttl, settings.replay_grace, settings.tombstone];
    assert_eq!(seconds.map(|duration| duration.as_secs()), [2, 1, 3, 8, 9]);
    let millis = [settings.sweep_interval, settings.deliver_timeout, settings.body_read_timeout];
    assert_eq!(millis.map(|duration| duration.as_millis()), [0, 6, 7]);
    assert_eq!(settings.max_body_bytes, 4);
    let shown = format!("{:?}", settings.controller.unwrap());
    assert!(shown.contains("runtime.example") && shown.contains("\"runtime\"") && !shown.contains("prompt"), "{shown}");
    assert!(!config.tmp_hooks.allow_unauthenticated);
    assert_eq!(config.delivery.hold_stop, Duration::from_secs(10));

    let routes = accepted(&route("kind = \"model\"\npath_prefix = \"/a\"\ntmp_hooks = true")).routes;
    assert!(routes[0].route.tmp_hooks);
}

#[tokio::test]
async fn the_origin_is_the_base_url_or_the_one_public_name() {
    let trusted = |hosts: &str, more: &str| accepted(&format!("[server]\ntrusted_hosts = {hosts}\n{more}"));
    let one = trusted("[\"10.0.0.1\", \"Agents.Example.com\", \"other.example:8443\"]", "");
    assert_eq!(origin(&one).await.unwrap(), "https://agents.example.com/api/tmp-hooks/");
    let plain = trusted("[\"a.example\"]", "[tmp_hooks]\nbase_url_scheme = \"http\"");
    assert_eq!(origin(&plain).await.unwrap(), "http://a.example/api/tmp-hooks/");
    let overridden =
        trusted("[\"a.example\"]", "[tmp_hooks]\nbase_url = \"https://b.example\"\nbase_url_scheme = \"http\"");
    assert_eq!(origin(&overridden).await.unwrap(), "https://b.example/api/tmp-hooks/");
    for config in [accepted(""), trusted("[\"localhost\", \"[::1]:80\"]", ""), trusted("[\"a.b\", \"c.d\"]", "")] {
        let error = origin(&config).await.unwrap_err();
        assert!(error.contains("[tmp_hooks] base_url") && error.contains("[server] trusted_hosts"), "{error}");
    }
}

#[test]
fn values_that_mean_nothing_are_refused_with_what_is_accepted() {
    for (text, expected) in [
        (
            "[tmp_hooks]\nbase_url = \"agents.example.com\"",
            "tmp_hooks.base_url: found \"agents.example.com\"; expected an absolute",
        ),
        ("[tmp_hooks]\nbase_url = \"ftp://a\"", "expected an absolute http or https URL"),
        ("[tmp_hooks]\nbase_url = \"https://a/?x\"", "expected an absolute http or https URL"),
        ("[tmp_hooks]\nbase_url_scheme = \"ftp\"", "expected \"https\" or \"http\""),
        ("[tmp_hooks]\npath_prefix = \"/\"", "expected a path below the root"),
        ("[tmp_hooks]\npath_prefix = \"\"", "expected a path below the root"),
        ("[tmp_hooks]\npath_prefix = \"/a/../b\"", "expected a path below the root"),
        ("[tmp_hooks]\nttl_seconds = 0", "expected an integer from 1"),
        ("[tmp_hooks]\nttl_seconds = \"30m\"", "expected an integer from 1"),
        ("[tmp_hooks]\nmin_ttl_seconds = 0", "expected an integer from 1"),
        ("[tmp_hooks]\nmax_ttl_seconds = -1", "expected an integer from 1"),
        ("[tmp_hooks]\nmax_body_bytes = 0", "expected an integer from 1"),
        ("[tmp_hooks]\nsweep_interval_ms = -1", "expected an integer from 0"),
        ("[tmp_hooks]\ndeliver_timeout_ms = 0", "expected an integer from 1"),
        ("[tmp_hooks]\nbody_read_timeout_ms = 0", "expected an integer from 1"),
        ("[tmp_hooks]\nreplay_grace_seconds = 1.5", "expected an integer from 0"),
        ("[tmp_hooks]\ntombstone_seconds = true", "expected an integer from 0"),
        ("[tmp_hooks]\nallow_unauthenticated = \"no\"", "expected true or false"),
        ("[tmp_hooks]\nttlSeconds = 1", "unknown key; did you mean \"ttl_seconds\"?"),
        ("[delivery]\ncontroller_url = \"http://a.example\"", "expected an https URL"),
        ("[delivery]\nhold_stop_seconds = 3601", "expected an integer from 0 to 3600"),
        ("[server]\ntrusted_hosts = [\"https://a.example\"]", "expected a host name or address"),
        ("[server]\ntrusted_hosts = \"a.example\"", "expected a list"),
    ] {
        let found = faults(text);
        assert!(
            found.len() == 1 && found[0].starts_with("hookgate.toml:2:") && found[0].contains(expected),
            "{text}: {found:?}"
        );
    }
    for text in
        ["[tmp_hooks]\nbase_url = \"https://u:hunter2@a\"", "[delivery]\ncontroller_url = \"https://u:hunter2@a\""]
    {
        assert!(!faults(text)[0].contains("hunter2"));
    }
}

#[test]
fn settings_fit_together() {
    let found = faults("[tmp_hooks]\nmin_ttl_seconds = 100\nmax_ttl_seconds = 99");
    assert!(found[0].contains("found 100, which is more than max_ttl_seconds (99)"), "{found:?}");
    let found = faults("[delivery]\ncontroller_connection = \"runtime\"");
    assert!(found[0].contains("has no effect without controller_url"), "{found:?}");
    let found = faults("[delivery]\ncontroller_url = \"https://a.example\"\ncontroller_connection = \"runtime\"");
    assert!(found[0].contains("there is no [connections.runtime]"), "{found:?}");
    let found = faults(&route("kind = \"passthrough\"\npath_prefix = \"/a\"\ntmp_hooks = true"));
    assert!(found[0].contains("tmp_hooks has no effect on a route of kind = \"passthrough\""), "{found:?}");
}

#[test]
fn callbacks_have_a_path_of_their_own() {
    for prefix in ["/api/tmp-hooks", "/api/tmp-hooks/x"] {
        let found = faults(&route(&format!("kind = \"passthrough\"\npath_prefix = \"{prefix}\"")));
        assert!(found.len() == 1 && found[0].contains("one-time callbacks come in there"), "{found:?}");
    }
    accepted(&route("kind = \"passthrough\"\npath_prefix = \"/api\""));
    for prefix in ["/hookgate/done", "/metrics", "/api/sessions/x"] {
        let text = format!("[tmp_hooks]\npath_prefix = \"{prefix}\"\n");
        let found = faults(&text);
        assert!(found.len() == 1 && found[0].contains("belongs to the control surface"), "{found:?}");
        accepted(&format!("[server]\ncontrol_listen = \"127.0.0.1:0\"\n{text}"));
    }
}
