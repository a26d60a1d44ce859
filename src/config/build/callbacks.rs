//! One-time callbacks: settings that fit together, and a controller that can be reached.

use std::time::Duration;

use super::routes::{CONTROL_PATHS, starts_with};
use crate::callback::{Controller, Settings};
use crate::config::error::Problems;
use crate::config::keys::{Delivery, Root, TmpHooks};
use crate::config::model::{DeliveryConfig, TmpHooksConfig};

pub(super) fn resolve(root: &Root, problems: &mut Problems) -> (TmpHooksConfig, DeliveryConfig) {
    let keys = &root.tmp_hooks;
    let control_is_apart = !root.server.control_listen.0.is_empty();
    let taken = CONTROL_PATHS.iter().find(|control| starts_with(&keys.path_prefix.0, control));
    if let Some(control) = taken.filter(|_| !control_is_apart) {
        let message = format!("{control} belongs to the control surface; choose another path for callbacks");
        keys.path_prefix.reject(problems, message);
    }
    if *keys.min_ttl_seconds > keys.max_ttl_seconds {
        let message =
            format!("found {}, which is more than max_ttl_seconds ({})", *keys.min_ttl_seconds, keys.max_ttl_seconds);
        keys.min_ttl_seconds.reject(problems, message);
    }
    let trusted_hosts: Vec<String> = root.server.trusted_hosts.iter().map(|host| host.to_string()).collect();
    let settings = settings(keys, &trusted_hosts, controller(root, problems));
    let delivery = DeliveryConfig { hold_stop: Duration::from_secs(root.delivery.hold_stop_seconds) };
    (TmpHooksConfig { settings, allow_unauthenticated: keys.allow_unauthenticated }, delivery)
}

fn settings(keys: &TmpHooks, trusted_hosts: &[String], controller: Option<Controller>) -> Settings {
    // Both were checked when they were read, so neither changes what it is given to.
    let with_prefix = Settings::default().path_prefix(&keys.path_prefix.0).unwrap_or_default();
    let mut settings = match keys.base_url.0.as_str() {
        "" => with_prefix.trusted_hosts(trusted_hosts, keys.base_url_scheme),
        url => with_prefix.base_url(url).unwrap_or_default(),
    };
    settings.ttl = Duration::from_secs(keys.ttl_seconds);
    settings.min_ttl = Duration::from_secs(*keys.min_ttl_seconds);
    settings.max_ttl = Duration::from_secs(keys.max_ttl_seconds);
    settings.max_body_bytes = keys.max_body_bytes;
    settings.sweep_interval = Duration::from_millis(keys.sweep_interval_ms);
    settings.deliver_timeout = Duration::from_millis(keys.deliver_timeout_ms);
    settings.body_read_timeout = Duration::from_millis(keys.body_read_timeout_ms);
    settings.replay_grace = Duration::from_secs(keys.replay_grace_seconds);
    settings.tombstone = Duration::from_secs(keys.tombstone_seconds);
    settings.controller = controller;
    settings
}

fn controller(root: &Root, problems: &mut Problems) -> Option<Controller> {
    let Delivery { controller_url, controller_connection, .. } = &root.delivery;
    let Some(url) = controller_url else {
        if let Some(name) = controller_connection {
            name.reject(problems, "has no effect without controller_url");
        }
        return None;
    };
    let Some(name) = controller_connection else { return Some(url.0.clone()) };
    if !root.connections.0.iter().any(|(known, _)| *known == ***name) {
        name.reject(problems, format!("there is no [connections.{}]", &***name));
    }
    Some(url.0.clone().connection(&***name))
}
