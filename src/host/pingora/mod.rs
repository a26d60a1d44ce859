//! The standalone reverse proxy: hookgate's core on pingora.

mod path;
mod routes;
mod upstream;
