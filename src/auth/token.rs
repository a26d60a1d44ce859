//! The bearer token.

use std::fmt;

/// What whoever shows the token is called.
pub(super) const TOKEN_NAME: &str = "token";
/// A shorter token could be guessed.
const MIN_TOKEN_BYTES: usize = 16;
const MAX_TOKEN_BYTES: usize = 4096;

/// A token as hookgate keeps it: by its digest.
#[derive(Clone)]
pub struct Token(blake3::Hash);

/// Why a text is no token. It does not say what the text was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has 16 to 4096 letters without spaces; `openssl rand -hex 32` makes one that nobody guesses")]
#[non_exhaustive]
pub struct TokenError;

impl Token {
    /// Takes a token in. White space around it is not part of it.
    ///
    /// ```
    /// use hookgate::auth::Token;
    /// assert!(Token::new("0123456789abcdef\n").is_ok());
    /// assert!(Token::new("secret").is_err());
    /// ```
    ///
    /// # Errors
    /// It is shorter than 16 bytes, longer than 4096, or has letters that a header cannot carry.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        let fits = (MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&text.len());
        (fits && text.bytes().all(|byte| byte.is_ascii_graphic())).then(|| Token(digest(text))).ok_or(TokenError)
    }

    /// Whether a text is this token. It takes the same time wherever they differ.
    pub(super) fn is(&self, text: &str) -> bool {
        self.0 == digest(text)
    }

    pub(super) fn digest(&self) -> blake3::Hash {
        self.0
    }
}

fn digest(text: &str) -> blake3::Hash {
    blake3::hash(text.as_bytes())
}

/// Shows nothing of it.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
