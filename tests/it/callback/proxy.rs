//! What concerns the proxy alone: callbacks beside its routes and its control surface.

use hookgate::id::SessionKey;

use super::stage::{RECEIVED, assert_answer};
use crate::pingora_kit::{Upstream, Wire, json, proxy};

#[tokio::test]
async fn callbacks_come_before_routes_and_not_where_only_the_control_surface_is() {
    let upstream = Upstream::answering(|_| json("\"upstream\"")).await;
    let proxy = proxy(&format!(
        "control_listen = \"127.0.0.1:0\"\n[tmp_hooks]\nbase_url = \"https://a.example\"\npath_prefix = \"/api/done\"\n\
         [[routes]]\nname = \"api\"\nkind = \"passthrough\"\npath_prefix = \"/api\"\nupstream = \"http://{}\"\n",
        upstream.address
    ));
    let session = SessionKey { tenant: "default".into(), session: "s1".into() };
    let hook = proxy.tmp_hooks().issue(&session, None, None).await.unwrap();
    let (traffic, control) = (proxy.addresses()[0], proxy.control_addresses()[0]);
    let post = async |address, path: &str| {
        let mut wire = Wire::connect(address).await;
        wire.send(format!("POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\ndone")).await;
        wire.answer().await
    };
    let callback = format!("/api/done/{}", hook.token);
    let answer = post(control, &callback).await;
    assert_eq!((answer.status(), answer.header("content-type")), (404, Some("application/problem+json")));
    assert!(!answer.text().contains(&hook.token), "{}", answer.text());
    assert_eq!(post(traffic, "/api/doneness").await.text(), "\"upstream\"");
    assert_eq!(upstream.connections(), 1);
    assert_answer(&post(traffic, &callback).await, 200, RECEIVED);
    assert_eq!(upstream.connections(), 1);
}
