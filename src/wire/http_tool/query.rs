//! Queries as names and values.

use std::borrow::Cow;
use std::collections::HashMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, utf8_percent_encode};

use super::path::has_broken_escape;

/// What a query is written with. A space is `%20`, which every server reads as one; not all do so with `+`.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A query's names, in order of their first appearance, each with its values.
pub(super) type Query = Vec<(String, Vec<String>)>;

/// Takes a query (without the question mark) apart as forms are.
pub(super) fn read(query: &str) -> Result<Query, &'static str> {
    let mut names: Query = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (decode(name)?, decode(value)?);
        match known.get(&name).and_then(|index| names.get_mut(*index)) {
            Some((_, values)) => values.push(value),
            None => {
                known.insert(name.clone(), names.len());
                names.push((name, vec![value]));
            }
        }
    }
    Ok(names)
}

/// Prints a query.
pub(super) fn print<'a>(query: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let encode = |text: &'a str| utf8_percent_encode(text, ESCAPED);
    let pairs = query.into_iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

fn decode(written: &str) -> Result<String, &'static str> {
    if has_broken_escape(written) {
        return Err("its query has a broken percent escape");
    }
    let spaced: Cow<'_, str> = if written.contains('+') { written.replace('+', " ").into() } else { written.into() };
    let text = percent_decode(spaced.as_bytes()).decode_utf8();
    text.map(Cow::into_owned).map_err(|_| "its query has bytes that are no UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_names_are_one_with_several_values() {
        let query = read("a=1&b=%C3%A9+x&&a=2&c&=e&a%5B%5D=3&d=x=y").unwrap();
        let shown: Vec<_> = query.iter().map(|(name, values)| format!("{name}: {}", values.join("|"))).collect();
        assert_eq!(shown, ["a: 1|2", "b: é x", "c: ", ": e", "a[]: 3", "d: x=y"]);
        assert!(read("").unwrap().is_empty());
        assert!(read("a=%zz").is_err() && read("a=%f").is_err() && read("%ff=1").is_err());
    }

    #[test]
    fn what_is_printed_is_read_again() {
        let pairs = [("a b", "1&2=3"), ("é", "+%20"), ("", "")];
        let printed = print(pairs);
        assert_eq!(printed, "a%20b=1%262%3D3&%C3%A9=%2B%2520&=");
        let again: Vec<_> =
            read(&printed).unwrap().into_iter().map(|(name, values)| (name, values[0].clone())).collect();
        assert_eq!(again, pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
