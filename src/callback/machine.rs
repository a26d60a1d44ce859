//! What the checks of a callback mean, and in which order they are made. No clock, no store, no sockets.
//!
//! ```text
//! path ─▶ method ─▶ token ─▶ content coding ─▶ declared length ─▶ body ─▶ the token's turn ─▶ delivery
//!  404      405     404 410        415              413         400 408 413    404 410          502
//! ```
//!
//! Nothing of the body is read before the token is known to be good. Until the delivery is done the token is as it was.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

use crate::id::Digest;
use crate::store::{TokenRecord, TokenState};
use crate::time::Timestamp;

/// What the worker is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The message is stored.
    Received,
    /// There is no such token, or no such path.
    Unknown,
    /// The token's time is over.
    Expired,
    /// The token brought its message already.
    Used,
    /// Only POST calls back.
    Method,
    /// The body could not be read.
    Aborted,
    /// The body took too long.
    Late,
    /// The body is too large.
    TooLarge,
    /// The body is coded in a way that is not understood.
    Coding,
    /// The message could not be stored or handed over.
    Undelivered,
}

impl Answer {
    /// The status and, of a refusal, what the body says.
    pub(super) fn status(self) -> (StatusCode, Option<&'static str>) {
        match self {
            Answer::Received => (StatusCode::OK, None),
            Answer::Unknown => (StatusCode::NOT_FOUND, Some("unknown token")),
            Answer::Expired => (StatusCode::GONE, Some("token expired")),
            Answer::Used => (StatusCode::GONE, Some("token already used")),
            Answer::Method => (StatusCode::METHOD_NOT_ALLOWED, Some("method not allowed")),
            Answer::Aborted => (StatusCode::BAD_REQUEST, Some("request aborted")),
            Answer::Late => (StatusCode::REQUEST_TIMEOUT, Some("request timed out")),
            Answer::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, Some("payload too large")),
            Answer::Coding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, Some("unsupported content encoding")),
            Answer::Undelivered => (StatusCode::BAD_GATEWAY, Some("delivery failed")),
        }
    }

    /// Whether the connection has no further use: what is left of the body would have to be read first.
    pub(super) fn closes(self) -> bool {
        matches!(self, Answer::TooLarge | Answer::Late | Answer::Aborted)
    }
}

/// The text that may be a token, of a path that has exactly one segment after the prefix.
pub(super) fn segment<'a>(path: &'a str, prefix: &str) -> Result<&'a str, Answer> {
    let rest = path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/'));
    rest.filter(|segment| !segment.is_empty() && !segment.contains('/')).ok_or(Answer::Unknown)
}

/// Only POST consumes a token: what else is asked, by a preview or a scanner, changes nothing.
pub(super) fn method(method: &Method) -> Result<(), Answer> {
    if *method == Method::POST { Ok(()) } else { Err(Answer::Method) }
}

/// What a token is good for at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It can be delivered.
    Open,
    /// Another callback is being delivered with it, until then at most.
    Busy { until: Timestamp },
    /// It was delivered.
    Used { at: Timestamp, body: Digest },
    /// Its time is over.
    Expired,
    /// There is none, or it is none any more.
    Unknown,
}

/// What a token's record means. How it ended is known for the time of its tombstone; what was revoked never was.
pub(super) fn standing(record: Option<&TokenRecord>, tombstone: Duration, now: Timestamp) -> Standing {
    let Some(record) = record else { return Standing::Unknown };
    if record.ended(now).is_some_and(|end| end.after(tombstone) <= now) {
        return Standing::Unknown;
    }
    match record.state {
        TokenState::Revoked { .. } => Standing::Unknown,
        TokenState::Delivered { at, body } => Standing::Used { at, body },
        TokenState::Claimed { until, .. } if until > now => Standing::Busy { until },
        TokenState::Open | TokenState::Claimed { .. } if record.expires_at <= now => Standing::Expired,
        TokenState::Open | TokenState::Claimed { .. } => Standing::Open,
    }
}

