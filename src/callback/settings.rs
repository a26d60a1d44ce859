//! What an operator can set.

use std::time::Duration;

use super::Controller;
use super::origin::{self, OriginError, Scheme};

/// How callbacks are issued and taken. The defaults are those of the configuration file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// What stands before the path of a callback's URL; see [`Settings::base_url`].
    origin: Result<String, OriginError>,
    /// The path below which callbacks come in, without a slash at the end; see [`Settings::path_prefix`].
    path_prefix: String,
    /// How long a token lives when nobody says.
    pub ttl: Duration,
    /// The least that can be asked for; less is raised to it.
    pub min_ttl: Duration,
    /// The most that can be asked for; more is lowered to it.
    pub max_ttl: Duration,
    /// The largest body, in bytes, before and after its decoding.
    pub max_body_bytes: usize,
    /// The pause between sweeps; zero: none.
    pub sweep_interval: Duration,
    /// How long the admission of a message may take, and the controller's answer.
    pub deliver_timeout: Duration,
    /// How long a body may take to arrive.
    pub body_read_timeout: Duration,
    /// How long the same body is answered with success again.
    pub replay_grace: Duration,
    /// How long it is remembered what became of a token.
    pub tombstone: Duration,
    /// Who takes messages over instead of the inbox's readers.
    pub controller: Option<Controller>,
}

/// A setting that is no good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// The base URL.
    #[error("the base URL has to be an absolute http or https URL without user, query and fragment")]
    BaseUrl,
    /// The path prefix.
    #[error("the path prefix has to be a path below the root, of plain segments, such as \"/api/tmp-hooks\"")]
    PathPrefix,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            origin: Err(OriginError::Undeclared),
            path_prefix: "/api/tmp-hooks".to_owned(),
            ttl: Duration::from_secs(1800),
            min_ttl: Duration::from_secs(30),
            max_ttl: Duration::from_secs(86_400),
            max_body_bytes: 256 << 10,
            sweep_interval: Duration::from_secs(60),
            deliver_timeout: Duration::from_secs(15),
            body_read_timeout: Duration::from_secs(30),
            replay_grace: Duration::ZERO,
            tombstone: Duration::from_secs(86_400),
            controller: None,
        }
    }
}

impl Settings {
    /// The public origin that workers call.
    ///
    /// # Errors
    /// When it is not an absolute HTTP URL.
    ///
    /// ```
    /// use hookgate::callback::Settings;
    /// assert!(Settings::default().base_url("https://agents.example.com/").is_ok());
    /// assert!(Settings::default().base_url("agents.example.com").is_err());
    /// ```
    pub fn base_url(mut self, url: &str) -> Result<Self, SettingsError> {
        self.origin = Ok(origin::base_url(url).ok_or(SettingsError::BaseUrl)?);
        Ok(self)
    }

    /// Derives the origin from the names under which this deployment is reached: the one domain without a port among
    /// them. Without one, or with several, issuing fails and says what to set.
    #[must_use]
    pub fn trusted_hosts(mut self, hosts: &[String], scheme: Scheme) -> Self {
        self.origin = origin::derived(hosts, scheme);
        self
    }

    /// Where callbacks come in, such as `/api/tmp-hooks`.
    ///
    /// # Errors
    /// When it is the root or not a plain path.
    pub fn path_prefix(mut self, prefix: &str) -> Result<Self, SettingsError> {
        let path = prefix.strip_suffix('/').unwrap_or(prefix);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~:@!$&'()*+,;=".contains(&byte);
        let fits = |step: &str| !matches!(step, "" | "." | "..") && step.bytes().all(plain);
        if !path.strip_prefix('/').is_some_and(|steps| steps.split('/').all(fits)) {
            return Err(SettingsError::PathPrefix);
        }
        self.path_prefix = path.to_owned();
        Ok(self)
    }

    pub(super) fn origin(&self) -> Result<&str, OriginError> {
        self.origin.as_deref().map_err(|error| *error)
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.path_prefix
    }

    /// The lifetime that is granted, in seconds.
    pub(super) fn granted(&self, asked: Option<i64>) -> i64 {
        let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        // Not `clamp`, which panics when the bounds cross.
        let within = |asked: i64| asked.max(seconds(self.min_ttl)).min(seconds(self.max_ttl));
        asked.map_or(seconds(self.ttl), within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_kept_within_its_bounds() {
        let settings = Settings::default();
        for (asked, granted) in
            [(None, 1800), (Some(60), 60), (Some(29), 30), (Some(i64::MIN), 30), (Some(i64::MAX), 86_400)]
        {
            assert_eq!(settings.granted(asked), granted, "{asked:?}");
        }
    }

    #[test]
    fn a_prefix_is_a_path_below_the_root() {
        for prefix in ["/a", "/api/tmp-hooks/", "/a.b/c"] {
            assert!(Settings::default().path_prefix(prefix).is_ok(), "{prefix}");
        }
        for prefix in ["", "/", "//", "a", "/a//b", "/a/../b", "/a%2fb", "/a?b", "/a b"] {
            assert!(Settings::default().path_prefix(prefix).is_err(), "{prefix}");
        }
    }
}
