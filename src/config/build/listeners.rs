//! Addresses: each once, and none that strangers can reach while nobody has to show who they are.

use std::collections::HashSet;
use std::net::SocketAddr;

use crate::config::describe::At;
use crate::config::error::Problems;
use crate::config::keys::{AuthMode, Server};

pub(super) fn check(server: &Server, auth: AuthMode, problems: &mut Problems) {
    if server.listen.0.is_empty() {
        server.listen.reject(problems, "found no address; expected at least one, such as \"127.0.0.1:8787\"");
    }
    let mut taken = HashSet::new();
    for address in server.listen.0.iter().chain(&server.control_listen.0) {
        // Port 0 is a new free port each time.
        if address.port() != 0 && !taken.insert(**address) {
            address.reject(problems, format!("{} is listed twice", **address));
        }
        if auth == AuthMode::None {
            refuse_public(address, problems);
        }
    }
}

fn refuse_public(address: &At<SocketAddr>, problems: &mut Problems) {
    if !address.ip().to_canonical().is_loopback() {
        let message = format!(
            "{} can be reached from other machines, but [auth] mode is \"none\": anybody there could use the agents' \
             routes and read their records. Set [auth] mode to \"token\" or \"password\" (and protect_routes = true for the \
             routes), or listen on 127.0.0.1:{port} or [::1]:{port} instead",
            **address,
            port = address.port()
        );
        address.reject(problems, message);
    }
}
