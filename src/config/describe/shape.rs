//! What a key accepts, as data.

use std::fmt;
use std::time::Duration;

use super::duration_text;
use crate::config::document::Value;

/// One key of a table.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) shape: Shape,
    pub(crate) default: Option<Value>,
    pub(crate) required: bool,
}

/// What a value has to look like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) kind: Kind,
    /// The range of an integer, or of a duration in milliseconds; both ends belong to it.
    pub(crate) range: (u64, u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Bool,
    Integer,
    Duration,
    /// Text, and in words what it has to be.
    Text(&'static str),
    /// One of these words, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
    List(Box<Shape>),
    /// A single value or a list of them.
    OneOrMany(Box<Shape>),
    Table(Vec<Key>),
    /// A table whose keys the operator names.
    Named(Box<Shape>),
}

impl Shape {
    pub(crate) fn new(kind: Kind) -> Self {
        Shape { kind, range: (0, u64::MAX) }
    }

    /// Narrows the range of an integer, or of a duration in milliseconds.
    pub(crate) fn within(mut self, range: std::ops::RangeInclusive<u64>) -> Self {
        self.range = range.into_inner();
        self
    }

    /// Whether the value is written as a string.
    pub(crate) fn is_text(&self) -> bool {
        match &self.kind {
            Kind::Text(_) | Kind::Choice(_) | Kind::Duration => true,
            Kind::OneOrMany(shape) => shape.is_text(),
            _ => false,
        }
    }

    /// The shape of a key's value, if this is a table with that key.
    pub(crate) fn key(&self, name: &str) -> Option<&Shape> {
        match &self.kind {
            Kind::Table(keys) => keys.iter().find(|key| key.name == name).map(|key| &key.shape),
            _ => None,
        }
    }
}

/// What is accepted, as the end of a sentence that starts with "expected".
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.range;
        let time = |millis| duration_text(Duration::from_millis(millis));
        match &self.kind {
            Kind::Bool => f.write_str("true or false"),
            Kind::Integer => write!(f, "an integer from {low} to {high}"),
            Kind::Duration => {
                write!(f, "a duration from {} to {}, such as \"500ms\", \"30s\" or \"24h\"", time(low), time(high))
            }
            Kind::Text(what) => f.write_str(what),
            Kind::Choice(words) => {
                let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
                f.write_str(&words.join(" or "))
            }
            Kind::List(shape) => write!(f, "a list, each element {shape}"),
            Kind::OneOrMany(shape) => write!(f, "{shape}, or a list of such"),
            Kind::Table(keys) => {
                let names: Vec<_> = keys.iter().map(|key| key.name).collect();
                write!(f, "a table with the keys {}", names.join(", "))
            }
            Kind::Named(shape) => write!(f, "a table, each value {shape}"),
        }
    }
}

/// The name that was probably meant, if one is near.
pub(crate) fn closest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A third of the letters may be wrong (two letters that changed places are two); beyond that a suggestion misleads.
    let most = name.chars().count().div_ceil(3);
    names.map(|other| (distance(name, other), other)).filter(|(distance, _)| *distance <= most).min().map(|near| near.1)
}

/// How many letters have to be put in, taken out or changed (Levenshtein).
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().enumerate() {
        let mut diagonal = index;
        let mut before = index + 1;
        for (cell, other) in row.iter_mut().skip(1).zip(&right) {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = *cell;
            before = changed.min(diagonal + 1).min(before + 1);
            *cell = before;
        }
    }
    // The first cell stands for an empty `right`; it is only read through `before`.
    if right.is_empty() { left.chars().count() } else { row.last().copied().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_letter_changes() {
        for (left, right, expected) in [
            ("", "", 0),
            ("", "ab", 2),
            ("ab", "", 2),
            ("listen", "listen", 0),
            ("lisen", "listen", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left, right), expected, "{left} {right}");
        }
    }

    #[test]
    fn a_suggestion_is_only_made_when_it_is_near() {
        assert_eq!(closest("lissten", ["tls", "listen"].into_iter()), Some("listen"));
        assert_eq!(closest("sandbox", ["tls", "listen"].into_iter()), None);
    }
}
