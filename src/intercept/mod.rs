//! Sans-IO machines: bytes and verdicts in, bytes and questions out. Nothing here waits or reads a clock.

pub(crate) mod call;
pub(crate) mod context;
pub(crate) mod round;
pub(crate) mod stream;
