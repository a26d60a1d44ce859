//! How long a refused request's body is still read.
//!
//! A client that is in the middle of sending gets an error of its own when the connection closes on it, and never sees
//! the refusal. So the rest of the body is read and dropped, within these bounds.

use std::time::Duration;

/// At most this much is read. It leaves room for the largest request that the model APIs take (32 MB) many times.
pub(super) const LINGER_BYTES: usize = 256 << 20;
/// Not for longer than this.
pub(super) const LINGER_TIME: Duration = Duration::from_secs(10);
