//! The tool calls that arrived, and what became of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::JsonObject;
use serde::Serialize;

/// How many are kept; older ones are forgotten.
const MAX_CALLS: usize = 4096;

/// One call.
#[derive(Clone, Serialize)]
pub(crate) struct Call {
    number: u64,
    name: String,
    arguments: JsonObject,
    /// `running`, `answered`, or `cancelled`, by the client or because it is gone.
    state: &'static str,
}

#[derive(Default)]
struct Kept {
    last: u64,
    calls: VecDeque<Call>,
}

/// All of them.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<Mutex<Kept>>);

impl Calls {
    pub(crate) fn list(&self) -> Vec<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).calls.iter().cloned().collect()
    }

    pub(crate) fn begin(&self, name: &str, arguments: JsonObject) -> Running {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.last += 1;
        let number = kept.last;
        if kept.calls.len() == MAX_CALLS {
            kept.calls.pop_front();
        }
        kept.calls.push_back(Call { number, name: name.to_owned(), arguments, state: "running" });
        Running { calls: self.clone(), number, state: "cancelled" }
    }
}

/// A call that is worked on: one that is dropped before it is answered was cancelled.
pub(crate) struct Running {
    calls: Calls,
    number: u64,
    state: &'static str,
}

impl Running {
    pub(crate) fn answered(mut self) {
        self.state = "answered";
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut kept = self.calls.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(call) = kept.calls.iter_mut().rev().find(|call| call.number == self.number) {
            call.state = self.state;
        }
    }
}
