//! The routing table: host and path to a route. Pure: it is given strings and gives strings.

use std::cmp::Reverse;
use std::fmt::Write as _;

use super::path::{self, Ambiguous};

/// One entry of the table.
pub(super) struct Entry<T> {
    /// Only for this host, in lower case and without a port.
    pub(super) host: Option<String>,
    /// Empty for `/`, else `/a/b` without a slash at the end.
    pub(super) prefix: String,
    /// What is found.
    pub(super) route: T,
}

/// Which paths lead where.
pub(super) struct Table<T> {
    /// Whether a path is hookgate's own; that wins over every route.
    own: fn(&str) -> bool,
    /// In the order in which they are tried: longest prefix first, with a host before without.
    entries: Vec<Entry<T>>,
}

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a, T> {
    /// To hookgate itself.
    Own,
    /// To a route; `rest` is what is left of the path: empty, or with a slash at its start.
    Route { route: &'a T, rest: &'a str },
}

#[derive(PartialEq, Eq)]
enum Place {
    Own,
    Entry(usize),
}

impl<T> Table<T> {
    pub(super) fn new(own: fn(&str) -> bool, mut entries: Vec<Entry<T>>) -> Self {
        entries.sort_by_key(|entry| Reverse((entry.prefix.len(), entry.host.is_some())));
        Table { own, entries }
    }

    /// Finds the route of a path (without its query). `host` is the request's authority as it came.
    ///
    /// # Errors
    /// Readings of the path disagree about its route, or one of them leaves the route's prefix.
    pub(super) fn find<'a>(&'a self, host: Option<&str>, path: &'a str) -> Result<Option<Found<'a, T>>, Ambiguous> {
        let host = host.map(bare_host);
        let place = self.place(host.as_deref(), path);
        for reading in path::readings(path)? {
            if self.place(host.as_deref(), &reading) != place {
                return Err(Ambiguous("the request path can be read as one of another route"));
            }
        }
        let entry = match place {
            None => return Ok(None),
            Some(Place::Own) => return Ok(Some(Found::Own)),
            Some(Place::Entry(index)) => self.entries.get(index),
        };
        let Some(entry) = entry else { return Ok(None) };
        let rest = path.get(entry.prefix.len()..).unwrap_or_default();
        if rest.starts_with("//") {
            return Err(Ambiguous("the request path has an empty segment where its route ends"));
        }
        Ok(Some(Found::Route { route: &entry.route, rest }))
    }

    fn place(&self, host: Option<&str>, path: &str) -> Option<Place> {
        if (self.own)(path) {
            return Some(Place::Own);
        }
        let position = self.entries.iter().position(|entry| {
            let rest = path.strip_prefix(entry.prefix.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                && entry.host.as_deref().is_none_or(|wanted| host == Some(wanted))
        });
        position.map(Place::Entry)
    }

    /// What may be found for a host.
    pub(super) fn of_host(&self, host: Option<&str>) -> impl Iterator<Item = &T> {
        let host = host.map(bare_host);
        let fits = move |entry: &&Entry<T>| entry.host.as_deref().is_none_or(|wanted| host.as_deref() == Some(wanted));
        self.entries.iter().filter(fits).map(|entry| &entry.route)
    }

    /// The prefixes and what `describe` says of them, for the answer to a path without a route.
    pub(super) fn describe(&self, describe: impl Fn(&T) -> String) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let prefix = if entry.prefix.is_empty() { "/" } else { &entry.prefix };
            let host = entry.host.as_ref().map(|host| format!(" on host {host}")).unwrap_or_default();
            let comma = if text.is_empty() { "" } else { ", " };
            // Writing to a String cannot fail.
            let _ = write!(text, "{comma}{prefix}{host} ({})", describe(&entry.route));
        }
        text
    }
}

/// An authority's host: lower case, without a port and without a dot at the end.
pub(super) fn bare_host(authority: &str) -> String {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<&'static str> {
        let entry = |host: Option<&str>, prefix: &str, route| Entry {
            host: host.map(str::to_owned),
            prefix: prefix.to_owned(),
            route,
        };
        Table::new(
            |path| path == "/own",
            vec![
                entry(None, "/a", "a"),
                entry(None, "/a/b", "a-b"),
                entry(Some("x.example"), "/a", "x-a"),
                entry(None, "/other", "other"),
                entry(None, "/own", "shadowed"),
            ],
        )
    }

    fn found(host: &str, path: &str) -> Result<Option<(&'static str, String)>, Ambiguous> {
        Ok(table().find(Some(host), path)?.map(|found| match found {
            Found::Own => ("own", String::new()),
            Found::Route { route, rest } => (*route, rest.to_owned()),
        }))
    }

    #[test]
    fn the_longest_prefix_wins_and_ends_at_a_slash() {
        for (host, path, route, rest) in [
            ("h", "/a", "a", ""),
            ("h", "/a/", "a", "/"),
            ("h", "/a/v1/messages", "a", "/v1/messages"),
            ("h", "/a/b/c", "a-b", "/c"),
            ("h", "/a/bc", "a", "/bc"),
            ("X.Example:8443", "/a/v1", "x-a", "/v1"),
            ("x.example.", "/a/b/c", "a-b", "/c"),
            ("h", "/a/x%2Fy", "a", "/x%2Fy"),
            ("h", "/a/x//y", "a", "/x//y"),
            ("h", "/own", "own", ""),
            ("h", "/own/x", "shadowed", "/x"),
        ] {
            assert_eq!(found(host, path), Ok(Some((route, rest.to_owned()))), "{host} {path}");
        }
        for path in ["/", "/ab", "/A/v1", "/othe"] {
            assert_eq!(found("h", path), Ok(None), "{path}");
        }
    }

    #[test]
    fn a_path_with_two_routes_has_none() {
        for path in [
            "/%61/v1",
            "/a%2Fb/c",
            "/a%2fv1",
            "//a/v1",
            "/a//b/c",
            "/a/%62/c",
            "/a/%2562/c",
            "/a\\b",
            "/a/../other",
            "/a/..%2fother",
            "/a//v1",
            "/%6fwn",
            "*",
        ] {
            assert!(found("h", path).is_err(), "{path}");
        }
    }

    #[test]
    fn hosts_lose_case_and_port() {
        for (authority, host) in [("A.example:80", "a.example"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("b.", "b")]
        {
            assert_eq!(bare_host(authority), host);
        }
    }

    #[test]
    fn the_known_prefixes_are_named() {
        assert_eq!(
            table().describe(|route| route.to_uppercase()),
            "/other (OTHER), /a/b (A-B), /own (SHADOWED), /a on host x.example (X-A), /a (A)"
        );
    }
}
