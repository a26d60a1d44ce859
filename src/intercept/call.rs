//! What can be decided about a call before anyone is asked.

use bytes::Bytes;

use crate::hooks::FailureKind;
use crate::wire::json::{Cursor, Kind, find_duplicate};

/// Why a call cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unjudgeable {
    /// The kind of failure that handlers' failure modes are asked about.
    pub(crate) kind: FailureKind,
    /// What is wrong, in a few words.
    pub(crate) what: String,
}

/// Checks that a call's arguments are one JSON object that every reader reads alike. They are never repaired: a tool that
/// runs on guessed arguments does what no one asked for.
pub(crate) fn judgeable(input: &Bytes, most: usize) -> Result<(), Unjudgeable> {
    if input.len() > most {
        return Err(too_large(most));
    }
    let malformed = |what: String| Unjudgeable { kind: FailureKind::MalformedInput, what };
    match Cursor::new(input).kind() {
        Ok(Kind::Object) => {}
        _ => return Err(malformed("its arguments are not a JSON object".into())),
    }
    match find_duplicate(input) {
        Ok(None) => Ok(()),
        Ok(Some(duplicate)) => Err(malformed(format!("its arguments have the member {:?} twice", duplicate.name))),
        Err(error) => Err(malformed(format!("its arguments are not valid JSON: {error}"))),
    }
}

/// A call whose arguments are over the bound of what is held.
pub(crate) fn too_large(most: usize) -> Unjudgeable {
    Unjudgeable { kind: FailureKind::TooLargeInput, what: format!("its arguments are over {most} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_objects_are_judged() {
        for good in [r#"{}"#, r#"{"a":[{"b":1},{"b":2}]}"#, r#"{"s":"\ud800"}"#] {
            assert_eq!(judgeable(&Bytes::from_static(good.as_bytes()), 100), Ok(()), "{good}");
        }
        for bad in [
            "",
            "[]",
            "null",
            r#"{"a":1"#,
            r#"{"path":"a.txt","body":"half"#,
            r#"{"host":1,"host":2}"#,
            r#"{"host":1,"ho\u0073t":2}"#,
            r#"{"x":{"a":1,"a":2}}"#,
            r#"{} {}"#,
        ] {
            assert!(judgeable(&Bytes::from_static(bad.as_bytes()), 100).is_err(), "{bad}");
        }
    }
}
