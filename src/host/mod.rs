//! The hosts: what carries the core. Nothing about hooks is decided here.

#[cfg(any(feature = "pingora", feature = "tower"))]
mod linger;
#[cfg(feature = "pingora")]
pub mod pingora;
#[cfg(feature = "tower")]
pub mod tower;
