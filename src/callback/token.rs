//! The token of a callback, and the hash under which it is kept.

use std::fmt;

use crate::store::TokenHash;

/// The length of a token's text: that of a UUID.
pub(super) const TOKEN_LEN: usize = 36;

/// The secret in a callback's URL: 122 random bits, written as a UUID. Whoever has it can call back, once.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

impl Token {
    /// A new one, from the operating system's randomness.
    pub(super) fn random() -> Self {
        Token(crate::id::random_id())
    }

    /// What may be one. Whether it is tells the store.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte) || byte == b'-';
        (text.len() == TOKEN_LEN && text.bytes().all(fits)).then(|| Token(text.to_owned()))
    }

    /// The secret itself: for the URL, for who asked, and for the message that spends it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }
}

/// Shows nothing of it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The key of the hashes under which tokens are kept: a stolen store leads to no token, and a guess cannot be tried on it.
///
/// Processes that share a store need the same key.
#[derive(Clone)]
pub struct TokenKey([u8; 32]);

impl TokenKey {
    /// A key of this process alone: tokens of other processes are unknown to it.
    pub fn random() -> Self {
        let random = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].map(uuid::Uuid::into_bytes);
        Self::from_secret(random.as_flattened())
    }

    /// The key that follows from a secret of any length.
    pub fn from_secret(secret: &[u8]) -> Self {
        TokenKey(blake3::derive_key("hookgate 2026 callback token", secret))
    }

    pub(super) fn hash(&self, token: &Token) -> TokenHash {
        TokenHash::from_bytes(*blake3::keyed_hash(&self.0, token.0.as_bytes()).as_bytes())
    }
}

/// Shows nothing of it.
impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_uuid_and_shown_by_reveal_alone() {
        let token = Token::random();
        assert_eq!(uuid::Uuid::parse_str(token.reveal()).unwrap().get_version_num(), 4);
        assert_eq!(Token::parse(token.reveal()), Some(token.clone()));
        assert!(!format!("{token:?}").contains(token.reveal()));
        for other in ["", "a", &token.reveal().to_uppercase(), &format!("{}0", token.reveal())] {
            assert_eq!(Token::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_hash_depends_on_the_key() {
        let token = Token::random();
        let key = TokenKey::from_secret(b"s");
        assert_eq!(key.hash(&token), TokenKey::from_secret(b"s").hash(&token));
        assert_ne!(key.hash(&token), TokenKey::random().hash(&token));
        assert_ne!(key.hash(&token), key.hash(&Token::random()));
    }
}
