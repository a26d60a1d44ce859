//! The plain types: truth values, numbers, durations, lists of one, tables with free names.

use std::time::Duration;

use super::{Kind, Reader, Setting, Shape};
use crate::config::document::{Node, Value, join};

impl Setting for bool {
    fn shape() -> Shape {
        Shape::new(Kind::Bool)
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        match node.value {
            Value::Bool(value) => Some(value),
            _ => reader.wrong(node, shape),
        }
    }
}

impl Setting for u64 {
    fn shape() -> Shape {
        Shape::new(Kind::Integer)
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        let (low, high) = shape.range;
        match node.value {
            Value::Integer(number) => u64::try_from(number).ok().filter(|number| (low..=high).contains(number)),
            _ => None,
        }
        .or_else(|| reader.wrong(node, shape))
    }
}

impl Setting for usize {
    fn shape() -> Shape {
        u64::shape().within(0..=usize::MAX as u64)
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        usize::try_from(u64::read(node, shape, reader)?).ok().or_else(|| reader.wrong(node, shape))
    }
}

impl Setting for u32 {
    fn shape() -> Shape {
        u64::shape().within(0..=u32::MAX.into())
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        u32::try_from(u64::read(node, shape, reader)?).ok().or_else(|| reader.wrong(node, shape))
    }
}

/// The units of durations, in milliseconds, largest first.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl Setting for Duration {
    fn shape() -> Shape {
        Shape::new(Kind::Duration)
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        let (low, high) = shape.range;
        match &node.value {
            Value::Text(text) => millis(text).filter(|millis| (low..=high).contains(millis)),
            _ => None,
        }
        .map(Duration::from_millis)
        .or_else(|| reader.wrong(node, shape))
    }
}

fn millis(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

/// A duration with the largest unit that divides it.
pub(crate) fn duration_text(duration: Duration) -> String {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fitting =
        UNITS.iter().find(|(name, factor)| *name != "d" && millis.is_multiple_of(*factor) && millis >= *factor);
    fitting.map_or_else(|| format!("{millis}ms"), |(name, factor)| format!("{}{name}", millis / factor))
}

/// A single value, or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<T: Setting> Setting for OneOrMany<T> {
    fn shape() -> Shape {
        Shape::new(Kind::OneOrMany(Box::new(T::shape())))
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        let Kind::OneOrMany(element) = &shape.kind else { return reader.wrong(node, shape) };
        match &node.value {
            Value::List(nodes) => reader.elements(nodes, element).map(OneOrMany),
            _ => T::read(node, element, reader).map(|value| OneOrMany(vec![value])),
        }
    }
}

/// A table whose keys the operator names, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub(crate) Vec<(String, T)>);

impl<T: Setting> Setting for Named<T> {
    fn shape() -> Shape {
        Shape::new(Kind::Named(Box::new(T::shape())))
    }

    fn read(node: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<Self> {
        let (Value::Table(entries), Kind::Named(shape)) = (&node.value, &shape.kind) else {
            return reader.wrong(node, shape);
        };
        let read = |entry: &crate::config::document::Entry| {
            let value = reader.below(|path| join(path, &entry.key), |reader| T::read(&entry.node, shape, reader));
            value.map(|value| (entry.key.clone(), value))
        };
        let values: Vec<_> = entries.iter().map(read).collect();
        values.into_iter().collect::<Option<_>>().map(Named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        for (text, expected) in [
            ("500ms", Some(500)),
            ("30s", Some(30_000)),
            ("5m", Some(300_000)),
            ("24h", Some(86_400_000)),
            ("7d", Some(604_800_000)),
            ("", None),
            ("s", None),
            ("30", None),
            ("-1s", None),
            ("1.5s", None),
            ("1 s", None),
            ("99999999999999999999s", None),
            ("18446744073709551615s", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_written_as_a_person_would() {
        for text in ["500ms", "30s", "24h", "5m", "90s", "0ms"] {
            assert_eq!(duration_text(Duration::from_millis(millis(text).unwrap())), text);
        }
    }
}
