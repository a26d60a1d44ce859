//! What has to outlive a request: the tokens of one-time callbacks, and the messages that they brought.
//!
//! [`CallbackStore`] is the seam. [`MemoryStore`] keeps everything in the process; a store that keeps it longer implements
//! the same trait and passes the same suite (`store::conformance`, with the feature `test-util`).

mod callbacks;
#[cfg(feature = "test-util")]
pub mod conformance;
mod memory;
mod record;
mod signal;

pub use callbacks::{CallbackStore, Claiming, Issuing, Revoking, Settlement, Settling, StoreError, StoreFuture};
pub use memory::{MemoryLimits, MemoryStore};
pub use record::{
    ClaimId, InboxMessage, InboxState, MessageId, NewMessage, NewToken, TokenHash, TokenRecord, TokenState,
};
pub use signal::{Listener, Signals, Topic};
