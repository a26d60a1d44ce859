//! The integration tests: one binary, so that the crate is linked once.

mod laws;
mod layering;
