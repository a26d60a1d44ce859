//! What a request is for, told by its method and path.

use std::borrow::Cow;

use http::Method;

use super::Revision;

/// What is asked of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A message is sent; `stream`: the answer is to come as events.
    Send {
        /// See above.
        stream: bool,
    },
    /// How one task stands: it is asked for, cancelled or subscribed to.
    Task,
    /// How several tasks stand.
    Tasks,
    /// The card that the agent shows to whom it knows.
    Card,
    /// Anything else that is known, and delegates nothing.
    Other,
}

impl Operation {
    /// The operation of a JSON-RPC method, and whose method it is; `None` for one that neither revision has.
    ///
    /// ```
    /// use hookgate::wire::a2a::{Operation, Revision};
    /// assert_eq!(Operation::of_method("message/stream"), Some((Operation::Send { stream: true }, Revision::V0_3)));
    /// assert_eq!(Operation::of_method("GetTask"), Some((Operation::Task, Revision::V1)));
    /// assert_eq!(Operation::of_method("tasks/send"), None);
    /// ```
    pub fn of_method(method: &str) -> Option<(Self, Revision)> {
        use Revision::{V0_3, V1};
        Some(match method {
            "message/send" => (Operation::Send { stream: false }, V0_3),
            "message/stream" => (Operation::Send { stream: true }, V0_3),
            "SendMessage" => (Operation::Send { stream: false }, V1),
            "SendStreamingMessage" => (Operation::Send { stream: true }, V1),
            "tasks/get" | "tasks/cancel" | "tasks/resubscribe" => (Operation::Task, V0_3),
            "GetTask" | "CancelTask" | "SubscribeToTask" => (Operation::Task, V1),
            "tasks/list" => (Operation::Tasks, V0_3),
            "ListTasks" => (Operation::Tasks, V1),
            "agent/getAuthenticatedExtendedCard" => (Operation::Card, V0_3),
            "GetExtendedAgentCard" => (Operation::Card, V1),
            "tasks/pushNotificationConfig/set"
            | "tasks/pushNotificationConfig/get"
            | "tasks/pushNotificationConfig/list"
            | "tasks/pushNotificationConfig/delete" => (Operation::Other, V0_3),
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => (Operation::Other, V1),
            _ => return None,
        })
    }
}

/// What a path is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Surface {
    /// An agent's card; `of`: the path of the agent whose card it is, without a slash at the end.
    Card {
        /// See above.
        of: String,
    },
    /// An operation of HTTP+JSON; its path may begin with anything, such as a tenant.
    Rest(Operation),
    /// Whatever else has a body: JSON-RPC, which may have any path.
    Rpc,
    /// What has no body, and is known to nobody here.
    Bodiless,
}

impl Surface {
    /// Reads a request's head. Escapes in the path count as what they stand for, however often they are escaped.
    ///
    /// ```
    /// use hookgate::wire::a2a::{Operation, Surface};
    /// use http::Method;
    /// let send = Surface::Rest(Operation::Send { stream: false });
    /// assert_eq!(Surface::of(&Method::POST, "/acme/message:send"), send);
    /// assert_eq!(Surface::of(&Method::POST, "/v1/message%3asend"), send);
    /// assert_eq!(Surface::of(&Method::POST, "/"), Surface::Rpc);
    /// let card = Surface::of(&Method::GET, "/billing/.well-known/agent-card.json");
    /// assert_eq!(card, Surface::Card { of: "/billing".into() });
    /// ```
    pub fn of(method: &Method, path: &str) -> Self {
        let path = unescaped(path);
        let path = path.trim_end_matches('/');
        let bodiless = matches!(*method, Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS);
        if *method == Method::GET
            && let Some(of) = CARDS.iter().find_map(|card| path.strip_suffix(card))
        {
            return Surface::Card { of: of.to_owned() };
        }
        match rest(method, path) {
            Some(operation) => Surface::Rest(operation),
            None if bodiless => Surface::Bodiless,
            None => Surface::Rpc,
        }
    }
}

