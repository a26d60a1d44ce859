//! From the configuration to the parts that serve.

use std::sync::Arc;

use axum::Router;
use tokio::sync::mpsc;

use super::ServeError;
use super::callbacks::Callbacks;
use super::counts::Counts;
use super::gateway::{Gateway, Mount};
use super::guard::Guard;
use super::public::Public;
use super::rebinding::Names;
use super::routes::{Entry, Table};
use super::upstream::RouteUpstream;
use super::upstream::connector::Connector;
use crate::callback::{TmpHooks, TokenKey};
use crate::config::{Config, HookSources, RouteConfig};
use crate::control::{self, ControlState, Metrics, Readiness};
use crate::dispatch::HyperTransport;
use crate::store::MemoryStore;
use crate::{Hookgate, RouteKind};

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
    tmp_hooks: TmpHooks,
    guard: Guard,
    readiness: Readiness,
    mounts: Vec<(RouteConfig, Arc<Mount>)>,
    sources: HookSources,
}

impl Setup {
    pub(super) fn new(config: &Config, metrics: Metrics) -> Result<Self, ServeError> {
        let transport = Arc::new(config.transport());
        let settings = config.tmp_hooks.settings.clone();
        let store = Arc::new(MemoryStore::new());
        let tmp_hooks = TmpHooks::new(settings, store, TokenKey::random(), Some(transport.clone()));
        let core = core(config, transport, tmp_hooks.clone());
        let readiness = Readiness::new();
        let guard = Guard::new(config)?;
        let mut control = control::router(ControlState {
            core: core.clone(),
            tmp_hooks: tmp_hooks.clone(),
            readiness: readiness.clone(),
            metrics,
        });
        if let Some(gate) = guard.login() {
            control = control.merge(control::login_router(gate.clone()));
        }
        let connector = Arc::new(Connector::new());
        let mut mounts = Vec::new();
        for (group, route) in (1..).zip(&config.routes) {
            let upstream = RouteUpstream::new(route, connector.clone(), group)?;
            let of_mcp = route.route.public_origin.as_ref().filter(|_| route.route.kind == RouteKind::Mcp);
            let public = of_mcp.map(|origin| Public::new(origin, &route.path_prefix));
            let names = Names::new(names(config, route));
            mounts.push((route.clone(), Arc::new(Mount { route: route.route.clone(), upstream, public, names })));
        }
        Ok(Setup { core, control, guard, tmp_hooks, readiness, mounts, sources: config.hook_sources.clone() })
    }

    /// Says whether new requests are welcome.
    pub(super) fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The one-time callbacks.
    pub(super) fn tmp_hooks(&self) -> &TmpHooks {
        &self.tmp_hooks
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
        let callbacks = (site != Site::Control).then(|| Callbacks::new(&self.tmp_hooks));
        Gateway {
            core: self.core.clone(),
            table,
            callbacks,
            control: self.control.clone(),
            counts: Counts::default(),
            guard: self.guard.clone(),
            _alive: alive,
        }
    }

    /// The upstreams, which somebody has to look after.
    pub(super) fn upstreams(&self) -> Vec<RouteUpstream> {
        self.mounts.iter().map(|(_, mount)| mount.upstream.clone()).collect()
    }

    /// Puts the hook documents in force as they are now. When one of them is at fault, the old ones stay.
    pub(super) fn reload(&self) -> impl Fn() + Send + Sync + 'static + use<> {
        let (core, sources) = (self.core.clone(), self.sources.clone());
        move || match sources.load() {
            Ok(hooks) => {
                let handlers = hooks.iter().count();
                core.set_hooks(hooks);
                tracing::info!(handlers, "the hooks were reloaded");
            }
            Err(errors) => tracing::error!(%errors, "the hooks were not reloaded; the old ones stay"),
        }
    }
}

/// The names of a route that do not lead to this machine by themselves.
fn names<'a>(config: &'a Config, route: &'a RouteConfig) -> impl Iterator<Item = String> + 'a {
    // A public origin is a name with a scheme in front; a port that it says is the one that clients say.
    let public = route.route.public_origin.as_deref().and_then(|origin| origin.split_once("://"));
    let own = route.host.as_deref().into_iter().chain(public.map(|(_, authority)| authority));
    own.chain(config.trusted_hosts.iter().map(String::as_str)).map(str::to_owned)
}

fn core(config: &Config, transport: Arc<HyperTransport>, tmp_hooks: TmpHooks) -> Hookgate {
    Hookgate::builder()
        .hooks(config.hooks.clone())
        .limits(config.limits.clone())
        .subagents(config.subagents.clone())
        .hooks_mode(config.hooks_mode)
        .transport(transport)
        .callbacks(tmp_hooks, config.delivery.hold_stop)
        .build()
}