/// Whether the body is worth reading. That of a used token is within the grace, for it may be the same one again.
pub(super) fn worth_reading(standing: Standing, grace: Duration, now: Timestamp) -> Result<(), Answer> {
    match standing {
        Standing::Open | Standing::Busy { .. } => Ok(()),
        Standing::Used { at, .. } if at.after(grace) > now => Ok(()),
        Standing::Used { .. } => Err(Answer::Used),
        Standing::Expired => Err(Answer::Expired),
        Standing::Unknown => Err(Answer::Unknown),
    }
}

/// What comes next for a callback whose body is there, when its token turned out not to be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Try again.
    Again,
    /// Wait for what becomes of the other callback, until then at most.
    Wait { until: Timestamp },
    /// It is decided.
    Answer(Answer),
}

/// See [`Next`].
pub(super) fn next(standing: Standing, own: Digest, grace: Duration, now: Timestamp) -> Next {
    match standing {
        Standing::Open => Next::Again,
        Standing::Busy { until } => Next::Wait { until },
        Standing::Used { at, body } if body == own && at.after(grace) > now => Next::Answer(Answer::Received),
        Standing::Used { .. } => Next::Answer(Answer::Used),
        Standing::Expired => Next::Answer(Answer::Expired),
        Standing::Unknown => Next::Answer(Answer::Unknown),
    }
}

/// How a body is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// Not at all.
    Plain,
    /// With gzip.
    Gzip,
}

/// The coding that the headers declare.
pub(super) fn coding(headers: &HeaderMap) -> Result<Coding, Answer> {
    let mut found = Coding::Plain;
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for coding in value.to_str().map_err(|_| Answer::Coding)?.split(',').map(str::trim) {
            found = match coding.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" if found == Coding::Plain => Coding::Gzip,
                _ => return Err(Answer::Coding),
            };
        }
    }
    Ok(found)
}

/// Refuses a body that is declared to be too large, before any of it is asked for.
pub(super) fn declared(headers: &HeaderMap, limit: usize) -> Result<(), Answer> {
    let declared =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
    if declared.is_some_and(|declared| declared > limit as u64) { Err(Answer::TooLarge) } else { Ok(()) }
}

