//! Sans-IO machines: bytes and verdicts in, bytes and questions out. Nothing here waits or reads a clock.

pub mod call;
pub mod context;
pub mod round;
pub mod stream;
