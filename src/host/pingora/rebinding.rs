//! Pages of the web that reach a tool server on this machine, because a name of theirs was made to lead here (DNS rebinding).
//!
//! Their requests name the page's host. An MCP server knows them by that and refuses them. Behind hookgate it cannot: there it
//! is hookgate that names the server. So hookgate looks in its place.

use http::uri::Authority;
use pingora::proxy::Session;

use super::gateway::authority;
use crate::auth::origin::leads_here;

/// What is wrong with the host that a request names, if anything is. `public` is hookgate's own origin.
///
/// Only where clients connect by a loopback address: everywhere else the machine is meant to be reached by others, by names
/// that nobody told hookgate.
pub(super) fn objection(session: &Session, public: Option<&str>) -> Option<&'static str> {
    let at = session.server_addr()?.as_inet()?.ip().to_canonical();
    let host = authority(session.req_header()).and_then(|named| named.parse::<Authority>().ok());
    let fits = host.is_some_and(|host| leads_here(host.host(), public));
    (at.is_loopback() && !fits).then_some(
        "the host that the request names is neither this machine nor the public name of hookgate. Use http://127.0.0.1 or \
         http://localhost, or set [server] trusted_hosts or the route's host to the public name",
    )
}
