//! The Tower host: a layer for services and for clients.

mod future;
mod layer;
mod service;

pub use future::HookFuture;
pub use layer::HookLayer;
pub use service::HookService;
