//! A proxy that does nothing but pass on: what pingora alone costs, as the floor that hookgate is compared with.
//!
//!     floor_proxy 127.0.0.1:8000 127.0.0.1:9000

use std::sync::Arc;

use async_trait::async_trait;
use pingora::proxy::{ProxyHttp, Session, http_proxy_service};
use pingora::server::configuration::ServerConf;
use pingora::services::Service as _;
use pingora::upstreams::peer::HttpPeer;
use tokio::sync::watch;

struct Floor {
    upstream: String,
}

#[async_trait]
impl ProxyHttp for Floor {
    type CTX = ();

    fn new_ctx(&self) {}

    async fn upstream_peer(&self, _: &mut Session, (): &mut ()) -> pingora::Result<Box<HttpPeer>> {
        Ok(Box::new(HttpPeer::new(self.upstream.as_str(), false, String::new())))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), Some(upstream)) = (arguments.next(), arguments.next()) else {
        return Err("usage: floor_proxy LISTEN UPSTREAM".into());
    };
    // The same pool and the same threads as hookgate has.
    let conf = Arc::new(ServerConf { upstream_keepalive_pool_size: 512, ..ServerConf::default() });
    let mut service = http_proxy_service(&conf, Floor { upstream });
    service.add_tcp(&listen);
    let (_shutdown, watch) = watch::channel(false);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(service.start_service(None, watch, 1));
    Ok(())
}
