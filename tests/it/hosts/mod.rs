//! hookgate on either host, as the stages of the suites start it, and its audit.

mod layer;
mod plan;

use std::time::Duration;

use hookgate::callback::TmpHooks;
use hookgate::config::Config;
use hookgate::host::pingora::Proxy;
use hookgate::testing::Client;
use hookgate::{BoxError, Hookgate, Route};
use layer::LayerHost;
pub(crate) use layer::forward;
pub(crate) use plan::{Cast, Plan};
use serde_json::Value;

/// hookgate, running. Dropping it ends it.
pub(crate) enum Gateway {
    /// A host for each route; the core has the audit.
    Layer { hosts: Vec<LayerHost>, core: Hookgate },
    Proxy {
        /// Held so that it ends with the stage.
        _proxy: Proxy,
        origin: String,
    },
}

impl Gateway {
    /// The layer, with each route in front of its upstream.
    pub(crate) async fn layer<const N: usize>(
        core: Hookgate,
        routes: [(Route, &str); N],
        callbacks: Option<TmpHooks>,
    ) -> Result<Self, BoxError> {
        let mut hosts = Vec::new();
        for (route, upstream) in routes {
            hosts.push(LayerHost::start(&core, route, upstream, callbacks.clone()).await?);
        }
        Ok(Gateway::Layer { hosts, core })
    }

    /// The proxy.
    pub(crate) fn proxy(config: Config) -> Result<Self, BoxError> {
        let proxy = Proxy::start(config)?;
        let address = proxy.addresses().first().ok_or("the proxy has no address")?;
        Ok(Gateway::Proxy { origin: format!("http://{address}"), _proxy: proxy })
    }

    /// Where a route is: the layer tells routes apart by their number, and the proxy by the prefix of their paths.
    pub(crate) fn url(&self, number: usize, prefix: &str) -> String {
        match self {
            Gateway::Layer { hosts, .. } => hosts[number].url(),
            Gateway::Proxy { origin, .. } => format!("{origin}{prefix}"),
        }
    }

    /// The audit so far, as its JSON records.
    pub(crate) async fn audit(&self) -> Result<Vec<Value>, BoxError> {
        let page: Value = match self {
            Gateway::Layer { core, .. } => serde_json::to_value(core.audit().all(&Default::default()))?,
            Gateway::Proxy { origin, .. } => {
                let answer = Client::new(origin).get("/hookgate/v1/audit").await?;
                serde_json::from_slice(&answer.bytes().await?)?
            }
        };
        Ok(page["items"].as_array().cloned().unwrap_or_default())
    }

    /// Waits until the audit has a record of that event with that outcome.
    pub(crate) async fn audited(&self, event: &str, outcome: &str) -> Result<Value, BoxError> {
        loop {
            let audit = self.audit().await?;
            let found = audit.into_iter().find(|record| record["event"] == event && record["outcome"] == outcome);
            if let Some(record) = found {
                return Ok(record);
            }
            // Records are written behind the traffic, and there is no signal for them.
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
