//! Counters that are kept: finding one among the metrics takes longer than counting.

use std::hash::Hash;

use dashmap::DashMap;
use metrics::Counter;

/// The counters of one metric by what tells them apart. There are as many as keys, so keys must be few: names and statuses,
/// never what a request brings.
pub(crate) struct Counters<K>(DashMap<K, Counter>);

impl<K: Eq + Hash> Default for Counters<K> {
    fn default() -> Self {
        Counters(DashMap::new())
    }
}

impl<K: Eq + Hash + Clone> Counters<K> {
    /// Counts one more. `register` finds the counter among the metrics, the first time.
    pub(crate) fn count(&self, key: &K, register: impl FnOnce(&K) -> Counter) {
        if let Some(counter) = self.0.get(key) {
            return counter.increment(1);
        }
        let counter = register(key);
        counter.increment(1);
        self.0.insert(key.clone(), counter);
    }
}
