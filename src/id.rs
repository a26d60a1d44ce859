//! Identities: sessions, threads, and digests that name things by their content.

use std::fmt;
use std::sync::Arc;

/// The tenant of every request whose host names none.
pub const DEFAULT_TENANT: &str = "default";

/// Who a request belongs to, as a request extension that a host sets once it knows: the name of the route key, or of
/// whatever a service of its own tells its clients apart by. Without it the request is of [`DEFAULT_TENANT`].
///
/// Sessions of different tenants have nothing in common, whatever ids their clients choose.
///
/// ```
/// use hookgate::Tenant;
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(Tenant::new("team-a"));
/// assert_eq!(Tenant::of(request.extensions()).name(), "team-a");
/// assert_eq!(Tenant::of(&http::Extensions::new()).name(), "default");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// The tenant of that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Tenant(name.into())
    }

    /// The tenant that a request's extensions name, else the default one.
    pub fn of(extensions: &http::Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(|| Tenant::new(DEFAULT_TENANT))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Its name, shared.
    pub(crate) fn into_name(self) -> Arc<str> {
        self.0
    }
}

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

/// 256 random bits from the operating system, for keys and secrets of this process.
pub(crate) fn random_key() -> [u8; 32] {
    let mut key = [0; 32];
    key[..16].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    key[16..].copy_from_slice(uuid::Uuid::new_v4().as_bytes());
    // The version bits of a UUID are fixed: hashing spreads what is random over the whole key.
    *blake3::hash(&key).as_bytes()
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
pub struct Hasher {
    /// What is not yet hashed. Most digests are of few bytes: to gather them and hash them at once is several times
    /// cheaper than to feed them in pieces.
    gathered: Vec<u8>,
    /// Takes what is too much to be gathered. It is large, so it is made when it is needed.
    fed: Option<Box<blake3::Hasher>>,
}

/// Room to begin with: most digests are of fewer bytes.
const FEW: usize = 128;
/// The most bytes that are gathered.
const MANY: usize = 16 << 10;

impl Hasher {
    /// An empty hasher.
    pub fn new() -> Self {
        Hasher { gathered: Vec::with_capacity(FEW), fed: None }
    }

    /// Adds one part.
    #[must_use]
    pub fn with(mut self, part: &[u8]) -> Self {
        self.part(part);
        self
    }

    /// Adds one part in place.
    pub fn part(&mut self, part: &[u8]) {
        self.piece(part);
        self.end(part.len());
    }

    /// Adds a piece of a part that [`Hasher::end`] closes.
    pub fn piece(&mut self, piece: &[u8]) {
        if self.gathered.len() + piece.len() <= MANY {
            self.gathered.extend_from_slice(piece);
            return;
        }
        let fed = self.fed.get_or_insert_default();
        fed.update(&self.gathered).update(piece);
        self.gathered.clear();
    }

    /// Closes a part of `len` bytes given piece by piece.
    pub fn end(&mut self, len: usize) {
        self.piece(&(len as u64).to_le_bytes());
    }

    /// Adds another digest.
    pub fn digest(&mut self, digest: Digest) {
        self.part(&digest.0);
    }

    /// The digest of all parts.
    pub fn finish(self) -> Digest {
        let hash = match self.fed {
            Some(mut fed) => fed.update(&self.gathered).finalize(),
            None => blake3::hash(&self.gathered),
        };
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.as_bytes()[..16]);
        Digest(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_depends_on_the_bytes_and_not_on_how_they_came() {
        let text: Vec<u8> = (0..3 * MANY).map(|index| index as u8).collect();
        for len in [0, 1, FEW, MANY - 8, MANY - 7, MANY, MANY + 1, 3 * MANY] {
            let whole = Digest::of(&text[..len]);
            for size in [7, 1000, MANY] {
                let mut hasher = Hasher::new();
                text[..len].chunks(size).for_each(|piece| hasher.piece(piece));
                hasher.end(len);
                assert_eq!(hasher.finish(), whole, "{len} bytes by {size}");
            }
        }
    }
}