/// How a token appears in a list: the name of its state, and when it was delivered.
pub(super) fn listed(record: &TokenRecord, now: Timestamp) -> (&'static str, Option<Timestamp>) {
    match record.state {
        TokenState::Delivered { at, .. } => ("delivered", Some(at)),
        TokenState::Revoked { .. } => ("revoked", None),
        TokenState::Claimed { until, .. } if until > now => ("claimed", None),
        TokenState::Open | TokenState::Claimed { .. } if record.expires_at <= now => ("expired", None),
        TokenState::Open | TokenState::Claimed { .. } => ("open", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SessionKey;
    use crate::store::{ClaimId, TokenHash};

    const TOMBSTONE: Duration = Duration::from_millis(100);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_unix_millis(millis)
    }

    /// Issued at 0, expires at 1000.
    fn record(state: TokenState) -> TokenRecord {
        TokenRecord {
            hash: TokenHash::from_bytes([7; 32]),
            session: SessionKey { tenant: "t".into(), session: "s".into() },
            purpose: None,
            created_at: at(0),
            expires_at: at(1000),
            state,
        }
    }

    #[test]
    fn only_one_plain_segment_is_a_token() {
        assert_eq!(segment("/api/tmp-hooks/abc", "/api/tmp-hooks"), Ok("abc"));
        for path in [
            "/api/tmp-hooks",
            "/api/tmp-hooks/",
            "/api/tmp-hooks/a/",
            "/api/tmp-hooks/a/b",
            "/api/tmp-hooks//a",
            "/api/tmp-hooksx/a",
            "/x/a",
        ] {
            assert_eq!(segment(path, "/api/tmp-hooks"), Err(Answer::Unknown), "{path}");
        }
    }

    #[test]
    fn a_token_is_good_until_it_ends_and_remembered_for_its_tombstone() {
        let body = Digest::of(b"b");
        let claimed = TokenState::Claimed { claim: ClaimId::from_u128(1), until: at(1200) };
        let lapsing = TokenState::Claimed { claim: ClaimId::from_u128(1), until: at(500) };
        let used = TokenState::Delivered { at: at(300), body };
        for (state, now, expected) in [
            (TokenState::Open, 999, Standing::Open),
            (TokenState::Open, 1000, Standing::Expired),
            (TokenState::Open, 1099, Standing::Expired),
            (TokenState::Open, 1100, Standing::Unknown),
            (lapsing, 499, Standing::Busy { until: at(500) }),
            (lapsing, 500, Standing::Open),
            (lapsing, 1000, Standing::Expired),
            (claimed, 1100, Standing::Busy { until: at(1200) }),
            (claimed, 1200, Standing::Expired),
            (claimed, 1300, Standing::Unknown),
            (used, 399, Standing::Used { at: at(300), body }),
            (used, 400, Standing::Unknown),
            (TokenState::Revoked { at: at(10) }, 11, Standing::Unknown),
        ] {
            assert_eq!(standing(Some(&record(state)), TOMBSTONE, at(now)), expected, "{state:?} at {now}");
        }
        assert_eq!(standing(None, TOMBSTONE, at(0)), Standing::Unknown);
    }

    #[test]
    fn a_repetition_is_known_by_its_body_and_only_within_the_grace() {
        let used = Standing::Used { at: at(0), body: Digest::of(b"same") };
        let grace = Duration::from_millis(50);
        let answer = |body: &[u8], now| next(used, Digest::of(body), grace, at(now));
        assert_eq!(answer(b"same", 49), Next::Answer(Answer::Received));
        assert_eq!(answer(b"same", 50), Next::Answer(Answer::Used));
        assert_eq!(answer(b"other", 0), Next::Answer(Answer::Used));
        assert_eq!(next(used, Digest::of(b"same"), Duration::ZERO, at(0)), Next::Answer(Answer::Used));
        assert_eq!(worth_reading(used, grace, at(49)), Ok(()));
        assert_eq!(worth_reading(used, Duration::ZERO, at(0)), Err(Answer::Used));
    }

    #[test]
    fn gzip_is_the_only_coding() {
        let headers = |values: &[&str]| {
            let name = header::CONTENT_ENCODING;
            values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect::<HeaderMap>()
        };
        for values in [&[][..], &["identity"], &[""]] {
            assert_eq!(coding(&headers(values)), Ok(Coding::Plain), "{values:?}");
        }
        for values in [&["gzip"][..], &["X-GZip, identity"]] {
            assert_eq!(coding(&headers(values)), Ok(Coding::Gzip), "{values:?}");
        }
        for values in [&["br"][..], &["gzip, gzip"], &["gzip", "gzip"], &["gzip, br"], &["\u{e9}"]] {
            assert_eq!(coding(&headers(values)), Err(Answer::Coding), "{values:?}");
        }
    }

    #[test]
    fn a_declared_length_is_checked_to_the_byte() {
        let headers = |length: &str| HeaderMap::from_iter([(header::CONTENT_LENGTH, length.parse().unwrap())]);
        assert_eq!(declared(&headers("10"), 10), Ok(()));
        assert_eq!(declared(&headers("11"), 10), Err(Answer::TooLarge));
        assert_eq!(declared(&headers("18446744073709551615"), 10), Err(Answer::TooLarge));
        assert_eq!(declared(&HeaderMap::new(), 10), Ok(()));
    }

    #[test]
    fn lists_name_the_state_of_the_moment() {
        let claimed = TokenState::Claimed { claim: ClaimId::from_u128(1), until: at(500) };
        assert_eq!(listed(&record(claimed), at(499)), ("claimed", None));
        assert_eq!(listed(&record(claimed), at(500)), ("open", None));
        assert_eq!(listed(&record(TokenState::Open), at(1000)), ("expired", None));
        let delivered = TokenState::Delivered { at: at(3), body: Digest::EMPTY };
        assert_eq!(listed(&record(delivered), at(9999)), ("delivered", Some(at(3))));
        assert_eq!(listed(&record(TokenState::Revoked { at: at(1) }), at(2)), ("revoked", None));
    }
}
