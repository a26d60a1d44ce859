//! Which paths are a tool's.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;

use super::PlainPath;

/// What the literal parts of a template may consist of.
const LITERAL: &[u8] = b"-_.~:@!$&'()*+,=";

/// A path with named parts, such as `/v1/charges/{charge}/refund`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    Parameter(String),
}

/// The value of a named part in a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The part's name.
    pub name: String,
    /// Its text, without escapes.
    pub value: String,
    /// Where it stands in the path, in bytes.
    pub at: Range<usize>,
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected a path such as \"/v1/charges/{{charge}}/refund\"")]
pub struct TemplateError(String);

impl Template {
    /// Reads a template. A parameter is a whole segment; a slash at the end makes no difference.
    ///
    /// ```
    /// use hookgate::wire::http_tool::{PlainPath, Template};
    /// let template = Template::parse("/v1/charges/{charge}/refund").unwrap();
    /// let path = PlainPath::read("/v1/charges/ch_1/refund").unwrap();
    /// assert_eq!(template.matches(&path).unwrap()[0].value, "ch_1");
    /// assert!(Template::parse("/v1/{a}-{b}").is_err());
    /// ```
    ///
    /// # Errors
    /// [`TemplateError`]: what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(TemplateError("it does not start with a slash".into()));
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let mut parts: Vec<Part> = Vec::new();
        for segment in rest.split('/').filter(|_| text.len() > 1) {
            let part = part(segment)?;
            if matches!(part, Part::Parameter(_)) && parts.contains(&part) {
                return Err(TemplateError(format!("it has the parameter {segment} twice")));
            }
            parts.push(part);
        }
        Ok(Template { text: text.to_owned(), parts })
    }

    /// The values of the parameters in a path, in order; `None` when the path is another one.
    pub fn matches(&self, path: &PlainPath) -> Option<Vec<Parameter>> {
        if self.parts.len() != path.segments().len() {
            return None;
        }
        let mut values = Vec::new();
        for (part, segment) in self.parts.iter().zip(path.segments()) {
            match part {
                Part::Literal(literal) if *literal == segment.text => {}
                Part::Literal(_) => return None,
                Part::Parameter(name) => {
                    values.push(Parameter { name: name.clone(), value: segment.text.clone(), at: segment.at.clone() })
                }
            }
        }
        Some(values)
    }

    /// Which of two templates that match the same path is meant: the one that has a literal where the other first has a
    /// parameter is less. Equal ones match the same paths.
    pub fn precedence(&self, other: &Self) -> Ordering {
        let rank = |part: &Part| match part {
            Part::Literal(literal) => (0, literal.clone()),
            Part::Parameter(_) => (1, String::new()),
        };
        self.parts.iter().map(rank).cmp(other.parts.iter().map(rank))
    }
}

/// As it was written.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn part(segment: &str) -> Result<Part, TemplateError> {
    if let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        return match !name.is_empty() && name.bytes().all(fits) {
            true => Ok(Part::Parameter(name.to_owned())),
            false => Err(TemplateError(format!("the parameter {segment} has no name of letters, digits, _ and -"))),
        };
    }
    if segment.contains(['{', '}']) {
        return Err(TemplateError(format!("a parameter is a whole segment, and {segment:?} is not")));
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || LITERAL.contains(&byte);
    match !matches!(segment, "" | "." | "..") && segment.bytes().all(plain) {
        true => Ok(Part::Literal(segment.to_owned())),
        false => Err(TemplateError(format!("{segment:?} is no plain segment"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(template: &str, path: &str) -> Option<Vec<(String, String)>> {
        let values = Template::parse(template).unwrap().matches(&PlainPath::read(path).unwrap())?;
        Some(values.into_iter().map(|value| (value.name, value.value)).collect())
    }

    #[test]
    fn parameters_take_one_segment() {
        let one = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(values("/v1/{a}/x/{b}", "/v1/1/x/%32/"), Some(vec![one("a", "1"), one("b", "2")]));
        assert_eq!(values("/v1/search", "/v1/%73earch"), Some(vec![]));
        assert_eq!(values("/", "/"), Some(vec![]));
        for path in ["/v1/1/y/2", "/v1/1/x", "/v1/1/x/2/3", "/V1/1/x/2", "/"] {
            assert_eq!(values("/v1/{a}/x/{b}", path), None, "{path}");
        }
    }

    #[test]
    fn literals_go_before_parameters() {
        let less = |a: &str, b: &str| Template::parse(a).unwrap().precedence(&Template::parse(b).unwrap());
        assert_eq!(less("/a/search", "/a/{id}"), Ordering::Less);
        assert_eq!(less("/a/b/{y}", "/a/{x}/c"), Ordering::Less);
        assert_eq!(less("/a/{x}/c", "/a/{y}/c/"), Ordering::Equal);
        assert_ne!(less("/a/b", "/a/c"), Ordering::Equal);
    }

    #[test]
    fn what_is_no_template_says_why() {
        for (text, says) in [
            ("", "slash"),
            ("v1", "slash"),
            ("//", "\"\""),
            ("/a//b", "\"\""),
            ("/a/..", "\"..\""),
            ("/a%20b", "\"a%20b\""),
            ("/a;b", "\"a;b\""),
            ("/{}", "no name"),
            ("/{a b}", "no name"),
            ("/{a}/{a}", "twice"),
            ("/x{a}", "whole segment"),
            ("/{a}:cancel", "whole segment"),
        ] {
            let error = Template::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
