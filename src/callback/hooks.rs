//! The handle: issuing, listing, revoking.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio::sync::watch;

use super::deliver::Deliverer;
use super::origin::OriginError;
use super::settings::Settings;
use super::token::{Token, TokenKey};
use super::{CallbackService, machine};
use crate::dispatch::HandlerTransport;
use crate::id::SessionKey;
use crate::limits::MAX_PURPOSE_BYTES;
use crate::store::{CallbackStore, Issuing, NewToken, Revoking, StoreError, TokenRecord};
use crate::time::Timestamp;

/// How often another token is drawn when the prefix of the first one is taken within its session.
const DRAWS: usize = 8;

/// One-time callbacks: issues them, takes them in, and holds what they brought. Cheap to clone; all clones are one.
#[derive(Clone)]
pub struct TmpHooks {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) settings: Settings,
    pub(super) store: Arc<dyn CallbackStore>,
    pub(super) key: TokenKey,
    pub(super) deliverer: Option<Deliverer>,
    /// Who is told of a session when a callback is issued for it.
    pub(super) on_issue: OnceLock<Box<Told>>,
    /// Tells whoever waits that nobody is left to serve: by `true`, or by being dropped.
    pub(super) closed: watch::Sender<bool>,
    /// What agents are about to ask the MCP server for.
    #[cfg(feature = "mcp")]
    pub(super) calls: super::calls::Calls,
    /// Who judges what the MCP server gives.
    #[cfg(feature = "mcp")]
    pub(super) screen: OnceLock<Arc<dyn super::Screen>>,
}

/// Who is told of a session.
type Told = dyn Fn(&SessionKey) + Send + Sync;

/// A callback that was issued. `url` goes to the worker, and nothing else of it.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct TmpHook {
    /// What the worker POSTs to, once.
    pub url: String,
    /// The secret in it.
    pub token: String,
    /// The session that it reaches.
    pub session_id: Arc<str>,
    /// When it expires.
    pub expires_at: Timestamp,
    /// How long that is from now.
    pub expires_in_seconds: i64,
}

/// Without the secret.
impl fmt::Debug for TmpHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TmpHook");
        shown.field("session_id", &self.session_id).field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// A callback in a list: everything but its token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedHook {
    /// The eight hex digits that stand for its token.
    pub hash: String,
    /// What is waited for.
    pub purpose: Option<String>,
    /// `open`, `claimed`, `delivered`, `expired` or `revoked`.
    pub state: &'static str,
    /// When it was issued.
    pub created_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When its message was admitted.
    pub delivered_at: Option<Timestamp>,
}

impl ListedHook {
    fn of(record: TokenRecord, now: Timestamp) -> Self {
        let (state, delivered_at) = machine::listed(&record, now);
        ListedHook {
            hash: record.hash.prefix(),
            purpose: record.purpose,
            state,
            created_at: record.created_at,
            expires_at: record.expires_at,
            delivered_at,
        }
    }
}

/// Why no callback was issued. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssueError {
    /// It would have no address.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The purpose is too long.
    #[error("the purpose has more than {MAX_PURPOSE_BYTES} bytes; describe the awaited work in a sentence")]
    Purpose,
    /// The session, or the store, has as many as it may have.
    #[error("too many callbacks are open already; revoke some, or wait until they end")]
    TooMany,
    /// The store failed.
    #[error("the callback could not be stored; try again")]
    Store(#[source] StoreError),
}

impl TmpHooks {
    /// Callbacks that are kept in a store. `transport` is the way to the controller, if the settings name one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use std::sync::{Arc, OnceLock};
    /// use hookgate::callback::{Settings, TmpHooks, TokenKey};
    /// use hookgate::id::SessionKey;
    /// use hookgate::store::MemoryStore;
    ///
    /// let settings = Settings::default().base_url("https://agents.example.com").unwrap();
    /// let hooks = TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None);
    /// let session = SessionKey { tenant: "default".into(), session: "s1".into() };
    ///
    /// let hook = hooks.issue(&session, Some("the build"), Some(600)).await.unwrap();
    /// assert_eq!(hook.url, format!("https://agents.example.com/api/tmp-hooks/{}", hook.token));
    /// assert_eq!((hook.expires_in_seconds, hooks.open_callbacks(&session)), (600, 1));
    /// # });
    /// ```
    pub fn new(
        settings: Settings,
        store: Arc<dyn CallbackStore>,
        key: TokenKey,
        transport: Option<Arc<dyn HandlerTransport>>,
    ) -> Self {
        let deliverer = settings.controller.clone().map(|controller| Deliverer::new(controller, transport));
        let inner = Inner {
            settings,
            store,
            key,
            deliverer,
            on_issue: OnceLock::new(),
            closed: watch::Sender::new(false),
            #[cfg(feature = "mcp")]
            calls: Default::default(),
            #[cfg(feature = "mcp")]
            screen: Default::default(),
        };
        TmpHooks { inner: Arc::new(inner) }
    }

