//! Routes to tools behind plain HTTP: a table says which requests are calls of which tool, and each call is decided before it
//! is forwarded.

mod answer;
mod exchange;
mod find;
mod rebuild;
mod table;

use http::{Response, StatusCode};

pub(super) use self::exchange::run;
pub(super) use self::find::{Called, find};
pub use self::table::{DuplicateTool, HttpTool, HttpTools};
use crate::Body;
use crate::problem::problem;

/// The answer to a call that is not made.
pub(super) fn refusal(status: StatusCode, detail: &str) -> Response<Body> {
    problem(status, detail)
}
