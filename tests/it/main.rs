//! The integration tests, one binary.

#[cfg(feature = "pingora")]
mod pingora_driven;
#[cfg(feature = "pingora")]
mod pingora_kit;
#[cfg(feature = "pingora")]
mod pingora_lifecycle;
#[cfg(feature = "pingora")]
mod pingora_pass;
#[cfg(feature = "pingora")]
mod pingora_refusals;
#[cfg(feature = "pingora")]
mod pingora_tls;