    /// Issues a callback for a session; one that was never seen begins with it.
    ///
    /// # Errors
    /// See [`IssueError`].
    pub async fn issue(
        &self,
        session: &SessionKey,
        purpose: Option<&str>,
        ttl_seconds: Option<i64>,
    ) -> Result<TmpHook, IssueError> {
        let Inner { settings, store, key, .. } = &*self.inner;
        let base = format!("{}{}", settings.origin()?, settings.prefix());
        let purpose = purpose.map(str::trim).filter(|purpose| !purpose.is_empty());
        if purpose.is_some_and(|purpose| purpose.len() > MAX_PURPOSE_BYTES) {
            return Err(IssueError::Purpose);
        }
        let expires_in_seconds = settings.granted(ttl_seconds);
        let now = Timestamp::now();
        let expires_at = now.after(std::time::Duration::from_secs(expires_in_seconds.unsigned_abs()));
        for _ in 0..DRAWS {
            let token = Token::random();
            let hash = key.hash(&token);
            let new = NewToken { hash, session: session.clone(), purpose: purpose.map(str::to_owned), expires_at };
            match store.issue(new, now).await.map_err(IssueError::Store)? {
                Issuing::Collision => continue,
                Issuing::Full => return Err(IssueError::TooMany),
                Issuing::Issued => {
                    if let Some(tell) = self.inner.on_issue.get() {
                        tell(session);
                    }
                    tracing::debug!(session = &*session.session, token = hash.prefix(), "a callback was issued");
                    let url = format!("{base}/{}", token.reveal());
                    let (token, session_id) = (token.reveal().to_owned(), session.session.clone());
                    return Ok(TmpHook { url, token, session_id, expires_at, expires_in_seconds });
                }
            }
        }
        // Of four billion prefixes, a thousand at most are taken.
        Err(IssueError::TooMany)
    }

    /// The session's callbacks in the order in which they were issued, at most `limit`, after the one with the hash `after`.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list(
        &self,
        session: &SessionKey,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListedHook>, StoreError> {
        let records = self.inner.store.tokens(session.clone(), after.map(str::to_owned), limit).await?;
        let now = Timestamp::now();
        Ok(records.into_iter().map(|record| ListedHook::of(record, now)).collect())
    }

    /// Takes back the session's callback of that hash, as [`TmpHooks::list`] shows it. From then on its URL is unknown.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn revoke(&self, session: &SessionKey, hash: &str) -> Result<Revoking, StoreError> {
        self.inner.store.revoke(session.clone(), hash.to_owned(), Timestamp::now()).await
    }

    /// Forgets everything of a session: its callbacks, whose URLs are unknown from now on, and what they brought.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn forget(&self, session: &SessionKey) -> Result<(), StoreError> {
        #[cfg(feature = "mcp")]
        self.inner.calls.forget(session);
        self.inner.store.forget(session.clone()).await
    }

    /// Has a core told of each session that a callback is issued for. It stays the first one that asked for it.
    pub(crate) fn on_issue(&self, tell: impl Fn(&SessionKey) + Send + Sync + 'static) {
        let _ = self.inner.on_issue.set(Box::new(tell));
    }

    /// How many of the session's callbacks can still come, as far as this process knows. Asks nobody.
    pub fn open_callbacks(&self, session: &SessionKey) -> usize {
        self.inner.store.open_tokens(session, Timestamp::now())
    }

    /// The route that workers call, as a Tower service.
    pub fn service(&self) -> CallbackService {
        CallbackService::new(self.clone())
    }

    /// Where callbacks come in, without a slash at the end.
    pub fn path_prefix(&self) -> &str {
        self.inner.settings.prefix()
    }

    /// Where everything is kept.
    pub fn store(&self) -> &Arc<dyn CallbackStore> {
        &self.inner.store
    }

    /// Sweeps as often as the settings say. Ends when the last handle is gone or [closed](TmpHooks::close); the future
    /// itself is none. Run it beside.
    pub fn sweeping(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let Settings { sweep_interval, tombstone, .. } = self.inner.settings;
        let (store, mut closed) = (self.inner.store.clone(), self.inner.closed.subscribe());
        async move {
            while !sweep_interval.is_zero() {
                tokio::select! {
                    _ = closed.wait_for(|closed| *closed) => return,
                    () = tokio::time::sleep(sweep_interval) => {}
                }
                match store.sweep(tombstone, Timestamp::now()).await {
                    Ok(0) => {}
                    Ok(count) => tracing::debug!(count, "ended callbacks and old messages were forgotten"),
                    Err(error) => tracing::warn!(%error, "ended callbacks were not swept"),
                }
            }
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        *self.inner.closed.borrow()
    }

    /// Ends what waits without an end (readers of inboxes, the sweeping), for a service that stops. Callbacks are still
    /// taken in.
    pub fn close(&self) {
        self.inner.closed.send_replace(true);
    }
}

impl fmt::Debug for TmpHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TmpHooks").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::MemoryStore;

    fn hooks(sweep_interval: Duration) -> TmpHooks {
        let mut settings = Settings::default();
        settings.sweep_interval = sweep_interval;
        TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None)
    }

    #[tokio::test]
    async fn sweeping_ends_with_its_owner() {
        let hooks = hooks(Duration::from_secs(3600));
        let sweeping = tokio::spawn(hooks.sweeping());
        tokio::task::yield_now().await;
        assert!(!sweeping.is_finished());
        drop(hooks);
        sweeping.await.unwrap();
    }

    #[tokio::test]
    async fn sweeping_ends_when_it_is_closed_and_does_not_begin_without_a_pause() {
        let closed = hooks(Duration::from_secs(3600));
        let sweeping = closed.sweeping();
        closed.close();
        sweeping.await;
        hooks(Duration::ZERO).sweeping().await;
    }

    #[tokio::test]
    async fn nothing_that_is_shown_has_the_secret() {
        let settings = Settings::default().base_url("https://a.example").unwrap();
        let hooks = TmpHooks::new(settings, Arc::new(MemoryStore::new()), TokenKey::random(), None);
        let session = SessionKey { tenant: "default".into(), session: "s".into() };
        let hook = hooks.issue(&session, None, None).await.unwrap();
        let listed = hooks.list(&session, None, 9).await.unwrap();
        let shown = format!("{hook:?} {hooks:?} {:?} {listed:?}", hooks.service());
        assert!(!shown.contains(&hook.token), "{shown}");
    }
}
