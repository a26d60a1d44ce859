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

    /// The moment that much later; the last one there is when that is too far away.
    ///
    /// ```
    /// use hookgate::time::Timestamp;
    /// let second = Timestamp::from_unix_millis(0).after(std::time::Duration::from_secs(1));
    /// assert_eq!(second.unix_millis(), 1_000);
    /// ```
    pub fn after(self, duration: std::time::Duration) -> Self {
        Timestamp(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long it is from this moment until a later one; zero when that is not later.
    pub fn until(self, later: Timestamp) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
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
