//! `hooks test`: a sample event, through the real dispatcher to the real handlers.

use std::sync::Arc;

use super::recorder::Recorder;
use super::{report, sample};
use crate::HooksMode;
use crate::audit::{AuditLog, AuditQuery};
use crate::cli::args::{Args, HooksTest};
use crate::cli::{Failure, load, log, print};
use crate::config::{Config, LogConfig};
use crate::dispatch::{Decision, DispatchKey, Dispatcher, Verdict};
use crate::hooks::{Detail, Event, HookSet, Occasion};

/// How many handlers of one event are reported; there is one record for each.
const MOST: usize = 500;

pub(in crate::cli) fn test(args: &Args, test: &HooksTest) -> Result<(), Failure> {
    let config = load(args)?;
    // What the dispatcher logs is part of the report; only who asks for the log wants it twice.
    log::start(&LogConfig { level: "error", ..config.log.clone() }, args.log.as_deref())?;
    if config.hooks_mode == HooksMode::Off {
        return Err(Failure::usage("Hooks are switched off ([hooks] mode = \"off\"); switch them on to test them."));
    }
    let occasion = sample::occasion(test.event, test.tool.as_deref());
    let name = occasion.name.as_deref().unwrap_or_default();
    let detail = sample::detail(test.event, name, test.input.as_deref()).map_err(Failure::usage)?;
    let hooks = Arc::new(selected(&config, test, &occasion)?);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::run_time(format!("no runtime could be started: {error}")))?;
    runtime.block_on(dispatch(&config, &hooks, &occasion, detail))
}

/// The handlers that are to be asked; at least one.
fn selected(config: &Config, test: &HooksTest, occasion: &Occasion) -> Result<HookSet, Failure> {
    let event = test.event.name();
    let of_event =
        || config.hooks.handlers(test.event).iter().map(|handler| &*handler.id).collect::<Vec<_>>().join(", ");
    // No handler is asked then, and that is what the test shows.
    let denied = occasion.full_name().is_some_and(|name| test.event == Event::PreToolUse && config.hooks.denies(&name));
    if denied {
        return Ok(config.hooks.clone());
    }
    let hooks = match &test.handler {
        Some(id) => {
            let hooks = config.hooks.only(id);
            if !hooks.has(test.event) {
                let there = match of_event() {
                    there if there.is_empty() => "it has none".to_owned(),
                    there => format!("it has {there}"),
                };
                return Err(Failure::usage(format!("{event} has no handler {id:?}; {there}.")));
            }
            hooks
        }
        None if !config.hooks.has(test.event) => {
            return Err(Failure::usage(format!("{event} has no handler; `hookgate hooks list` shows what there is.")));
        }
        None => config.hooks.clone(),
    };
    if hooks.concerned(occasion).is_empty() {
        let name = occasion.name.as_deref().unwrap_or_default();
        return Err(Failure::usage(format!(
            "No handler of {event} is for {name:?}; name another one by --tool. {event} has {}.",
            of_event()
        )));
    }
    Ok(hooks)
}

async fn dispatch(config: &Config, hooks: &Arc<HookSet>, occasion: &Occasion, detail: Detail) -> Result<(), Failure> {
    let recorder = Recorder::new(Arc::new(config.transport()));
    let audit = AuditLog::new(MOST, 1);
    let dispatcher = Dispatcher::new(Arc::new(recorder.clone()), audit.clone(), DispatchKey::random(), &config.limits);
    let verdict = if occasion.event.gates() {
        dispatcher.gate(hooks, occasion, detail, None).await
    } else {
        let context = dispatcher.observe_awaited(hooks, occasion, detail).await;
        Verdict { decision: Decision::Allow, context, failed: false }
    };

    let records = audit.session(&occasion.session, &AuditQuery::default()).items;
    let exchanges = recorder.exchanges();
    let mut text = String::new();
    for record in &records {
        let handler = hooks.iter().find(|handler| Some(&handler.id) == record.handler_id.as_ref());
        text.push_str(&report::run(record, handler.map(|handler| &**handler), &exchanges));
    }
    text.push_str(&report::verdict(&verdict.decision, &verdict.context));
    print(&text)?;

    let failed: Vec<&str> = records
        .iter()
        .filter(|record| record.failure.is_some())
        .filter_map(|record| record.handler_id.as_deref())
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(Failure::run_time(format!("These handlers failed: {}.", failed.join(", "))))
    }
}
