//! The hosts: what carries the core. Nothing about hooks is decided here.

#[cfg(feature = "pingora")]
pub mod pingora;
#[cfg(feature = "tower")]
pub mod tower;
