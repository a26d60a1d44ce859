//! Identities: sessions, threads, and digests that name things by their content.

use std::fmt;
use std::sync::Arc;

/// The tenant of every request while routes have no keys of their own.
pub const DEFAULT_TENANT: &str = "default";

/// A session as operators see it: unique within its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey {
    /// Who the session belongs to.
    pub tenant: Arc<str>,
    /// The session's id, as the client names it or as derived from its history.
    pub session: Arc<str>,
}

/// One line of conversation within a session: the main one, or that of one sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ThreadKey {
    /// The session that the thread belongs to.
    pub session: SessionKey,
    /// The sub-agent's id; `None` for the session's main thread.
    pub agent: Option<Arc<str>>,
}

/// A new random id (UUID version 4, from the operating system's randomness), in its usual text form.
pub fn random_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// 128 bits of BLAKE3: names content, so that equal content has equal names on every node and after every restart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 16]);

impl Digest {
    /// The digest of nothing, with which chains start.
    pub const EMPTY: Digest = Digest([0; 16]);

    /// The digest of one byte string.
    ///
    /// ```
    /// use hookgate::id::Digest;
    /// assert_eq!(Digest::of(b"a"), Digest::of(b"a"));
    /// assert_ne!(Digest::of(b"a"), Digest::of(b"b"));
    /// ```
    pub fn of(bytes: &[u8]) -> Self {
        Hasher::new().with(bytes).finish()
    }

    /// The digest as a UUID (version 8: custom), for ids that must be the same wherever they are computed.
    pub fn to_uuid(self) -> String {
        uuid::Builder::from_custom_bytes(self.0).into_uuid().to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Builds a [`Digest`] from parts. Each part is framed, so `ab` + `c` differs from `a` + `bc`.
#[derive(Clone, Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    /// An empty hasher.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one part.
    #[must_use]
    pub fn with(mut self, part: &[u8]) -> Self {
        self.part(part);
        self
    }

    /// Adds one part in place.
    pub fn part(&mut self, part: &[u8]) {
        self.0.update(part);
        self.end(part.len());
    }

    /// Adds a piece of a part that [`Hasher::end`] closes.
    pub fn piece(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// Closes a part of `len` bytes given piece by piece.
    pub fn end(&mut self, len: usize) {
        self.0.update(&(len as u64).to_le_bytes());
    }

    /// Adds another digest.
    pub fn digest(&mut self, digest: Digest) {
        self.part(&digest.0);
    }

    /// The digest of all parts.
    pub fn finish(self) -> Digest {
        let mut digest = [0; 16];
        digest.copy_from_slice(&self.0.finalize().as_bytes()[..16]);
        Digest(digest)
    }
}
