//! From what was typed to what can be used: rules between keys, files, and references.

mod auth;
mod callbacks;
mod connections;
mod listeners;
mod references;
mod routes;
mod tools;

use std::ops::Deref;

use super::describe::At;
use super::document::{Environment, Node};
use super::error::Problems;
use super::files::Folder;
use super::keys::{Hooks, LimitKeys, Redact as RedactKeys, Root, Subagent as SubagentKeys};
use super::model::{Config, LogConfig};
use super::sources::{HookSources, INLINE_DOCUMENT};
use crate::hooks::{HookSet, Redact, Redaction};
use crate::limits::Limits;
use crate::{HooksMode, Subagent};

/// What references are looked up in.
pub(super) struct Surroundings<'a> {
    pub(super) folder: Folder,
    pub(super) environment: &'a Environment,
}

/// Builds the configuration. It is whole only if no problem was added.
pub(super) fn build(root: &Root, effective: Node, around: &Surroundings<'_>, problems: &mut Problems) -> Config {
    listeners::check(&root.server, root.auth.mode, problems);
    let connections = connections::resolve(&root.connections, around, problems);
    let sources = HookSources {
        folder: around.folder.clone(),
        documents: root.hooks.documents.clone(),
        inline: around.environment.get(INLINE_DOCUMENT).map(|document| document.as_str().into()),
        allowed_hosts: texts(&root.hooks.allowed_hosts),
        allow_insecure_loopback: root.hooks.allow_insecure_loopback,
        // By the names in the file: one that could not be resolved is one fault, not one more for every handler.
        connections: root.connections.0.iter().map(|(name, _)| name.as_str().into()).collect(),
        redaction: redaction(&root.redact, problems),
        denied: texts(&root.tools.deny),
        off: root.hooks.mode == HooksMode::Off,
    };
    let hooks = sources.load().unwrap_or_else(|errors| {
        problems.join(errors);
        HookSet::empty()
    });
    let (tmp_hooks, delivery) = callbacks::resolve(root, problems);
    Config {
        listen: root.server.listen.0.iter().map(|address| **address).collect(),
        tls: root.server.tls.as_ref().and_then(|files| around.folder.tls(files, problems)),
        control_listen: root.server.control_listen.0.iter().map(|address| **address).collect(),
        trusted_hosts: texts(&root.server.trusted_hosts),
        shutdown_grace: root.server.shutdown_grace,
        routes: routes::resolve(root, around, problems),
        hooks,
        hook_sources: sources,
        hooks_mode: root.hooks.mode,
        tmp_hooks,
        delivery,
        subagents: root.subagents.iter().map(subagent).collect(),
        connections,
        auth: auth::resolve(&root.auth, around, problems),
        limits: limits(&root.limits, &root.hooks, root.audit.per_session),
        log: LogConfig { format: root.log.format, level: root.log.level.0 },
        effective,
    }
}

fn subagent(keys: &SubagentKeys) -> Subagent {
    Subagent { tool: keys.tool.to_string().into(), id: keys.id.to_string(), prompt: keys.prompt.to_string() }
}

fn limits(keys: &LimitKeys, hooks: &Hooks, audit_per_session: usize) -> Limits {
    Limits {
        max_request_bytes: keys.max_request_bytes,
        max_held_bytes: keys.max_held_bytes,
        max_gated_bytes: keys.max_gated_bytes,
        max_sessions: keys.max_sessions,
        session_idle: keys.session_idle,
        keepalive: std::time::Duration::from_millis(keys.keepalive_ms),
        max_hold: keys.max_hold,
        max_deny_rounds: hooks.max_deny_rounds,
        max_stop_retries: hooks.max_stop_retries,
        audit_per_session,
    }
}

fn redaction(rules: &[At<RedactKeys>], problems: &mut Problems) -> Redaction {
    let mut redaction = Redaction::default();
    for rule in rules {
        let what = match (&rule.fields, &rule.allow) {
            (None, None) => Redact::Whole,
            (Some(fields), None) if !fields.is_empty() => Redact::Fields(texts(fields)),
            (None, Some(members)) => Redact::Allow(texts(members)),
            (Some(_), None) => {
                rule.reject(
                    problems,
                    "fields names nothing to hide; expected at least one JSON Pointer, or no fields to hide everything",
                );
                continue;
            }
            (Some(_), Some(_)) => {
                rule.reject(
                    problems,
                    "found both fields and allow; expected one of them, or neither to hide everything",
                );
                continue;
            }
        };
        redaction = redaction.rule(&rule.tool, what);
    }
    redaction
}

fn texts<T: Deref<Target = str>>(texts: &[T]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}
