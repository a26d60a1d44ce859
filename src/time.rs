//! Wall-clock time as it is shown. Durations and deadlines use [`std::time::Instant`] and never this.

use std::fmt;

/// A moment, to the millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The current moment by the system's clock.
    pub fn now() -> Self {
        Timestamp(jiff::Timestamp::now().as_millisecond())
    }

    /// The moment that many milliseconds after 1970-01-01T00:00:00Z.
    pub fn from_unix_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub fn unix_millis(self) -> i64 {
        self.0
    }
}

/// RFC 3339 with milliseconds and `Z`.
///
/// ```
/// use hookgate::time::Timestamp;
/// assert_eq!(Timestamp::from_unix_millis(1_500).to_string(), "1970-01-01T00:00:01.500Z");
/// ```
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
