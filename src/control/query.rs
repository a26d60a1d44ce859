//! What is asked for in a request's query and `accept` header.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use http::{HeaderMap, header};

use super::problem::Problem;

/// A parameter's name and value.
type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The parameters of a query, each of them known and given once.
pub(super) fn pairs<'a>(query: &'a str, known: &[&str]) -> Result<Vec<Pair<'a>>, Problem> {
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        if pairs.iter().any(|(other, _)| *other == name) {
            return Err(Problem::bad_request(format!("The parameter {name} is given twice; give it once.")));
        }
        if !known.contains(&&*name) {
            let detail = format!("There is no parameter {name:?}; there are {}.", known.join(", "));
            return Err(Problem::bad_request(detail));
        }
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// A number within bounds, both of which belong to it.
pub(super) fn number<T: FromStr + PartialOrd + Display>(
    name: &str,
    value: &str,
    low: T,
    high: T,
) -> Result<T, Problem> {
    value.parse().ok().filter(|number| low <= *number && *number <= high).ok_or_else(|| {
        Problem::bad_request(format!("The parameter {name} is {value:?}; it has to be a number from {low} to {high}."))
    })
}

/// `true` or `false`.
pub(super) fn flag(name: &str, value: &str) -> Result<bool, Problem> {
    value.parse().map_err(|_| {
        Problem::bad_request(format!("The parameter {name} is {value:?}; it has to be one of: true, false."))
    })
}

/// Whether `accept` names a media type. Whoever names it wants it; preferences between types are not weighed.
pub(super) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = values.flat_map(|value| value.split(',')).filter_map(|range| range.split(';').next());
    types.any(|range| range.trim().eq_ignore_ascii_case(media_type))
}
