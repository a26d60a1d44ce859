//! Every bound, in one place: what is limited, its unit, its default and where the number comes from.

use std::time::Duration;

/// The longest reason of a handler, in bytes of UTF-8 (native v1 contract).
pub const MAX_REASON_BYTES: usize = 2 * 1024;
/// The most context one handler, and one whole dispatch, may add, in bytes of UTF-8 (native v1 contract).
pub const MAX_CONTEXT_BYTES: usize = 16 * 1024;
/// The longest answer of a handler, in bytes; reading stops as soon as it is passed (native v1 contract).
pub const MAX_HANDLER_ANSWER_BYTES: usize = 64 * 1024;
/// Free text of observed events is cut at this many bytes, on a character boundary.
pub const MAX_OBSERVED_TEXT_BYTES: usize = 64 * 1024;
/// The longest and the default time for one handler.
pub const MAX_HANDLER_TIMEOUT: Duration = Duration::from_millis(30_000);
/// See [`MAX_HANDLER_TIMEOUT`].
pub const DEFAULT_HANDLER_TIMEOUT: Duration = Duration::from_millis(2_000);
/// A handler's own calls through hookgate are recognised this long after its timeout.
pub const DISPATCH_TOKEN_GRACE: Duration = Duration::from_secs(5);
/// How many prompts of a history that was never seen before are asked about at once.
pub const MAX_CONCURRENT_REPLAYS: usize = 16;
/// How many observing dispatches may be under way at once in the process; more are dropped, counted and audited.
pub const MAX_OBSERVERS: usize = 4096;
/// Rounds of one answer that hookgate itself starts for calls that it answers.
pub const MAX_PROXY_ROUNDS: u32 = 8;
/// Tokens of one-time callbacks of one session, ended ones included.
pub const MAX_SESSION_TOKENS: usize = 1_000;
/// Tokens of one-time callbacks in all (in memory), ended ones included.
pub const MAX_TOKENS: usize = 100_000;
/// Messages in the inbox of one session. When as many wait, further callbacks are not admitted.
pub const MAX_SESSION_MESSAGES: usize = 1_000;
/// The text of all messages in all inboxes (in memory), in bytes.
pub const MAX_INBOX_BYTES: usize = 256 << 20;
/// A message that nobody wanted for this long is forgotten.
pub const MAX_MESSAGE_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest purpose of a callback, in bytes of UTF-8.
pub const MAX_PURPOSE_BYTES: usize = 1024;
/// A callback's message is cut to this many bytes, on a character boundary, so that it cannot flood a context window.
pub const MAX_CALLBACK_MESSAGE_BYTES: usize = 64 * 1024;
/// A callback is claimed this much longer than its delivery may take.
pub const CLAIM_GRACE: Duration = Duration::from_secs(5);
/// A call of one of hookgate's tools that an agent got is remembered this long, so that the MCP server knows whose it is:
/// an agent makes it at once, or after a person allowed it.
pub const CORRELATION_WINDOW: Duration = Duration::from_secs(30);
/// Such calls that are remembered at once; the oldest makes room.
pub const MAX_CORRELATED_CALLS: usize = 10_000;
/// Sub-agents of one session whose conversations are remembered at once, by the ids that clients give them; the one that was
/// used longest ago makes room.
pub const MAX_SESSION_AGENTS: usize = 256;
/// Background tasks of one session, those that ended and are still known included. When as many run, no further one begins.
pub const MAX_SESSION_TASKS: usize = 256;
/// The longest title of a background task, in bytes of UTF-8.
pub const MAX_TASK_TITLE_BYTES: usize = 1024;
/// What `TaskStart` handlers added for a session's model and it has not read, in texts of [`MAX_CONTEXT_BYTES`] at most; the
/// oldest makes room.
pub const MAX_WAITING_CONTEXTS: usize = 64;
/// The longest session id that is taken from a header, or begins a session on the control surface, in bytes.
pub const MAX_ID_BYTES: usize = 256;
/// Calls of `await_tmp_hook` that wait at once.
pub const MAX_AWAITS: usize = 1_000;

/// The limits that an operator can set (`[limits]` and `[hooks]`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest request body that is inspected, in bytes; a larger one is answered with 413.
    pub max_request_bytes: usize,
    /// Bytes that one answer may have held back or recorded at once.
    pub max_held_bytes: usize,
    /// The largest prompt, tool input or answer that is given to a gating handler; a larger one is undecidable.
    pub max_gated_bytes: usize,
    /// Sessions remembered at once; the longest idle one is forgotten first.
    pub max_sessions: usize,
    /// A session that is idle this long is forgotten, when the next requests of other sessions come or it comes back.
    pub session_idle: Duration,
    /// The pause between keep-alives while an answer is held.
    pub keepalive: Duration,
    /// The longest time that one answer may be held in all; Claude Code gives up at 300 s of silence.
    pub max_hold: Duration,
    /// Continuations of one answer because all its calls were denied.
    pub max_deny_rounds: u32,
    /// Continuations of one turn that Stop handlers may ask for.
    pub max_stop_retries: u32,
    /// Audit records kept for one session.
    pub audit_per_session: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_request_bytes: 64 << 20,
            max_held_bytes: 8 << 20,
            max_gated_bytes: 1 << 20,
            max_sessions: 100_000,
            session_idle: Duration::from_secs(24 * 3600),
            keepalive: Duration::from_millis(5_000),
            max_hold: Duration::from_secs(240),
            max_deny_rounds: 3,
            max_stop_retries: 3,
            audit_per_session: 500,
        }
    }
}
