//! One-time callbacks on the proxy's listeners.

use http::{HeaderValue, Request, Response, header, request};
use pingora::Result;
use pingora::protocols::http::ServerSession;
use tower::ServiceExt as _;

use super::{on_demand, path, respond};
use crate::body::Body;
use crate::callback::{CallbackService, TmpHooks};

/// The callback route of a listener.
pub(super) struct Callbacks {
    service: CallbackService,
    prefix: String,
}

impl Callbacks {
    pub(super) fn new(hooks: &TmpHooks) -> Self {
        Callbacks { service: hooks.service(), prefix: hooks.path_prefix().to_owned() }
    }

    /// Whether a path is, or in one of its readings could be, the prefix or below it.
    pub(super) fn concern(&self, path: &str) -> bool {
        let below =
            |path: &str| path.strip_prefix(&self.prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        // Paths without these have one reading.
        let plain = !path.contains(['%', '\\']) && !path.contains("//");
        below(path) || !plain && path::readings(path).is_ok_and(|readings| readings.iter().any(|path| below(path)))
    }

    /// Answers one request. The body is read as the service asks for it: a client that waits to be asked is asked then.
    ///
    /// # Errors
    /// The client went away; see [`respond::answer`].
    pub(super) async fn serve(&self, session: &mut ServerSession, head: request::Parts) -> Result<()> {
        let waits = respond::waits_for_continue(session);
        let (body, mut feed) = on_demand::body(session.is_body_done());
        let answer = self.service.clone().oneshot(Request::from_parts(head, body));
        tokio::pin!(answer);
        let mut reading = false;
        let response = loop {
            tokio::select! {
                biased;
                Ok(response) = &mut answer => break response,
                () = feed.wanted() => {}
            }
            if waits && !reading {
                respond::ask_for_body(session).await?;
            }
            reading = true;
            tokio::select! {
                biased;
                Ok(response) = &mut answer => break response,
                piece = session.read_request_body() => feed.give(piece.map_err(Into::into)),
            }
        };
        respond_to(session, response, reading || !waits).await
    }
}

async fn respond_to(session: &mut ServerSession, response: Response<Body>, sending: bool) -> Result<()> {
    if session.is_body_done() {
        respond::answer(session, response).await
    } else if response.headers().get(header::CONNECTION) == Some(&HeaderValue::from_static("close")) {
        respond::refuse_at_once(session, response, sending).await
    } else {
        respond::refuse(session, response).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::callback::{Settings, TokenKey};
    use crate::store::MemoryStore;

    #[test]
    fn a_path_concerns_callbacks_however_it_is_written() {
        let hooks = TmpHooks::new(Settings::default(), Arc::new(MemoryStore::new()), TokenKey::random(), None);
        let callbacks = Callbacks::new(&hooks);
        for path in [
            "/api/tmp-hooks",
            "/api/tmp-hooks/",
            "/api/tmp-hooks/T",
            "/api/tmp-hooks/T/x",
            "/api/tmp-hooks/..",
            "/api/tmp-hooks/%2e%2e/x",
            "/api/tmp-hooks%2fT",
            "/%61pi/tmp-hooks/T",
            "//api/tmp-hooks/T",
            "/api\\tmp-hooks\\T",
        ] {
            assert!(callbacks.concern(path), "{path}");
        }
        for path in ["/", "/api", "/api/tmp-hooksx/T", "/v1/messages", "/x/api/tmp-hooks/T", "/a/../api/tmp-hooks/T"] {
            assert!(!callbacks.concern(path), "{path}");
        }
    }
}
