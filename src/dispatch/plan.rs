//! The chain of one dispatch, without the waiting.
