//! Leaving out and putting in elements of a JSON array, commas included.

use bytes::Bytes;

use super::{Edits, Span};

/// What is put in, by the element that it stands beside.
#[derive(Debug, Default)]
pub struct Inserts {
    /// Before the element of that index, in order of insertion.
    before: Vec<(usize, Bytes)>,
    /// After the element of that index, in order of insertion.
    after: Vec<(usize, Bytes)>,
}

impl Inserts {
    /// Puts an element before the one of that index.
    pub fn before(&mut self, index: usize, element: Bytes) {
        self.before.push((index, element));
    }

    /// Puts an element after the one of that index.
    pub fn after(&mut self, index: usize, element: Bytes) {
        self.after.push((index, element));
    }

    /// Whether nothing is put in.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// All elements around the one that an array would consist of.
    pub fn around(self, own: Option<Bytes>) -> Vec<Bytes> {
        let before = self.before.into_iter().map(|(_, element)| element);
        before.chain(own).chain(self.after.into_iter().map(|(_, element)| element)).collect()
    }
}

/// Edits an array whose elements stand at `spans`: elements with `drop` go, `inserts` come. Elements that stay are not
/// touched. An array without elements cannot be edited this way, as nothing tells where it is.
pub fn splice(edits: &mut Edits, spans: &[Span], drop: &[bool], inserts: Inserts) {
    let kept = |index: usize| !drop[index];
    let last_kept_before = |index: usize| (0..index).rev().find(|index| kept(*index));
    let mut index = 0;
    while index < spans.len() {
        if kept(index) {
            index += 1;
            continue;
        }
        let run_end = (index..spans.len()).find(|index| kept(*index)).unwrap_or(spans.len());
        let span = if run_end < spans.len() {
            Span { start: spans[index].start, end: spans[run_end].start }
        } else if index > 0 {
            Span { start: spans[index - 1].end, end: spans[run_end - 1].end }
        } else {
            Span { start: spans[0].start, end: spans[run_end - 1].end }
        };
        edits.remove(span);
        index = run_end;
    }
    // Both kinds come down to "after the nearest kept element, else in front of the first kept one, else alone". What
    // stands after an element comes before what stands before the next one.
    let before = inserts.before.into_iter().map(|(at, element)| (at, 1, element));
    let after = inserts.after.into_iter().map(|(at, element)| (at + 1, 0, element));
    let mut placed: Vec<(usize, u8, Bytes)> = before.chain(after).collect();
    placed.sort_by_key(|(at, side, _)| (*at, *side));
    let first_kept = (0..spans.len()).find(|index| kept(*index));
    let mut alone = false;
    for (at, _, element) in placed {
        match (last_kept_before(at), first_kept) {
            (Some(previous), _) => edits.insert(spans[previous].end, [b",", &element[..]].concat()),
            (None, Some(first)) => edits.insert(spans[first].start, [&element[..], b","].concat()),
            (None, None) if spans.is_empty() => {}
            (None, None) => {
                let comma: &[u8] = if alone { b"," } else { b"" };
                edits.insert(spans[0].start, [comma, &element[..]].concat());
                alone = true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Cursor, Value, parse_tree};

    /// Every choice of dropped and added elements of a small array must give the array that one would write by hand.
    #[test]
    fn all_combinations_are_well_formed() {
        let text = Bytes::from_static(b"[ 0 , 1,2 ]");
        let mut spans = Vec::new();
        Cursor::new(&text).array(|cursor| cursor.skip().map(|span| spans.push(span))).unwrap();
        for dropped in 0..8_u32 {
            let drop: Vec<bool> = (0..3).map(|index| dropped & 1 << index != 0).collect();
            for places in 0..64_u32 {
                let mut inserts = Inserts::default();
                let mut expected: Vec<String> = Vec::new();
                for index in 0..3 {
                    if places & 1 << index != 0 {
                        inserts.before(index, Bytes::from(format!("1{index}")));
                    }
                    if places & 8 << index != 0 {
                        inserts.after(index, Bytes::from(format!("2{index}")));
                    }
                }
                for (index, dropped) in drop.iter().enumerate() {
                    expected.extend((places & 1 << index != 0).then(|| format!("1{index}")));
                    expected.extend((!dropped).then(|| index.to_string()));
                    expected.extend((places & 8 << index != 0).then(|| format!("2{index}")));
                }
                let mut edits = Edits::default();
                splice(&mut edits, &spans, &drop, inserts);
                let out = edits.apply(&text).to_bytes();
                let Value::Array(elements) = parse_tree(&out).unwrap().value else { panic!() };
                let found: Vec<String> =
                    elements.iter().map(|node| String::from_utf8(node.span.of(&out).to_vec()).unwrap()).collect();
                let mut sorted = (found.clone(), expected.clone());
                sorted.0.sort();
                sorted.1.sort();
                assert_eq!(sorted.0, sorted.1, "{drop:?} {places:06b}");
                assert_eq!(found, expected, "{drop:?} {places:06b}");
            }
        }
    }
}
