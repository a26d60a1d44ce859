//! What an agent brings, put together from the pieces in which it comes.

use crate::limits::MAX_OBSERVED_TEXT_BYTES;

/// Artifacts of one task that are told apart; more are left out.
const MAX_ARTIFACTS: usize = 100;

/// The texts of a task's artifacts, up to what events may tell of them.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    task: String,
    /// By their ids, in the order in which they began.
    texts: Vec<(String, String)>,
    truncated: bool,
}

impl Artifacts {
    /// A piece comes. A stream tells of one task: what was kept of another one goes.
    pub(super) fn add(&mut self, task: &str, artifact: String, append: bool, text: &str) {
        if self.task != task {
            *self = Artifacts { task: task.to_owned(), ..Artifacts::default() };
        }
        let at = self.texts.iter().position(|(known, _)| *known == artifact);
        let at = match at {
            Some(at) => at,
            None if self.texts.len() == MAX_ARTIFACTS => {
                self.truncated = true;
                return;
            }
            None => {
                self.texts.push((artifact, String::new()));
                self.texts.len() - 1
            }
        };
        if let Some((_, known)) = self.texts.get_mut(at).filter(|_| !append) {
            known.clear();
        }
        let room = MAX_OBSERVED_TEXT_BYTES - self.texts.iter().map(|(_, text)| text.len()).sum::<usize>();
        let piece = text.get(..text.floor_char_boundary(room)).unwrap_or(text);
        self.truncated |= piece.len() < text.len();
        if let Some((_, known)) = self.texts.get_mut(at) {
            known.push_str(piece);
        }
    }

    /// What came of a task, and whether something is missing.
    pub(super) fn of(&self, task: &str) -> (String, bool) {
        if self.task != task {
            return (String::new(), false);
        }
        let texts: Vec<&str> =
            self.texts.iter().map(|(_, text)| text.as_str()).filter(|text| !text.is_empty()).collect();
        (texts.join("\n"), self.truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together_by_artifact() {
        let mut artifacts = Artifacts::default();
        for (artifact, append, text) in
            [("a", false, "on"), ("b", false, "two"), ("a", true, "e"), ("c", false, "x"), ("c", false, "three")]
        {
            artifacts.add("t", artifact.to_owned(), append, text);
        }
        assert_eq!(artifacts.of("t"), ("one\ntwo\nthree".to_owned(), false));
        assert_eq!(artifacts.of("u"), (String::new(), false));
        artifacts.add("u", "a".to_owned(), true, "other");
        assert_eq!((artifacts.of("t").0, artifacts.of("u").0), (String::new(), "other".to_owned()));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut artifacts = Artifacts::default();
        artifacts.add("t", "a".to_owned(), false, &"é".repeat(MAX_OBSERVED_TEXT_BYTES));
        artifacts.add("t", "a".to_owned(), true, "more");
        let (text, truncated) = artifacts.of("t");
        assert!(text.len() <= MAX_OBSERVED_TEXT_BYTES && truncated);
        let mut artifacts = Artifacts::default();
        for number in 0..=MAX_ARTIFACTS {
            artifacts.add("t", number.to_string(), false, "x");
        }
        assert_eq!((artifacts.of("t").0.matches('x').count(), artifacts.of("t").1), (MAX_ARTIFACTS, true));
    }
}
