//! From the configuration to the parts that serve.

use std::sync::Arc;

use axum::Router;
use pingora::connectors::ConnectorOptions;
use pingora::connectors::http::Connector;
use tokio::sync::mpsc;

use super::ServeError;
use super::gateway::{Gateway, Mount};
use super::routes::{Entry, Table};
use super::upstream::RouteUpstream;
use crate::Hookgate;
use crate::config::{Config, HookSources, RouteConfig};
use crate::control::{self, ControlState, Metrics, Readiness};

/// What one listener serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// Routes and the control surface.
    Everything,
    /// Routes only: the control surface has listeners of its own.
    Traffic,
    /// The control surface only.
    Control,
}

/// The parts that all listeners share.
pub(super) struct Setup {
    core: Hookgate,
    control: Router,
    mounts: Vec<(RouteConfig, Arc<Mount>)>,
}

impl Setup {
    pub(super) fn new(config: &Config, pool_size: usize) -> Result<Self, ServeError> {
        let core = core(config)?;
        let connector = Arc::new(Connector::new(Some(ConnectorOptions::new(pool_size))));
        let mut mounts = Vec::new();
        for (group, route) in (1..).zip(&config.routes) {
            let upstream = RouteUpstream::new(route, connector.clone(), group)?;
            mounts.push((route.clone(), Arc::new(Mount { route: Arc::new(core_route(route)), upstream })));
        }
        Ok(Setup { control: Router::new(), core, mounts })
    }

    /// What a listener of that kind runs. `alive` is held as long as the gateway is.
    pub(super) fn gateway(&self, site: Site, alive: mpsc::Sender<()>) -> Gateway {
        let own: fn(&str) -> bool = if site == Site::Traffic { |_| false } else { control::owns };
        let served = if site == Site::Control { &[] as &[_] } else { &self.mounts };
        let entries = served.iter().map(|(route, mount)| Entry {
            host: route.host.clone(),
            prefix: route.path_prefix.clone(),
            route: mount.clone(),
        });
        let table = Table::new(own, entries.collect());
        Gateway { core: self.core.clone(), table, control: self.control.clone(), _alive: alive }
    }

    /// The upstreams, for their health checks.
    pub(super) fn upstreams(&self) -> Vec<RouteUpstream> {
        self.mounts.iter().map(|(_, mount)| mount.upstream.clone()).collect()
    }

    /// Puts the hook documents in force as they are now.
    pub(super) fn reload(&self) -> impl Fn() + Send + 'static + use<> {
        || {}
    }
}

fn core(config: &Config) -> Result<Hookgate, ServeError> {
    Ok(Hookgate::builder().limits(config.limits.clone()).build())
}

fn core_route(route: &RouteConfig) -> Route {
    let core = match route.kind {
        config::RouteKind::Model => Route::model(&route.name),
        config::RouteKind::Passthrough => Route::passthrough(&route.name),
    };
    let on_deny = match route.on_deny {
        config::OnDeny::Feedback => crate::OnDeny::Feedback,
        config::OnDeny::End => crate::OnDeny::End,
    };
    core.allow_uninspected(route.allow_uninspected.iter().cloned()).on_deny(on_deny)
}
