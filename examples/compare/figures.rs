//! What is measured, and what it should be.

use std::collections::BTreeMap;

/// A figure of one run, in the order of the tables' columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    /// Requests a second.
    Rate,
    /// Of a hundred streams, those that were open at the same time and came to their right end.
    Served,
    /// Half of the requests, or events, took at most so many microseconds.
    P50,
    P99,
    /// The process's own microseconds for a request.
    RequestCpu,
    /// The same for an event of a stream, with its share of the request.
    EventCpu,
    /// The process's memory in MiB.
    Memory,
    /// What one stream adds to the process's memory, in KiB.
    Each,
}

impl Figure {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Figure::Rate => "requests/s",
            Figure::Served => "% served at once",
            Figure::P50 => "p50 µs",
            Figure::P99 => "p99 µs",
            Figure::RequestCpu => "CPU µs a request",
            Figure::EventCpu => "CPU µs an event",
            Figure::Memory => "memory MiB",
            Figure::Each => "KiB a stream",
        }
    }

    /// The figure as it is printed.
    pub(crate) fn print(self, value: f64) -> String {
        match self {
            Figure::Served | Figure::RequestCpu | Figure::EventCpu | Figure::Memory | Figure::Each => {
                format!("{value:.1}")
            }
            Figure::Rate | Figure::P50 | Figure::P99 => format!("{value:.0}"),
        }
    }
}

/// What a run of one process came to.
pub(crate) type Sample = BTreeMap<Figure, f64>;

/// What hookgate should reach.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// So many times the floor's figure, or less.
    AtMost(Figure, f64),
    /// So many times the floor's figure, or more.
    AtLeast(Figure, f64),
    /// The figure itself, or less.
    Within(Figure, f64),
    /// The figure itself, or more.
    Reach(Figure, f64),
}

impl Target {
    pub(crate) fn figure(self) -> Figure {
        match self {
            Target::AtMost(figure, _)
            | Target::AtLeast(figure, _)
            | Target::Within(figure, _)
            | Target::Reach(figure, _) => figure,
        }
    }

    /// Whether it is met by that ratio to the floor, or by the figure itself, and the target in words.
    pub(crate) fn judge(self, ratio: f64, hookgate: f64) -> (bool, String) {
        match self {
            Target::AtMost(_, most) => (ratio <= most, format!("≤ {most:.2} × floor")),
            Target::AtLeast(_, least) => (ratio >= least, format!("≥ {least:.2} × floor")),
            Target::Within(figure, most) => (hookgate <= most, format!("≤ {}", figure.print(most))),
            Target::Reach(figure, least) => (hookgate >= least, format!("≥ {}", figure.print(least))),
        }
    }
}

/// The median of each figure.
pub(crate) fn medians(runs: &[Sample]) -> Sample {
    let Some(first) = runs.first() else { return Sample::new() };
    first.keys().map(|figure| (*figure, median(runs.iter().map(|run| run[figure]).collect()))).collect()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] }
}
