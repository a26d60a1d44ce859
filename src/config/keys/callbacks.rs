//! `[tmp_hooks]` and `[delivery]`: one-time callbacks and what becomes of their messages.

use std::time::Duration;

use super::Name;
use crate::callback::{Controller, Scheme, Settings};
use crate::config::describe::{At, FromText, choice, section};
use crate::config::document::Value;

section! {
    /// `[tmp_hooks]`
    TmpHooks {
        /// The public origin that stands before the path of every callback's URL. Empty: it is derived from [server]
        /// trusted_hosts.
        base_url: BaseUrl = "",
        /// The scheme of a derived origin.
        base_url_scheme: Scheme = "https",
        /// The path below which callbacks come in.
        path_prefix: At<CallbackPrefix> = "/api/tmp-hooks",
        /// How long a callback can come when nobody asked for a time.
        ttl_seconds: u64 [1..=31_536_000] = Value::seconds(Settings::default().ttl),
        /// The least time that can be asked for; less is raised to it.
        min_ttl_seconds: At<u64> [1..=31_536_000] = Value::seconds(Settings::default().min_ttl),
        /// The most time that can be asked for; more is lowered to it.
        max_ttl_seconds: u64 [1..=31_536_000] = Value::seconds(Settings::default().max_ttl),
        /// The largest body of a callback, in bytes; a larger one is refused with 413.
        max_body_bytes: usize [1..=67_108_864] = Settings::default().max_body_bytes,
        /// The pause between sweeps of what ended, in milliseconds; 0: none, it is only dropped to make room.
        sweep_interval_ms: u64 [0..=86_400_000] = Value::millis(Settings::default().sweep_interval),
        /// How long the admission of a message may take, in milliseconds.
        deliver_timeout_ms: u64 [1..=600_000] = Value::millis(Settings::default().deliver_timeout),
        /// Whether callbacks need no login: their URL is the credential.
        allow_unauthenticated: bool = true,
        /// How long a callback's body may take to arrive, in milliseconds.
        body_read_timeout_ms: u64 [1..=600_000] = Value::millis(Settings::default().body_read_timeout),
        /// How long the same callback again, byte for byte, is answered with success again; 0: it is refused like any other.
        replay_grace_seconds: u64 [0..=86_400] = Value::seconds(Settings::default().replay_grace),
        /// How long a used or expired callback is answered with 410; after that it is unknown.
        tombstone_seconds: u64 [0..=31_536_000] = Value::seconds(Settings::default().tombstone),
    }
}

choice!(Scheme {
    "https" => Scheme::Https, "HTTPS.";
    "http" => Scheme::Http, "Plain HTTP.";
});

section! {
    /// `[delivery]`
    Delivery {
        /// The service that takes messages over for its sessions. Without it they wait for the session's next model request
        /// and for readers of the inbox.
        controller_url: Option<At<ControllerUrl>>,
        /// The name of the connection with the controller's credential.
        controller_connection: Option<At<Name>>,
        /// How long the end of a turn is held back for a callback that is still open; 0: not at all.
        hold_stop_seconds: u64 [0..=3_600] = Value::seconds(Duration::ZERO),
    }
}

/// Empty, or an absolute URL.
#[derive(Clone, Debug)]
pub(crate) struct BaseUrl(pub(crate) String);

impl FromText for BaseUrl {
    const WHAT: &'static str = "an absolute http or https URL without user, query and fragment, such as \"https://agents.example.com\", or nothing";

    fn from_text(text: &str) -> Option<Self> {
        (text.is_empty() || Settings::default().base_url(text).is_ok()).then(|| BaseUrl(text.to_owned()))
    }

    /// A user and a password may stand before the `@`.
    fn may_be_secret(wrong: &str) -> bool {
        wrong.contains('@')
    }
}

/// A path below the root, without a slash at its end.
#[derive(Clone, Debug)]
pub(crate) struct CallbackPrefix(pub(crate) String);

impl FromText for CallbackPrefix {
    const WHAT: &'static str =
        "a path below the root, such as \"/api/tmp-hooks\": plain letters, no empty, \".\" or \"..\" steps";

    fn from_text(text: &str) -> Option<Self> {
        Settings::default().path_prefix(text).is_ok().then(|| CallbackPrefix(text.trim_end_matches('/').to_owned()))
    }
}

/// Where the controller is.
#[derive(Clone, Debug)]
pub(crate) struct ControllerUrl(pub(crate) Controller);

impl FromText for ControllerUrl {
    const WHAT: &'static str = "an https URL without user and fragment, or an http one on this machine, such as \"https://runtime.example.com/prompt\"; credentials go into controller_connection";

    fn from_text(text: &str) -> Option<Self> {
        Controller::at(text).map(ControllerUrl)
    }

    /// See [`BaseUrl`].
    fn may_be_secret(wrong: &str) -> bool {
        wrong.contains('@')
    }
}
