//! Who is logged in. The browser has a signed number; everything else about a login is here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::id::random_key;

/// Logins of one name at once; the oldest gives way.
const MAX_LOGINS_PER_NAME: usize = 64;
/// Logins at once in all; the oldest gives way.
const MAX_LOGINS: usize = 16_384;

/// The logins of this process. They end with it.
pub(super) struct Sessions {
    key: [u8; 32],
    lifetime: Duration,
    per_name: usize,
    in_all: usize,
    open: Mutex<HashMap<String, Login>>,
}

/// What a login rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Login {
    pub(super) who: Who,
    /// The digest of what was shown at the login: it has to be the right one still.
    pub(super) proof: blake3::Hash,
    expires: Instant,
}

/// Who logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// Somebody with the token.
    Token,
    /// A user.
    User(Arc<str>),
}

impl Sessions {
    pub(super) fn new(lifetime: Duration) -> Self {
        Sessions::bounded(lifetime, MAX_LOGINS_PER_NAME, MAX_LOGINS)
    }

    fn bounded(lifetime: Duration, per_name: usize, in_all: usize) -> Self {
        Sessions { key: random_key(), lifetime, per_name, in_all, open: Mutex::default() }
    }

    pub(super) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// Opens a login and gives what the browser is to keep.
    pub(super) fn open(&self, who: Who, proof: blake3::Hash, now: Instant) -> String {
        let number = blake3::Hash::from_bytes(random_key()).to_hex();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, login| login.expires > now);
        if open.values().filter(|login| login.who == who).count() >= self.per_name {
            remove_oldest(&mut open, |login| login.who == who);
        }
        if open.len() >= self.in_all {
            remove_oldest(&mut open, |_| true);
        }
        open.insert(number.to_string(), Login { who, proof, expires: now + self.lifetime });
        format!("{number}.{}", self.sign(&number).to_hex())
    }

    /// The login that a browser's cookie stands for.
    pub(super) fn find(&self, cookie: &str, now: Instant) -> Option<Login> {
        let number = self.number(cookie)?;
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(number).filter(|login| login.expires > now).cloned()
    }

    /// Ends a login.
    pub(super) fn close(&self, cookie: &str) {
        if let Some(number) = self.number(cookie) {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(number);
        }
    }

    /// The number in a cookie that this process has signed; compared in constant time.
    fn number<'a>(&self, cookie: &'a str) -> Option<&'a str> {
        let (number, signature) = cookie.split_once('.')?;
        let signature = blake3::Hash::from_hex(signature).ok()?;
        (self.sign(number) == signature).then_some(number)
    }

    fn sign(&self, number: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.key, number.as_bytes())
    }
}

fn remove_oldest(open: &mut HashMap<String, Login>, among: impl Fn(&Login) -> bool) {
    let oldest = open.iter().filter(|(_, login)| among(login)).min_by_key(|(_, login)| login.expires);
    if let Some(number) = oldest.map(|(number, _)| number.clone()) {
        open.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn proof() -> blake3::Hash {
        blake3::hash(b"p")
    }

    #[test]
    fn a_login_ends_by_time_and_by_logout() {
        let sessions = Sessions::new(HOUR);
        let now = Instant::now();
        let cookie = sessions.open(Who::User("ann".into()), proof(), now);
        let last = now + HOUR - Duration::from_millis(1);
        assert_eq!(sessions.find(&cookie, last).unwrap().who, Who::User("ann".into()));
        assert_eq!(sessions.find(&cookie, now + HOUR), None);
        sessions.close(&cookie);
        assert_eq!(sessions.find(&cookie, now), None);
    }

    #[test]
    fn only_what_was_signed_here_is_a_cookie() {
        let sessions = Sessions::new(HOUR);
        let now = Instant::now();
        let cookie = sessions.open(Who::Token, proof(), now);
        let (number, signature) = cookie.split_once('.').unwrap();
        let other = Sessions::new(HOUR).sign(number).to_hex();
        for forged in [
            number.to_owned(),
            format!("{number}."),
            format!("{number}.{other}"),
            format!("{number}x.{signature}"),
            format!(".{signature}"),
            String::new(),
        ] {
            assert_eq!(sessions.find(&forged, now), None, "{forged}");
            sessions.close(&forged);
        }
        assert!(sessions.find(&cookie, now).is_some());
    }

    #[test]
    fn the_oldest_login_gives_way_first_within_its_name_and_then_in_all() {
        let sessions = Sessions::bounded(HOUR, 2, 3);
        let start = Instant::now();
        let open = |who: Who, order: u64| sessions.open(who, proof(), start + Duration::from_millis(order));
        let ann = || Who::User("ann".into());
        let cookies =
            [open(Who::Token, 0), open(ann(), 1), open(ann(), 2), open(ann(), 3), open(Who::User("bob".into()), 4)];
        let known = cookies.map(|cookie| sessions.find(&cookie, start).is_some());
        assert_eq!(known, [false, false, true, true, true]);
    }

    #[test]
    fn logins_are_bounded_as_they_should_be() {
        let sessions = Sessions::new(HOUR);
        let now = Instant::now();
        for _ in 0..=MAX_LOGINS_PER_NAME {
            sessions.open(Who::Token, proof(), now);
        }
        assert_eq!(sessions.open.lock().unwrap().len(), MAX_LOGINS_PER_NAME);
        assert_eq!(sessions.in_all, MAX_LOGINS);
    }
}