/// Where cards are: in the open, and for whom the agent knows (with the names of both revisions).
const CARDS: [&str; 5] = [
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/extendedAgentCard",
    "/v1/card",
    "/agent/authenticatedExtendedCard",
];

fn rest(method: &Method, path: &str) -> Option<Operation> {
    let (get, post) = (*method == Method::GET, *method == Method::POST);
    let mut steps = path.rsplit('/');
    let (last, before, third) = (steps.next()?, steps.next(), steps.next());
    let is = |step: Option<&str>, name| step.is_some_and(|step| step.eq_ignore_ascii_case(name));
    if post && last.eq_ignore_ascii_case("message:send") {
        return Some(Operation::Send { stream: false });
    }
    if post && last.eq_ignore_ascii_case("message:stream") {
        return Some(Operation::Send { stream: true });
    }
    if (get || post) && is(Some(last), "pushNotificationConfigs") && is(third, "tasks") {
        return Some(Operation::Other);
    }
    if get && last.eq_ignore_ascii_case("tasks") {
        return Some(Operation::Tasks);
    }
    let verb = last.rsplit_once(':').map(|(_, verb)| verb);
    let asks = get || post && (is(verb, "cancel") || is(verb, "subscribe"));
    (asks && is(before, "tasks")).then_some(Operation::Task)
}

/// Paths are escaped more than once only to be misread.
const MAX_ESCAPES: usize = 3;

/// The path without escapes; what is no UTF-8 then stays as it is.
fn unescaped(path: &str) -> Cow<'_, str> {
    let mut path = Cow::Borrowed(path);
    for _ in 0..MAX_ESCAPES {
        if !path.contains('%') {
            break;
        }
        let Some(plain) = unescaped_once(&path) else { break };
        path = Cow::Owned(plain);
    }
    path
}

fn unescaped_once(path: &str) -> Option<String> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| char::from(*after.get(at)?).to_digit(16);
        rest = after;
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => plain.push(*first),
        }
    }
    String::from_utf8(plain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_both_revisions_with_and_without_a_tenant() {
        let send = Surface::Rest(Operation::Send { stream: false });
        let stream = Surface::Rest(Operation::Send { stream: true });
        let (task, other) = (Surface::Rest(Operation::Task), Surface::Rest(Operation::Other));
        for (method, path, expected) in [
            (Method::POST, "/message:send", &send),
            (Method::POST, "/v1/message:send", &send),
            (Method::POST, "/acme/message:send/", &send),
            (Method::POST, "/Message:Send", &send),
            (Method::POST, "/message%253Asend", &send),
            (Method::POST, "/acme/message:stream", &stream),
            (Method::GET, "/message:send", &Surface::Bodiless),
            (Method::PUT, "/message:send", &Surface::Rpc),
            (Method::GET, "/tasks/t-1", &task),
            (Method::GET, "/acme/tasks/t-1:subscribe", &task),
            (Method::POST, "/tasks/t-1:subscribe", &task),
            (Method::POST, "/v1/tasks/t-1:cancel", &task),
            (Method::POST, "/tasks/t-1:other", &Surface::Rpc),
            (Method::POST, "/tasks/t-1", &Surface::Rpc),
            (Method::GET, "/acme/tasks", &Surface::Rest(Operation::Tasks)),
            (Method::POST, "/tasks/t-1/pushNotificationConfigs", &other),
            (Method::GET, "/tasks/t-1/pushNotificationConfigs/c", &Surface::Bodiless),
            (Method::POST, "/rpc", &Surface::Rpc),
            (Method::GET, "/", &Surface::Bodiless),
        ] {
            assert_eq!(Surface::of(&method, path), *expected, "{method} {path}");
        }
        for (path, of) in [
            ("/.well-known/agent-card.json", ""),
            ("/a/b/.well-known/agent.json", "/a/b"),
            ("/acme/extendedAgentCard", "/acme"),
            ("/v1/card", ""),
        ] {
            assert_eq!(Surface::of(&Method::GET, path), Surface::Card { of: of.into() }, "{path}");
        }
        assert_eq!(Surface::of(&Method::HEAD, "/.well-known/agent-card.json"), Surface::Bodiless);
    }
}
