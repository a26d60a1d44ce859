//! Which names concern a handler: exact names, never patterns.

use std::sync::Arc;

/// The names that a handler (or a redaction rule) is for.
///
/// A name is compared whole. For a tool of an MCP server the listed name may be the tool's own or
/// `mcp__<server>__<tool>`. The parts of such a name cannot always be told apart (`mcp__a__b__c`), so every reading
/// counts: asking once too often is harmless, skipping a policy is not.
///
/// ```
/// use hookgate::hooks::Matcher;
/// let matcher = Matcher::of(["open_pr", "Write"]);
/// assert!(matcher.matches("Write") && matcher.matches("mcp__git-hub__open_pr"));
/// assert!(!matcher.matches("Write2") && !matcher.matches("write") && !matcher.matches("open_pr_now"));
/// assert!(Matcher::any().matches("Write2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher(Option<Arc<[Arc<str>]>>);

impl Matcher {
    /// Matches every name.
    pub fn any() -> Self {
        Matcher(None)
    }

    /// Matches the given names.
    pub fn of<N: Into<Arc<str>>>(names: impl IntoIterator<Item = N>) -> Self {
        Matcher(Some(names.into_iter().map(Into::into).collect()))
    }

    /// Whether `name` is one of them. A tool whose server is known is best given as [`qualified`].
    pub fn matches(&self, name: &str) -> bool {
        let Some(names) = &self.0 else { return true };
        names.iter().any(|listed| **listed == *name) || bare_names(name).any(|bare| names.iter().any(|l| **l == *bare))
    }

    /// The listed names; `None` when every name matches.
    pub fn names(&self) -> Option<&[Arc<str>]> {
        self.0.as_deref()
    }
}

/// The full name of a tool of an MCP server.
///
/// ```
/// assert_eq!(hookgate::hooks::qualified("files", "read"), "mcp__files__read");
/// ```
pub fn qualified(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

/// Every tool name that `mcp__<server>__<tool>` can be read to have.
fn bare_names(name: &str) -> impl Iterator<Item = &str> {
    let rest = name.strip_prefix("mcp__").unwrap_or("");
    (1..rest.len()).filter_map(move |at| rest.get(at..)?.strip_prefix("__")).filter(|bare| !bare.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_word_never_matches_a_longer_name() {
        let matcher = Matcher::of(["Write", "mcp__git-hub"]);
        for name in ["Writer", "MyWrite", "write", "mcp__git-hub__open_pr", "mcp__git-hub__", "mcp__Write", ""] {
            assert!(!matcher.matches(name), "{name}");
        }
    }

    #[test]
    fn mcp_names_match_bare_and_whole() {
        for listed in ["open_pr", "mcp__plugin_acme_git-hub__open_pr"] {
            assert!(Matcher::of([listed]).matches("mcp__plugin_acme_git-hub__open_pr"), "{listed}");
        }
        assert!(!Matcher::of(["mcp__other__open_pr"]).matches("mcp__files__open_pr"));
    }

    #[test]
    fn each_reading_of_an_ambiguous_name_counts() {
        for listed in ["b__c", "c", "mcp__a__b__c"] {
            assert!(Matcher::of([listed]).matches("mcp__a__b__c"), "{listed}");
        }
        assert!(Matcher::of(["_x"]).matches("mcp__a___x"));
        assert!(Matcher::of(["é"]).matches("mcp__ü__é"));
        assert!(!Matcher::of([""]).matches("mcp__a__"));
    }
}
