//! The Agent2Agent protocol (A2A), as spans of the received text: requests that delegate work, what agents say of it, and the
//! cards by which agents are found.
//!
//! There are two revisions that differ in names, 0.3 and 1.0, each in two bindings that hookgate reads: JSON-RPC and HTTP+JSON.
//! The `A2A-Version` header says less than the text itself does, so that a message is read by its own members: method names
//! are of one revision, and so are the names in the messages of HTTP+JSON. Members have two spellings, `taskId` and
//! `task_id`, since readers that come from Protobuf accept both; a request with both of them can be read in two ways.

mod card;
mod operation;
mod reply;
mod seen;
mod send;
mod tree;

pub use card::{Card, Place, rewrite};
pub use operation::{Operation, Surface};
pub use reply::{Ids, grpc_message, rest_error};
pub use seen::{Seen, State, TaskView, failure, read_answer};
pub use send::Send;

/// The names of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revision {
    /// 0.3, whose requests need no header.
    V0_3,
    /// 1.0, whose requests have the header `A2A-Version`.
    V1,
}

/// How requests and answers are put into HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Methods of JSON-RPC, all to one path.
    Rpc,
    /// HTTP+JSON: the path says what is asked.
    Rest,
}
