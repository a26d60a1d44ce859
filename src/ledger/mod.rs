//! What hookgate remembers of conversations, so that a decision taken once holds in every later request.

mod anchor;
mod record;
mod rewrite;
mod splice;
mod store;
mod thread;

pub use anchor::Anchors;
pub use record::{After, AnswerRecord, RecordedBlock, Round, Shown, SuppliedResult};
pub use rewrite::{Known, PromptDecision, rewrite, told};
pub use store::{DeclaredTool, Ledger, Lineage, View};
pub use thread::{Attempt, Once, Thread};
