//! The mark by which a handler's own calls through hookgate are recognised.

use http::HeaderName;

use crate::id::random_key;
use crate::time::Timestamp;

/// The header that carries the mark.
pub(crate) const DISPATCH_HEADER: HeaderName = HeaderName::from_static("x-hookgate-dispatch");

/// Signs the `x-hookgate-dispatch` header.
#[derive(Clone)]
pub struct DispatchKey([u8; 32]);

impl DispatchKey {
    /// A key of this process alone.
    pub fn random() -> Self {
        DispatchKey(random_key())
    }

    /// A key shared by several processes, derived from a secret of any length.
    pub fn from_secret(secret: &[u8]) -> Self {
        DispatchKey(blake3::derive_key("hookgate 2026 dispatch token", secret))
    }

    /// `<eventId>.<expiry in Unix milliseconds>.<mac in hex>`
    ///
    /// ```
    /// use hookgate::{dispatch::DispatchKey, time::Timestamp};
    /// let key = DispatchKey::random();
    /// let token = key.issue("e1", Timestamp::from_unix_millis(1_000));
    /// assert!(key.verify(token.as_bytes(), Timestamp::from_unix_millis(1_000)));
    /// assert!(!key.verify(token.as_bytes(), Timestamp::from_unix_millis(1_001)));
    /// assert!(!DispatchKey::random().verify(token.as_bytes(), Timestamp::from_unix_millis(0)));
    /// ```
    pub fn issue(&self, event_id: &str, expires: Timestamp) -> String {
        let claim = format!("{event_id}.{}", expires.unix_millis());
        let mac = blake3::keyed_hash(&self.0, claim.as_bytes());
        format!("{claim}.{}", mac.to_hex())
    }

    /// Whether this is a token of this key that still holds. The comparison takes the same time wherever it differs.
    pub fn verify(&self, token: &[u8], now: Timestamp) -> bool {
        let Some((claim, mac)) = std::str::from_utf8(token).ok().and_then(|token| token.rsplit_once('.')) else {
            return false;
        };
        let Ok(mac) = blake3::Hash::from_hex(mac) else { return false };
        if blake3::keyed_hash(&self.0, claim.as_bytes()) != mac {
            return false;
        }
        let expires = claim.rsplit_once('.').and_then(|(_, expiry)| expiry.parse().ok());
        expires.is_some_and(|expires| now.unix_millis() <= expires)
    }
}

/// Shows nothing of the key.
impl std::fmt::Debug for DispatchKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DispatchKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_changed_token_holds() {
        let key = DispatchKey::from_secret(b"s");
        let token = key.issue("a-b", Timestamp::from_unix_millis(9_000));
        let now = Timestamp::from_unix_millis(0);
        assert!(DispatchKey::from_secret(b"s").verify(token.as_bytes(), now));
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] ^= 1;
            assert!(!key.verify(&changed, now), "byte {at}");
        }
        for cut in ["", ".", "..", "a.1", "\u{e9}.1.00"] {
            assert!(!key.verify(cut.as_bytes(), now), "{cut}");
        }
        assert!(!key.verify(&[0xff], now));
        assert!(!format!("{key:?}").contains("115"));
    }
}
