use super::*;
use crate::audit::AuditOutcome;
use crate::hooks::{Event, Occasion, Plane};

fn record(session: &str, turn: &str, event: Event, outcome: AuditOutcome) -> AuditRecord {
    let occasion = Occasion {
        event,
        session: key("default", session),
        turn_id: Some(turn.into()),
        tool_call_id: None,
        task_id: None,
        agent_id: None,
        parent_agent_id: None,
        model: None,
        plane: Plane::Model,
        route: "r".into(),
        name: None,
        server: None,
        trace: None,
    };
    AuditRecord::of(&occasion, "e".into(), outcome, Timestamp::from_unix_millis(0))
}

fn key(tenant: &str, session: &str) -> SessionKey {
    SessionKey { tenant: tenant.into(), session: session.into() }
}

fn turns(page: &Page<AuditRecord>) -> Vec<&str> {
    page.items.iter().map(|record| record.turn_id.as_deref().unwrap_or("")).collect()
}

/// A log with records of turns `0..` in one session, the clock standing still.
fn log_of(count: usize, per_session: usize) -> AuditLog {
    let log = AuditLog::new(per_session, 10);
    for turn in 0..count {
        let record = record("s", &turn.to_string(), Event::Stop, AuditOutcome::Pass);
        log.record_at(record, Timestamp::from_unix_millis(1_000));
    }
    log
}

#[test]
fn pages_are_chronological_and_the_newest_comes_first() {
    let log = log_of(5, 500);
    let s = key("default", "s");
    let first = log.session(&s, &AuditQuery { limit: 2, ..AuditQuery::default() });
    assert_eq!(turns(&first), ["3", "4"]);
    let second = log.session(&s, &AuditQuery { limit: 2, before: first.next.clone(), ..AuditQuery::default() });
    assert_eq!(turns(&second), ["1", "2"]);
    let last = log.session(&s, &AuditQuery { limit: 2, before: second.next, ..AuditQuery::default() });
    assert_eq!((turns(&last), &last.next), (vec!["0"], &None));
    let exact = log.session(&s, &AuditQuery { limit: 5, ..AuditQuery::default() });
    assert_eq!((exact.items.len(), exact.next), (5, None));
    assert_eq!(log.session(&key("other", "s"), &AuditQuery::default()).items, []);
    let odd = log.session(&s, &AuditQuery { before: Some("no id".into()), limit: 0, ..AuditQuery::default() });
    assert_eq!(odd.items.len(), 1);
}

#[test]
fn a_page_has_at_most_500() {
    let log = log_of(502, 1000);
    let page = log.session(&key("default", "s"), &AuditQuery { limit: 100_000, ..AuditQuery::default() });
    assert_eq!((page.items.len(), turns(&page)[0]), (500, "2"));
    assert!(page.next.is_some());
    assert_eq!(log.all(&AuditQuery::default()), page);
}

#[test]
fn filters_hold_together() {
    let log = AuditLog::new(500, 10);
    for (turn, event, outcome) in [
        ("1", Event::PreToolUse, AuditOutcome::Deny),
        ("1", Event::Stop, AuditOutcome::Deny),
        ("2", Event::PreToolUse, AuditOutcome::Deny),
        ("1", Event::PreToolUse, AuditOutcome::Pass),
    ] {
        log.record(record("s", turn, event, outcome));
    }
    let query = AuditQuery {
        turn: Some("1".into()),
        event: Some(Event::PreToolUse),
        outcome: Some(AuditOutcome::Deny),
        ..AuditQuery::default()
    };
    for page in [log.session(&key("default", "s"), &query), log.all(&query)] {
        assert_eq!((page.items.len(), page.next), (1, None));
    }
    let turn = AuditQuery { turn: Some("1".into()), ..AuditQuery::default() };
    assert_eq!(log.all(&turn).items.len(), 3);
}

#[test]
fn a_session_keeps_its_newest() {
    let page = log_of(7, 3).session(&key("default", "s"), &AuditQuery::default());
    assert_eq!(turns(&page), ["4", "5", "6"]);
}

