//! Handlers that only observe: told all at once, in nobody's way. The clock is virtual.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use hookgate::audit::AuditOutcome;
use hookgate::dispatch::AddedContext;
use hookgate::hooks::{Detail, Event, FailureKind};
use hookgate::limits::{MAX_CONTEXT_BYTES, MAX_OBSERVERS};
use tokio::time::Instant;

use super::dispatch_policy::{Reply, Scripted, dispatcher, hooks, occasion, records};

const URL: &str = "https://hooks.example.com/";

fn after_tool() -> Detail {
    Detail::PostToolUse {
        tool_name: "Bash".into(),
        input: None,
        result: Bytes::from_static(b"\"ok\""),
        truncated: false,
        executed_upstream: false,
        failure_known: true,
    }
}

/// Answers after as many milliseconds as the address's path says.
fn slow(answer: impl Fn(u64) -> Reply + Clone + Send + Sync + 'static) -> impl hookgate::dispatch::HandlerTransport {
    Scripted(move |request: http::Request<Bytes>| {
        let millis = request.uri().path().trim_start_matches('/').parse().unwrap();
        let answer = answer.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(millis)).await;
            answer(millis)
        }
        .boxed()
    })
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_for_observers() {
    let dispatcher = dispatcher(slow(|_| Reply::pass()));
    let (one, two) = (format!("{URL}1500"), format!("{URL}1000"));
    let hooks = hooks(Event::PostToolUse, &[("a", &one, ""), ("b", &two, "")]);
    let start = Instant::now();
    dispatcher.observe(&hooks, occasion(Event::PostToolUse), after_tool());
    assert_eq!((start.elapsed(), records(&dispatcher).len()), (Duration::ZERO, 0));
    dispatcher.drained().await;
    // Both at once: as long as the slower one, not the sum.
    assert_eq!(start.elapsed(), Duration::from_millis(1_500));
    let records = records(&dispatcher);
    let took: Vec<_> = records.iter().map(|record| (record.outcome, record.duration_ms)).collect();
    // Recorded as they answered.
    assert_eq!(took, [(AuditOutcome::Pass, 1_000), (AuditOutcome::Pass, 1_500)]);
    assert_eq!(records[0].event_id, records[1].event_id);
}

