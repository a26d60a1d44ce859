//! The configuration file: one TOML document, strict, every key of which the environment can override.

mod model;

pub use model::{
    Config, Connection, HooksMode, LogConfig, LogFormat, OnDeny, RouteConfig, RouteKind, Scheme, Secret, Subagent,
    TlsFiles, UpstreamTarget,
};
