//! The integration tests, one binary.

#[cfg(feature = "client")]
mod dispatch_failures;
#[cfg(feature = "client")]
mod dispatch_http;
#[cfg(feature = "client")]
mod dispatch_observe;
#[cfg(feature = "client")]
mod dispatch_policy;
