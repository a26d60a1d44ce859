//! What is compared: one entry for each.

use crate::ask::Ask;
use crate::figures::{Figure, Target};
use crate::upstream::EVENTS;

/// What is asked, how, and what hookgate should reach.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) ask: Ask,
    pub(crate) load: Load,
    pub(crate) targets: &'static [Target],
}

/// How it is asked.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// As fast as answers come, over so many connections; each answer is so many events.
    Fast { connections: usize, events: usize },
    /// So many streams, whose events come one by one.
    Paced { streams: usize },
    /// So many streams that stand still.
    Idle { streams: usize },
    /// So many slow streams.
    Slow { streams: usize },
}

impl Load {
    /// Idle and slow streams are many: one round says enough.
    pub(crate) fn rounds(self, rounds: usize) -> usize {
        match self {
            // They are short, and what else the machine does changes from one to the next.
            Load::Fast { .. } => rounds * 2 - 1,
            Load::Paced { .. } => rounds.div_ceil(2),
            Load::Idle { .. } | Load::Slow { .. } => 1,
        }
    }
}

/// The usual request.
const fn short(answer: &'static str) -> Ask {
    Ask::Model { history: 1 << 10, answer }
}

pub(crate) const ROWS: [Row; 9] = [
    Row {
        name: "JSON answers of 1 KB, 64 connections, no handler matches",
        ask: short("text"),
        load: Load::Fast { connections: 64, events: 1 },
        targets: &[Target::AtMost(Figure::RequestCpu, 1.05), Target::AtLeast(Figure::Rate, 0.95)],
    },
    Row {
        name: "JSON answers of 1 KB, 64 connections, a handler decides each",
        ask: short("call"),
        load: Load::Fast { connections: 64, events: 1 },
        targets: &[Target::AtMost(Figure::RequestCpu, 2.0)],
    },
    Row {
        name: "JSON answers to 1 MB of history, 4 connections",
        ask: Ask::Model { history: 1 << 20, answer: "text" },
        load: Load::Fast { connections: 4, events: 1 },
        targets: &[Target::AtMost(Figure::RequestCpu, 1.15)],
    },
    Row {
        name: "Streams of 200 events at once, 16 connections",
        ask: short("at-once"),
        load: Load::Fast { connections: 16, events: EVENTS },
        targets: &[Target::AtMost(Figure::P50, 1.1)],
    },
    Row {
        name: "64 streams of 200 events one by one, no handler matches",
        ask: short("one-by-one"),
        load: Load::Paced { streams: 64 },
        targets: &[Target::AtMost(Figure::EventCpu, 1.0), Target::AtMost(Figure::P50, 1.0)],
    },
    Row {
        name: "64 streams of 200 events one by one, then a call that a handler decides",
        ask: short("one-by-one, call"),
        load: Load::Paced { streams: 64 },
        targets: &[Target::AtMost(Figure::P50, 1.0)],
    },
    Row {
        name: "5,000 streams idle in a call that is held",
        ask: short("unfinished call"),
        load: Load::Idle { streams: 5_000 },
        targets: &[Target::Within(Figure::Each, 32.0)],
    },
    Row {
        name: "10,000 slow streams at once",
        ask: short("slow"),
        load: Load::Slow { streams: 10_000 },
        targets: &[Target::Reach(Figure::Served, 100.0)],
    },
    Row {
        name: "MCP tools/call, 64 connections, no handler matches",
        ask: Ask::Tool,
        load: Load::Fast { connections: 64, events: 1 },
        targets: &[Target::AtLeast(Figure::Rate, 0.75)],
    },
];
