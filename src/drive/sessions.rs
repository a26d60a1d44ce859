//! Sessions as a whole: looked at, put away, deleted.

use std::sync::Arc;

use futures_util::future::join_all;

use super::core::Hookgate;
use super::origin::{Origin, seen_now};
use super::tasks::stopped;
use crate::audit::Page;
use crate::callback::TmpHooks;
use crate::hooks::{Detail, Event};
use crate::id::SessionKey;
use crate::ledger::{SessionQuery, SessionRecord, TaskStatus};
use crate::store::StoreError;

/// Why a session ended, as `SessionEnd` tells it. There is one reason: one that is merely forgotten may come again.
const DELETED: &str = "deleted";

impl Hookgate {
    /// The record of a session; `None` when it was never seen, or was forgotten or deleted.
    pub fn session(&self, session: &SessionKey) -> Option<SessionRecord> {
        self.inner.ledger.record(session)
    }

    /// A page of the sessions, the newest first; `next` of one page is `after` of the next.
    pub fn sessions(&self, query: &SessionQuery) -> Page<SessionRecord> {
        self.inner.ledger.records(query)
    }

    /// The sessions of that id, one for each tenant that has it, in no order.
    pub fn sessions_named(&self, id: &str) -> Vec<SessionKey> {
        self.inner.ledger.named(id)
    }

    /// Puts a session away or takes it out again, which changes nothing but how it is shown; `false` when there is none.
    pub fn archive_session(&self, session: &SessionKey, archived: bool) -> bool {
        self.inner.ledger.archive(session, archived)
    }

    /// Deletes a session.
    ///
    /// 1. Handlers are told first, and waited for within their timeouts: `TaskStop` (`interrupted`) for each task that runs, then
    ///    `SessionEnd`, once however many delete it at the same time, and not of a session of which nothing is known.
    /// 2. Then its callbacks and what they brought (when the core [has](crate::HookgateBuilder::callbacks) them), its audit
    ///    records, all that is remembered of its conversations, and its record are gone.
    /// 3. What stays is that prompts were refused, as digests of the histories that lead to them, without a name or a word: a
    ///    client that goes on with the old conversation does not get a refused prompt before the model.
    /// 4. A request that is under way goes on and leaves nothing behind. The next one begins the session anew.
    /// 5. Once begun it is done, whether or not the future is awaited to its end; it needs a tokio runtime.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use hookgate::Hookgate;
    /// use hookgate::id::SessionKey;
    ///
    /// let core = Hookgate::builder().build();
    /// let session = SessionKey { tenant: "default".into(), session: "s1".into() };
    /// core.start_task(&session, None).await.unwrap();
    /// assert!(core.session(&session).is_some());
    /// core.delete_session(&session).await.unwrap();
    /// assert!(core.session(&session).is_none());
    /// # });
    /// ```
    ///
    /// # Errors
    /// When the store of callbacks fails: then the rest is still there, and deleting it again tells nobody twice.
    pub async fn delete_session(&self, session: &SessionKey) -> Result<(), StoreError> {
        self.delete(session, Origin::api()).await
    }

    pub(crate) async fn delete(&self, session: &SessionKey, origin: Origin) -> Result<(), StoreError> {
        let (core, session) = (self.clone(), session.clone());
        let deletion = tokio::spawn(async move {
            if origin.silent {
                // It may be a handler that is being told of this very session's end, and that cannot be waited for.
                return core.forget(&session).await;
            }
            let ledger = &core.inner.ledger;
            // The record is the last to go: without one and without anything else it was deleted since the caller looked.
            let deletion = match ledger.deletion(&session) {
                Some(deletion) => deletion,
                None if core.is_known_elsewhere(&session).await? => ledger.begin_deletion(&session, &seen_now()),
                None => return Ok(()),
            };
            let delete = || async {
                deletion.told.get_or_init(|| core.tell_end(&session, &origin)).await;
                core.forget(&session).await
            };
            deletion.done.get_or_try_init(delete).await.copied()
        });
        deletion.await.unwrap_or_else(|error| Err(StoreError::new(format!("the deletion broke off: {error}"))))
    }

    /// Whether something is left of a session whose record was forgotten.
    async fn is_known_elsewhere(&self, session: &SessionKey) -> Result<bool, StoreError> {
        if self.audit().sessions_named(&session.session).contains(session) {
            return Ok(true);
        }
        let Some(callbacks) = &self.inner.callbacks else { return Ok(false) };
        Ok(callbacks.hooks.store().sessions_named(session.session.to_string()).await?.contains(session))
    }

    /// Tells of a session's end, and of that of its tasks.
    async fn tell_end(&self, session: &SessionKey, origin: &Origin) {
        let hooks = self.hooks_for(Event::SessionEnd);
        let dispatcher = &self.inner.dispatcher;
        let tasks = self.inner.ledger.close_tasks(session);
        join_all(tasks.iter().filter(|task| task.told).map(|task| async {
            let occasion = origin.occasion(Event::TaskStop, session, Some((&task.id, task.turn)));
            dispatcher.observe_awaited(&hooks, &occasion, stopped(TaskStatus::Interrupted)).await
        }))
        .await;
        let occasion = origin.occasion(Event::SessionEnd, session, None);
        dispatcher.observe_awaited(&hooks, &occasion, Detail::SessionEnd { reason: DELETED.to_owned() }).await;
    }

    /// Forgets a session. Its own record is the last to go, so that what fails can be tried again.
    async fn forget(&self, session: &SessionKey) -> Result<(), StoreError> {
        if let Some(callbacks) = &self.inner.callbacks {
            callbacks.hooks.forget(session).await?;
        }
        self.inner.mcp.forget(session);
        self.inner.correlation.forget(session);
        self.audit().forget(session);
        self.inner.ledger.forget(session);
        tracing::info!(tenant = &*session.tenant, session = &*session.session, "a session was deleted");
        Ok(())
    }

    /// Takes note of the sessions that callbacks are issued for.
    pub(crate) fn watch(&self, hooks: &TmpHooks) {
        let core = Arc::downgrade(&self.inner);
        hooks.on_issue(move |session| {
            if let Some(inner) = core.upgrade() {
                inner.ledger.note(session, &seen_now());
            }
        });
    }
}
