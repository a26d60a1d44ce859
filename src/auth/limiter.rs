//! How often something may go wrong before it has to wait.

use std::hash::Hash;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;

/// Names that are remembered at once; the one that was not seen for longest is forgotten first. To be forgotten early takes
/// that many failures under other names, each of which counts against its address.
const MAX_NAMES: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();

/// For each name a bucket of tries: `burst` of them at once, then one for each `pause` that has passed.
pub(super) struct Limiter<K> {
    burst: u32,
    pause: Duration,
    /// When the bucket of a name is full again.
    full: Mutex<LruCache<K, Instant>>,
}

impl<K: Hash + Eq> Limiter<K> {
    pub(super) fn new(burst: u32, pause: Duration) -> Self {
        Limiter { burst, pause, full: Mutex::new(LruCache::new(MAX_NAMES)) }
    }

    /// Takes a try.
    ///
    /// # Errors
    /// There is none: the time until there will be one.
    pub(super) fn take(&self, name: K, now: Instant) -> Result<(), Duration> {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let then = full.get(&name).copied().unwrap_or(now).max(now) + self.pause;
        let over = then.duration_since(now).saturating_sub(self.pause * self.burst);
        if !over.is_zero() {
            return Err(over);
        }
        full.put(name, then);
        Ok(())
    }

    /// Gives back a try that turned out well.
    pub(super) fn give_back(&self, name: &K) {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(then) = full.get_mut(name) {
            *then = then.checked_sub(self.pause).unwrap_or(*then);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(6);

    #[test]
    fn tries_come_back_one_by_one() {
        let limiter = Limiter::new(3, PAUSE);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(limiter.take("a", start), Ok(()));
        }
        assert_eq!(limiter.take("a", start), Err(PAUSE));
        assert_eq!(limiter.take("a", start + PAUSE / 2), Err(PAUSE / 2));
        assert_eq!(limiter.take("b", start), Ok(()));
        assert_eq!(limiter.take("a", start + PAUSE), Ok(()));
        assert_eq!(limiter.take("a", start + PAUSE), Err(PAUSE));
        let later = start + PAUSE * 100;
        assert_eq!((0..9).filter(|_| limiter.take("a", later).is_ok()).count(), 3);
    }

    #[test]
    fn what_turned_out_well_costs_nothing() {
        let limiter = Limiter::new(2, PAUSE);
        let now = Instant::now();
        for _ in 0..10 {
            limiter.take("a", now).unwrap();
            limiter.give_back(&"a");
        }
        assert_eq!((0..9).filter(|_| limiter.take("a", now).is_ok()).count(), 2);
    }

    #[test]
    fn the_number_of_names_is_bounded() {
        let limiter = Limiter::new(1, PAUSE);
        let now = Instant::now();
        for name in 0..=MAX_NAMES.get() {
            limiter.take(name, now).unwrap();
        }
        assert_eq!(limiter.full.lock().unwrap().len(), MAX_NAMES.get());
        assert!(limiter.take(MAX_NAMES.get(), now).is_err());
        assert!(limiter.take(0, now).is_ok(), "the oldest is forgotten");
    }
}
