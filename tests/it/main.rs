//! The integration tests, one binary.

#[macro_use]
#[cfg(all(feature = "pingora", feature = "test-util"))]
mod suite;

#[cfg(all(feature = "pingora", feature = "test-util"))]
mod a2a;
#[cfg(feature = "auth")]
mod auth_gate;
#[cfg(feature = "pingora")]
mod auth_layer;
#[cfg(feature = "cli")]
mod auth_log;
#[cfg(feature = "pingora")]
mod auth_paths;
#[cfg(feature = "pingora")]
mod auth_proxy;
#[cfg(feature = "pingora")]
mod auth_routes;
#[cfg(any(feature = "client", feature = "pingora"))]
mod away;
#[cfg(feature = "cli")]
mod callback;
#[cfg(feature = "cli")]
mod cli_auth;
#[cfg(feature = "cli")]
mod cli_config;
#[cfg(feature = "cli")]
mod cli_hooks;
#[cfg(feature = "cli")]
mod cli_run;
#[cfg(feature = "cli")]
mod cli_support;
#[cfg(feature = "cli")]
mod cli_upstreams;
#[cfg(feature = "config")]
mod config_auth;
#[cfg(feature = "config")]
mod config_callbacks;
#[cfg(feature = "config")]
mod config_connections;
#[cfg(feature = "config")]
mod config_environment;
#[cfg(feature = "config")]
mod config_errors;
#[cfg(feature = "config")]
mod config_load;
#[cfg(feature = "config")]
mod config_show;
#[cfg(feature = "config")]
mod config_support;
#[cfg(feature = "config")]
mod config_tools;
#[cfg(feature = "control")]
mod control;
#[cfg(feature = "client")]
mod dispatch_claude_code;
#[cfg(feature = "client")]
mod dispatch_contract;
#[cfg(feature = "client")]
mod dispatch_failures;
#[cfg(feature = "client")]
mod dispatch_http;
#[cfg(feature = "client")]
mod dispatch_http2;
#[cfg(feature = "client")]
mod dispatch_observe;
#[cfg(feature = "client")]
mod dispatch_policy;
#[cfg(all(feature = "cli", feature = "tower"))]
mod examples;
#[cfg(all(feature = "pingora", feature = "test-util"))]
mod hosts;
#[cfg(all(feature = "pingora", feature = "test-util"))]
mod http_tool;
#[cfg(feature = "pingora")]
mod pingora_driven;
#[cfg(feature = "pingora")]
mod pingora_duplex;
#[cfg(feature = "pingora")]
mod pingora_kit;
#[cfg(feature = "pingora")]
mod pingora_lifecycle;
#[cfg(feature = "pingora")]
mod pingora_origin;
#[cfg(feature = "pingora")]
mod pingora_pass;
#[cfg(feature = "pingora")]
mod pingora_refusals;
#[cfg(feature = "pingora")]
mod pingora_tls;
#[cfg(feature = "pingora")]
mod pingora_tls_kit;
#[cfg(feature = "pingora")]
mod pingora_trailers;
#[cfg(feature = "pingora")]
mod pingora_upgrade;

mod laws;
mod layering;
#[cfg(all(feature = "pingora", feature = "test-util"))]
mod mcp_plane;
#[cfg(all(feature = "pingora", feature = "test-util"))]
mod scenario;
#[cfg(all(feature = "pingora", feature = "test-util"))]
mod sessions;
#[cfg(feature = "test-util")]
mod store;
#[cfg(all(feature = "pingora", feature = "test-util"))]
mod tool_deny;