#[test]
fn the_session_that_was_quiet_longest_is_forgotten() {
    let log = AuditLog::new(10, 2);
    for session in ["a", "b", "a", "c"] {
        log.record(record(session, session, Event::Stop, AuditOutcome::Pass));
    }
    let has = |session| !log.session(&key("default", session), &AuditQuery::default()).items.is_empty();
    assert_eq!(["a", "b", "c"].map(has), [true, false, true]);
    assert_eq!(turns(&log.all(&AuditQuery::default())), ["a", "a", "c"]);
    log.forget(&key("default", "a"));
    assert_eq!(turns(&log.all(&AuditQuery::default())), ["c"]);
    log.record(record("d", "d", Event::Stop, AuditOutcome::Pass));
    assert_eq!(turns(&log.all(&AuditQuery::default())), ["c", "d"]);
}

#[test]
fn all_sessions_are_merged_in_the_order_of_time() {
    let log = AuditLog::new(100, 100);
    // The wall clock goes back now and then.
    for (turn, millis) in [5_000, 4_000, 4_000, 9_000, 1_000, 9_001, 2_000].into_iter().enumerate() {
        let session = ["a", "b", "c"][turn % 3];
        let record = record(session, &turn.to_string(), Event::Stop, AuditOutcome::Pass);
        log.record_at(record, Timestamp::from_unix_millis(millis));
    }
    assert_eq!(turns(&log.all(&AuditQuery::default())), ["0", "1", "2", "3", "4", "5", "6"]);
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = log.all(&AuditQuery { limit: 3, before, ..AuditQuery::default() });
        seen.splice(0..0, turns(&page).into_iter().map(str::to_owned));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6"]);
}

#[test]
fn an_id_may_be_had_by_several_tenants() {
    let log = AuditLog::new(10, 10);
    for tenant in ["b", "a"] {
        let mut record = record("s", "1", Event::Stop, AuditOutcome::Pass);
        record.tenant = tenant.into();
        log.record(record);
    }
    assert_eq!(log.sessions_named("s"), [key("a", "s"), key("b", "s")]);
    assert_eq!(log.sessions_named("t"), []);
}

#[test]
fn a_record_is_what_the_api_says() {
    let log = AuditLog::new(10, 10);
    log.record(record("s", "1", Event::Stop, AuditOutcome::Capped).because(&"é".repeat(2_000)));
    let page = log.all(&AuditQuery::default());
    assert_eq!(page.items[0].reason.as_ref().map(String::len), Some(2_048));
    let json = serde_json::to_value(&page).unwrap();
    assert!(json["next"].is_null());
    let names: Vec<_> = json["items"][0].as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "id",
        "eventId",
        "event",
        "handlerId",
        "sessionId",
        "tenant",
        "turnId",
        "toolCallId",
        "toolName",
        "agentId",
        "taskId",
        "route",
        "plane",
        "outcome",
        "failure",
        "reason",
        "attempt",
        "startedAt",
        "durationMs",
        "requestBytes",
        "responseBytes",
    ];
    assert_eq!(names, expected);
    let item = &json["items"][0];
    assert_eq!((&item["event"], &item["outcome"], &item["plane"]), (&"Stop".into(), &"capped".into(), &"model".into()));
    assert_eq!(
        (&item["handlerId"], &item["startedAt"]),
        (&serde_json::Value::Null, &"1970-01-01T00:00:00.000Z".into())
    );
}

#[test]
fn what_began_before_its_session_was_forgotten_is_not_recorded_after() {
    let log = AuditLog::new(10, 10);
    let at = Timestamp::from_unix_millis;
    let began = |session: &str, millis: i64| {
        let mut record = record(session, &millis.to_string(), Event::Stop, AuditOutcome::Pass);
        record.started_at = at(millis);
        record
    };
    log.forget_at(&key("default", "a"), at(1_000));
    for (session, millis) in [("a", 900), ("a", 1_000), ("a", 1_001), ("b", 902)] {
        log.record_at(began(session, millis), at(2_000));
    }
    assert_eq!(turns(&log.all(&AuditQuery::default())), ["1001", "902"]);
    // No handler runs this long: the mark is gone, and with it all that was kept of the session.
    log.record_at(began("c", 60_000), at(60_000));
    assert!(log.state().forgotten.is_empty());
    for number in 0..=MAX_FORGOTTEN {
        log.forget_at(&key("default", &number.to_string()), at(60_000));
    }
    assert_eq!(log.state().forgotten.len(), MAX_FORGOTTEN);
}
