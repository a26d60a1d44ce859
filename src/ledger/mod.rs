//! What hookgate remembers of conversations, so that a decision taken once holds in every later request.

mod anchor;
mod brought;
mod forget;
mod idle;
mod prompt;
mod record;
mod rewrite;
mod session;
mod sessions;
mod spoken;
mod store;
mod tasks;
mod thread;
mod threads;

pub(crate) use anchor::Anchors;
pub(crate) use brought::Brought;
pub(crate) use record::{After, AnswerRecord, RecordedBlock, Round, Shown, SuppliedResult};
pub(crate) use rewrite::{Known, PromptDecision, rewrite, told};
pub use session::SessionRecord;
pub(crate) use session::{Sighting, TurnMark};
pub use sessions::SessionQuery;
pub(crate) use spoken::{Prompt, Spoken};
pub(crate) use store::{DeclaredTool, Ledger, Lineage, View};
pub use tasks::TaskStatus;
pub(crate) use tasks::{Beginning, Ending, Task};
pub(crate) use thread::{Attempt, Thread, bounded};
