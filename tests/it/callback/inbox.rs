//! Reading the inbox: at once, waiting, and as a stream.

use hookgate::testing::Client;
use serde_json::Value;

use super::stage::{Host, SESSION, Stage, session};

fn inbox(query: &str) -> String {
    format!("GET /hookgate/v1/sessions/{SESSION}/inbox{query}")
}

async fn deliver(stage: &Stage, text: &str) {
    assert_eq!(stage.post(&stage.issue().await, text).await.status(), 200);
}

/// The last line of each message, and its state.
fn read(page: &Value) -> Vec<(String, String)> {
    let text = |item: &Value, member: &str| item[member].as_str().unwrap().to_owned();
    let items = page["items"].as_array().unwrap().iter();
    items.map(|item| (text(item, "text").lines().last().unwrap().to_owned(), text(item, "state"))).collect()
}

fn pair(text: &str, state: &str) -> (String, String) {
    (text.to_owned(), state.to_owned())
}

pub(crate) async fn reading_changes_nothing_and_taking_consumes(host: Host) {
    let stage = Stage::plain(host).await;
    assert_eq!(stage.control(&inbox(""), "", 200).await, serde_json::json!({"items": [], "next": null}));
    for text in ["a", "b", "c"] {
        deliver(&stage, text).await;
    }
    let page = stage.control(&inbox(""), "", 200).await;
    assert_eq!(read(&page), [pair("a", "waiting"), pair("b", "waiting"), pair("c", "waiting")]);
    let keys: Vec<&str> = page["items"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["id", "receivedAt", "purpose", "contentType", "text", "state"]);

    let first = stage.control(&inbox("?limit=1"), "", 200).await;
    let after = first["next"].as_str().unwrap();
    assert_eq!(first["items"][0]["id"], after);
    assert_eq!(read(&stage.control(&inbox(&format!("?after={after}")), "", 200).await).len(), 2);

    let taken = stage.control(&inbox("?take=true&limit=2"), "", 200).await;
    assert_eq!(read(&taken), [pair("a", "taken"), pair("b", "taken")]);
    let injected = stage.hooks.take_for_injection(&session()).await;
    assert_eq!(injected.len(), 1, "what was taken is not injected");
    stage.hooks.withhold(&session(), &injected[0]).await;
    assert_eq!(read(&stage.control(&inbox("?take=true"), "", 200).await), []);
    let all = stage.control(&inbox(""), "", 200).await;
    assert_eq!(read(&all), [pair("a", "taken"), pair("b", "taken"), pair("c", "withheld")]);
    assert!(!stage.hooks.may_have_messages(&session()));
}

pub(crate) async fn an_empty_inbox_is_waited_for(host: Host) {
    let stage = Stage::plain(host).await;
    // It listens before it looks: nothing is lost, whether it waits already or not.
    let request = inbox("?wait=19");
    let (page, ()) = tokio::join!(stage.control(&request, "", 200), deliver(&stage, "done"));
    assert_eq!(read(&page), [pair("done", "waiting")]);
    let after = page["items"][0]["id"].as_str().unwrap();
    let page = stage.control(&inbox(&format!("?wait=1&after={after}")), "", 200).await;
    assert_eq!(read(&page), [], "it waits for what comes after");
}

pub(crate) async fn of_two_takers_one_gets_the_message(host: Host) {
    let stage = Stage::plain(host).await;
    let take = || async { stage.control(&inbox("?wait=1&take=true"), "", 200).await };
    let (one, two, ()) = tokio::join!(take(), take(), deliver(&stage, "done"));
    let mut got = [read(&one), read(&two)].concat();
    assert_eq!(got.pop(), Some(pair("done", "taken")));
    assert!(got.is_empty(), "{got:?}");
}

pub(crate) async fn a_waiting_taker_that_leaves_takes_nothing(host: Host) {
    let stage = Stage::plain(host).await;
    let mut wire = stage.wire().await;
    wire.send(format!("{} HTTP/1.1\r\nhost: x\r\n\r\n", inbox("?wait=60&take=true"))).await;
    wire.finish().await;
    // The host closes its side when it has noticed.
    wire.closed().await;
    deliver(&stage, "done").await;
    assert_eq!(read(&stage.control(&inbox("?take=true"), "", 200).await), [pair("done", "taken")]);
}

pub(crate) async fn a_stream_goes_on_where_it_was_left(host: Host) {
    let stage = Stage::plain(host).await;
    let client = Client::new(&format!("http://{}", stage.address));
    let open = async |last: &str| {
        let headers = [("accept", "text/event-stream"), ("last-event-id", last)];
        let path = format!("/hookgate/v1/sessions/{SESSION}/inbox");
        let stream = client.send(http::Method::GET, &path, &headers, bytes::Bytes::new()).await.unwrap();
        assert_eq!(stream.headers["content-type"], "text/event-stream");
        stream
    };
    deliver(&stage, "a").await;
    let mut stream = open("").await;
    let first = stream.event().await.unwrap().unwrap();
    assert_eq!((first.name.as_str(), &first.json()["purpose"]), ("message", &"the build".into()));
    deliver(&stage, "b").await;
    assert!(stream.event().await.unwrap().unwrap().json()["text"].as_str().unwrap().ends_with("\nb"));
    let id = first.json()["id"].as_str().unwrap().to_owned();
    assert!(String::from_utf8_lossy(stream.so_far()).contains(&format!("id: {id}\n")));
    drop(stream);
    let mut again = open(&id).await;
    assert!(again.event().await.unwrap().unwrap().json()["text"].as_str().unwrap().ends_with("\nb"));
}

pub(crate) async fn readers_end_when_the_host_stops(host: Host) {
    let stage = Stage::plain(host).await;
    let client = Client::new(&format!("http://{}", stage.address));
    let path = format!("/hookgate/v1/sessions/{SESSION}/inbox");
    deliver(&stage, "a").await;
    let headers = [("accept", "text/event-stream")];
    let mut stream = client.send(http::Method::GET, &path, &headers, bytes::Bytes::new()).await.unwrap();
    stream.event().await.unwrap().unwrap();
    // The proxy would give it 30 s more.
    stage.stop().await;
    assert_eq!(stream.event().await.unwrap(), None);
}
