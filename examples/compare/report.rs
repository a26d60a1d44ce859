//! The tables, and where they are written.

use std::fmt::Write;

use hookgate::BoxError;

use crate::figures::{Figure, Sample, Target, median, medians};
use crate::rows::Row;

/// What a row came to, for each process a sample of each round.
pub(crate) struct Outcome {
    pub(crate) row: &'static Row,
    pub(crate) names: [&'static str; 3],
    pub(crate) runs: [Vec<Sample>; 3],
    /// What the reader has to know, such as a limit of the machine.
    pub(crate) note: Option<String>,
}

impl Outcome {
    /// Medians and ratios.
    pub(crate) fn table(&self) -> String {
        let medians = self.runs.each_ref().map(|runs| medians(runs));
        let figures: Vec<Figure> = medians[2].keys().copied().collect();
        let mut text = format!("\n## {}\n\n|", self.row.name);
        for figure in &figures {
            let _ = write!(text, " | {}", figure.label());
        }
        text.push_str(" |\n|---");
        text.push_str(&"|--:".repeat(figures.len()));
        text.push_str("|\n");
        for (name, sample) in self.names.iter().zip(&medians) {
            let cells = figures.iter().map(|figure| figure.print(sample[figure]));
            let _ = writeln!(text, "| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        let ratios = figures.iter().map(|figure| format!("{:.2}", median(self.ratios(*figure))));
        let _ = writeln!(text, "| hookgate ÷ floor | {} |", ratios.collect::<Vec<_>>().join(" | "));
        if let Some(note) = &self.note {
            let _ = writeln!(text, "\n{note}");
        }
        text
    }

    /// A line for each target.
    pub(crate) fn verdicts(&self) -> String {
        self.row.targets.iter().map(|target| self.verdict(*target)).collect()
    }

    /// hookgate's figure of each round in floor's of the same: what disturbed a round disturbed both, more or less.
    fn ratios(&self, figure: Figure) -> Vec<f64> {
        self.runs[1].iter().zip(&self.runs[2]).map(|(floor, hookgate)| hookgate[&figure] / floor[&figure]).collect()
    }

    fn verdict(&self, target: Target) -> String {
        let figure = target.figure();
        let of = |runs: &[Sample]| median(runs.iter().map(|run| run[&figure]).collect());
        let (floor, hookgate) = (of(&self.runs[1]), of(&self.runs[2]));
        let mut ratios = self.ratios(figure);
        ratios.sort_by(f64::total_cmp);
        let spread = match &ratios[..] {
            [least, .., most] => format!(" ({least:.2}–{most:.2})"),
            _ => String::new(),
        };
        let ratio = median(ratios);
        let (met, target) = target.judge(ratio, hookgate);
        format!(
            "| {} | {} | {} | {} | {ratio:.2}{spread} | {target} | {} |\n",
            self.row.name,
            figure.label(),
            figure.print(floor),
            figure.print(hookgate),
            if met { "met" } else { "**missed**" },
        )
    }
}

/// All targets, and on what they were measured.
pub(crate) fn summary(outcomes: &[Outcome]) -> Result<String, BoxError> {
    let mut text = machine()?;
    text.push_str("\n\n| | figure | floor | hookgate | ratio | target | |\n|---|---|--:|--:|--:|--:|---|\n");
    text.extend(outcomes.iter().map(Outcome::verdicts));
    for note in outcomes.iter().filter_map(|outcome| outcome.note.as_ref()) {
        let _ = writeln!(text, "\n{note}");
    }
    Ok(text)
}

/// Where this is measured.
fn machine() -> Result<String, BoxError> {
    let info = std::fs::read_to_string("/proc/cpuinfo")?;
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(format!(
        "Measured on {} with hookgate {} on {} cores ({}), Linux {}; client, upstream and proxy share the cores.",
        jiff::Timestamp::now().strftime("%Y-%m-%d"),
        env!("CARGO_PKG_VERSION"),
        std::thread::available_parallelism()?,
        model.trim_start_matches(['\t', ' ', ':']),
        release.split('-').next().unwrap_or_default().trim(),
    ))
}

const BEGIN: &str = "<!-- written by `make bench`: -->\n";
const END: &str = "<!-- until here -->\n";

/// Replaces what a file has between the marks.
pub(crate) fn put(file: &str, text: &str) -> Result<(), BoxError> {
    let old = std::fs::read_to_string(file)?;
    let parts = old.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{file} has no place for the figures: {BEGIN}… {END}"))?;
    Ok(std::fs::write(file, format!("{before}{BEGIN}{text}{END}{after}"))?)
}
