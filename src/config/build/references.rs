//! References to the environment, and the headers that they fill.

use http::{HeaderName, HeaderValue};

use super::Surroundings;
use crate::config::describe::At;
use crate::config::error::Problems;
use crate::config::keys::EnvName;

/// Headers that HTTP itself needs, or that hookgate answers for.
const NOT_OURS: [&str; 9] =
    ["connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];

/// The name of a header that an operator may set.
pub(super) fn name<T>(name: &str, at: &At<T>, problems: &mut Problems) -> Option<HeaderName> {
    match HeaderName::try_from(name) {
        Ok(header) if NOT_OURS.contains(&header.as_str()) || header.as_str().starts_with("x-hookgate-") => {
            at.reject(problems, format!("the header {header} belongs to the transport or to hookgate itself"));
            None
        }
        Ok(header) => Some(header),
        Err(_) => {
            at.reject(problems, format!("{name:?} is not the name of a header"));
            None
        }
    }
}

/// The value of an environment variable.
pub(super) fn variable<'a>(
    name: &At<EnvName>,
    around: &'a Surroundings<'_>,
    problems: &mut Problems,
) -> Option<&'a str> {
    let value = around.environment.get(&***name).map(|value| value.trim()).filter(|value| !value.is_empty());
    if value.is_none() {
        name.reject(problems, format!("the environment variable {} is not set, or empty", &***name));
    }
    value
}

/// A value that is never shown. `at` is where it was referred to.
pub(super) fn secret<T>(text: &str, at: &At<T>, problems: &mut Problems) -> Option<HeaderValue> {
    let Ok(mut value) = HeaderValue::try_from(text) else {
        at.reject(problems, "the value that this refers to has letters that a header cannot hold");
        return None;
    };
    value.set_sensitive(true);
    Some(value)
}
