//! Passwords: hashed with argon2id, checked a few at a time.

use std::fmt;
use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use tokio::sync::Semaphore;

const MIN_PASSWORD_CHARS: usize = 8;
const MAX_PASSWORD_BYTES: usize = 1024;
/// Checks at once: each takes 19 MiB and a core for some 20 ms.
const MAX_CHECKS: usize = 2;
/// Checks that wait for their turn; more are refused.
const MAX_WAITING: usize = 64;

/// A new password.
pub struct Password(String);

/// Why a text is no password, or could not be hashed. It does not say what the text was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PasswordError {
    /// Its length.
    #[error("a password has at least 8 letters and at most 1024 bytes")]
    Length,
    /// The system gave no memory or no randomness.
    #[error("the password could not be hashed: the system gave no memory or no randomness")]
    Hash,
}

impl Password {
    /// Takes a password as it is, spaces included.
    ///
    /// # Errors
    /// It has fewer than 8 characters or more than 1024 bytes.
    pub fn new(text: impl Into<String>) -> Result<Self, PasswordError> {
        let text = text.into();
        let fits = text.chars().count() >= MIN_PASSWORD_CHARS && text.len() <= MAX_PASSWORD_BYTES;
        fits.then_some(Password(text)).ok_or(PasswordError::Length)
    }

    /// The hash in PHC form: argon2id with the parameters that OWASP recommends (19 MiB, 2 passes) and a new salt.
    pub(super) fn hash(&self) -> Result<String, PasswordError> {
        let hash = Argon2::default().hash_password(self.0.as_bytes()).map_err(|_| PasswordError::Hash)?;
        Ok(hash.to_string())
    }
}

/// Shows nothing of it.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Whether a text is a hash that can be checked against.
pub(super) fn is_hash(text: &str) -> bool {
    PasswordHash::new(text).is_ok_and(|hash| hash.algorithm.as_str() == "argon2id" && hash.hash.is_some())
}

/// Too many checks wait already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Busy;

/// Checks passwords beside the threads that serve.
pub(super) struct Checker {
    turns: Arc<Semaphore>,
    places: Semaphore,
    /// What the password of an unknown user is checked against, so that it takes as long as that of a known one.
    nobody: Arc<str>,
}

impl Checker {
    pub(super) fn new() -> Result<Self, PasswordError> {
        let nobody = Password(crate::id::random_id()).hash()?.into();
        Ok(Checker { turns: Arc::new(Semaphore::new(MAX_CHECKS)), places: Semaphore::new(MAX_WAITING), nobody })
    }

    /// Whether the password is that of `hash`; never without one, but as slowly.
    pub(super) async fn check(&self, password: String, hash: Option<Arc<str>>) -> Result<bool, Busy> {
        let _place = self.places.try_acquire().map_err(|_| Busy)?;
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| Busy)?;
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.nobody.clone());
        let check = tokio::task::spawn_blocking(move || {
            let right = password.len() <= MAX_PASSWORD_BYTES && verify(&password, &hash);
            // A client that leaves early does not free the turn: the core is still at work.
            drop(turn);
            right
        });
        Ok(check.await.unwrap_or(false) && known)
    }
}

fn verify(password: &str, hash: &str) -> bool {
    let hash = PasswordHash::new(hash);
    hash.is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_have_a_length() {
        for (text, fits) in
            [("1234567", false), ("12345678", true), ("äöüäöüäö", true), ("ä".repeat(513).as_str(), false)]
        {
            assert_eq!(Password::new(text).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn only_argon2id_is_a_hash() {
        let hash = Password::new("correct horse").unwrap().hash().unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(is_hash(&hash));
        for other in ["", "correct horse", &hash.replace("argon2id", "argon2i"), "$argon2id$v=19$m=19456,t=2,p=1"] {
            assert!(!is_hash(other), "{other}");
        }
    }

    #[tokio::test]
    async fn checks_tell_right_from_wrong_and_know_no_unknown_user() {
        let checker = Checker::new().unwrap();
        let hash: Arc<str> = Password::new("correct horse").unwrap().hash().unwrap().into();
        assert_eq!(checker.check("correct horse".to_owned(), Some(hash.clone())).await, Ok(true));
        assert_eq!(checker.check("correct hors".to_owned(), Some(hash)).await, Ok(false));
        assert_eq!(checker.check("correct horse".to_owned(), None).await, Ok(false));
    }

    #[tokio::test]
    async fn the_queue_is_bounded() {
        let checker = Checker::new().unwrap();
        let _all = checker.turns.acquire_many(MAX_CHECKS as u32).await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..MAX_WAITING {
            let mut check = Box::pin(checker.check("password".to_owned(), None));
            assert!(futures_util::poll!(&mut check).is_pending());
            waiting.push(check);
        }
        assert_eq!(checker.check("password".to_owned(), None).await, Err(Busy));
    }
}
