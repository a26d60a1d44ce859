//! The examples do what they say.

#[path = "../../examples/client_layer.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example is a program of its own")]
mod client_layer;
#[path = "../../examples/server_layer.rs"]
#[allow(dead_code, unreachable_pub, reason = "an example is a program of its own")]
mod server_layer;

#[tokio::test]
async fn the_layer_on_the_server_side() {
    server_layer::run().await.unwrap();
}

#[tokio::test]
async fn the_layer_on_the_client_side() {
    client_layer::run().await.unwrap();
}

#[cfg(feature = "pingora")]
#[test]
fn the_demo_shows_what_it_says() {
    let mut transcript = Vec::new();
    hookgate::testing::demo::run(&mut transcript).unwrap();
    let transcript = String::from_utf8(transcript).unwrap();
    assert!(transcript.contains("toolu_3 (failed): files are never removed here"), "{transcript}");
}
