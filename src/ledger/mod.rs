//! What hookgate remembers of conversations, so that a decision taken once holds in every later request.

mod anchor;
mod brought;
mod prompt;
mod record;
mod rewrite;
mod spoken;
mod store;
mod thread;

pub(crate) use anchor::Anchors;
pub(crate) use brought::Brought;
pub(crate) use record::{After, AnswerRecord, RecordedBlock, Round, Shown, SuppliedResult};
pub(crate) use rewrite::{Known, PromptDecision, rewrite, told};
pub(crate) use spoken::{Prompt, Spoken};
pub(crate) use store::{DeclaredTool, Ledger, Lineage, View};
pub(crate) use thread::{Attempt, Thread};