#[tokio::test(start_paused = true)]
async fn awaited_observers_give_context_in_their_order() {
    for event in [Event::SessionStart, Event::TaskStart] {
        let dispatcher = dispatcher(slow(|millis| {
            Reply::json(&format!(r#""outcome":"pass","additionalContext":"after {millis}""#))
        }));
        let urls = [800, 200, 500, 9_000].map(|millis| format!("{URL}{millis}"));
        let hooks = hooks(event, &[("a", &urls[0], ""), ("b", &urls[1], ""), ("c", &urls[2], ""), ("d", &urls[3], "")]);
        let detail = match event {
            Event::SessionStart => Detail::SessionStart { source: "new" },
            _ => Detail::TaskStart { title: None },
        };
        let start = Instant::now();
        let context = dispatcher.observe_awaited(&hooks, &occasion(event), detail).await;
        // The last one runs into its timeout, which bounds the wait.
        assert_eq!(start.elapsed(), Duration::from_millis(2_000));
        let texts: Vec<_> = context.iter().map(|AddedContext { handler, text }| (&**handler, text.as_str())).collect();
        assert_eq!(texts, [("a", "after 800"), ("b", "after 200"), ("c", "after 500")]);
        let last = records(&dispatcher).pop().unwrap();
        assert_eq!((last.outcome, last.failure), (AuditOutcome::FailedOpen, Some(FailureKind::Timeout)));
    }
}

#[tokio::test(start_paused = true)]
async fn awaited_context_is_bounded_in_the_handlers_order() {
    let text = "x".repeat(MAX_CONTEXT_BYTES / 2 + 1);
    let dispatcher =
        dispatcher(slow(move |_| Reply::json(&format!(r#""outcome":"pass","additionalContext":"{text}""#))));
    let (late, early) = (format!("{URL}900"), format!("{URL}1"));
    let hooks = hooks(Event::SessionStart, &[("late", &late, ""), ("early", &early, "")]);
    let detail = Detail::SessionStart { source: "resume" };
    let context = dispatcher.observe_awaited(&hooks, &occasion(Event::SessionStart), detail).await;
    assert_eq!(context.iter().map(|added| &*added.handler).collect::<Vec<_>>(), ["late"]);
    let outcomes: Vec<_> = records(&dispatcher).iter().map(|record| (record.outcome, record.failure)).collect();
    let failed = (AuditOutcome::FailedOpen, Some(FailureKind::TooLarge));
    assert_eq!(outcomes, [(AuditOutcome::Pass, None), failed]);
}

#[tokio::test(start_paused = true)]
async fn an_observers_failure_changes_nothing_and_is_recorded() {
    for (answer, kind) in [
        (r#""outcome":"deny","reason":"no""#, FailureKind::Outcome),
        (r#""outcome":"modify","replacement":{}"#, FailureKind::Outcome),
        (r#""outcome":"continue""#, FailureKind::Outcome),
        (r#""outcome":"pass","additionalContext":"c""#, FailureKind::Malformed),
    ] {
        let dispatcher = dispatcher(slow(move |_| Reply::json(answer)));
        let url = format!("{URL}1");
        let hooks = hooks(Event::PostToolUse, &[("h", &url, "")]);
        assert_eq!(dispatcher.observe_awaited(&hooks, &occasion(Event::PostToolUse), after_tool()).await, []);
        let record = records(&dispatcher).pop().unwrap();
        assert_eq!((record.outcome, record.failure), (AuditOutcome::FailedOpen, Some(kind)), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn observations_are_bounded_and_the_loss_is_recorded() {
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    let dispatcher = dispatcher(slow(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        Reply::pass()
    }));
    let url = format!("{URL}100");
    let hooks = hooks(Event::PostToolUse, &[("h", &url, "")]);
    for _ in 0..MAX_OBSERVERS + 2 {
        dispatcher.observe(&hooks, occasion(Event::PostToolUse), after_tool());
    }
    let gaps = records(&dispatcher);
    assert_eq!(gaps.len(), 2);
    for gap in gaps {
        assert_eq!((gap.outcome, gap.handler_id), (AuditOutcome::Gap, None));
        assert!(gap.reason.unwrap().contains("too many"));
    }
    dispatcher.drained().await;
    assert_eq!(told.load(Ordering::SeqCst), MAX_OBSERVERS);
    // There is room again.
    dispatcher.observe(&hooks, occasion(Event::PostToolUse), after_tool());
    dispatcher.drained().await;
    assert_eq!(told.load(Ordering::SeqCst), MAX_OBSERVERS + 1);
}

#[test]
fn without_a_runtime_the_loss_is_recorded() {
    let dispatcher = dispatcher(slow(|_| Reply::pass()));
    let url = format!("{URL}1");
    dispatcher.observe(&hooks(Event::PostToolUse, &[("h", &url, "")]), occasion(Event::PostToolUse), after_tool());
    assert_eq!(records(&dispatcher)[0].outcome, AuditOutcome::Gap);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_concerns_nobody_leaves_no_record() {
    let dispatcher = dispatcher(slow(|_| Reply::pass()));
    let url = format!("{URL}1");
    let hooks = hooks(Event::PostToolUse, &[("h", &url, r#""matcher":["Edit"]"#)]);
    dispatcher.observe(&hooks, occasion(Event::PostToolUse), after_tool());
    dispatcher.observe(&hooks, occasion(Event::SessionEnd), Detail::SessionEnd { reason: "deleted".into() });
    dispatcher.drained().await;
    assert_eq!(records(&dispatcher), []);
}

/// Keeps the names and labels of the counters that were asked for.
#[derive(Default)]
struct Counters(Mutex<Vec<String>>);

impl metrics::Recorder for Counters {
    fn describe_counter(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn describe_gauge(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn describe_histogram(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn register_counter(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        self.0.lock().unwrap().push(format!("{} {}", key.name(), labels.join(" ")));
        metrics::Counter::noop()
    }
    fn register_gauge(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::noop()
    }
    fn register_histogram(&self, key: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
        let labels: Vec<_> = key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        self.0.lock().unwrap().push(format!("{} {}", key.name(), labels.join(" ")));
        metrics::Histogram::noop()
    }
}

#[test]
fn runs_are_counted() {
    let counters = Counters::default();
    let dispatcher = dispatcher(slow(|_| Reply::pass()));
    let hooks = hooks(Event::PreToolUse, &[("h", URL, "")]);
    metrics::with_local_recorder(&counters, || {
        dispatcher.undecidable(&hooks, &occasion(Event::PreToolUse), FailureKind::TooLargeInput, "it is too large");
    });
    let expected = [
        "hookgate_dispatches_total event=PreToolUse outcome=failed_closed failure=too_large_input",
        "hookgate_handler_seconds handler=h",
    ];
    assert_eq!(*counters.0.lock().unwrap(), expected);
}
