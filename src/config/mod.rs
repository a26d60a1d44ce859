//! The configuration file: one TOML document, strict, every key of which the environment can override.
//!
//! A file is read in steps, each in its own module: `document` (text, environment and defaults become one tree whose values
//! know where they came from), `keys` with `describe` (the tree becomes typed values; the same description of a key
//! serves [`Config::show`] and [`schema`]), `build` (rules between keys, files and references become a [`Config`]).
//! Every step reports all that it finds.

mod build;
mod describe;
mod document;
mod error;
mod files;
mod keys;
mod load;
mod model;
mod schema;
mod show;
mod sources;

pub use error::{ConfigError, ConfigErrors};
pub use model::{
    AuthConfig, AuthFiles, Config, DeliveryConfig, LogConfig, LogFormat, RouteConfig, Scheme, TlsFiles, TmpHooksConfig,
    UpstreamTarget,
};
pub use schema::schema;
pub use sources::HookSources;
