//! Background tasks: their begin and end, wherever they are seen.

use std::sync::Arc;

use serde::Serialize;

use super::core::Hookgate;
use super::origin::{Origin, seen_now};
use super::prompts::marked;
use crate::hooks::{Detail, Event};
use crate::id::{Digest, SessionKey, random_id};
use crate::ledger::{Beginning, Ending, Task, TaskStatus};
use crate::limits::{MAX_SESSION_TASKS, MAX_TASK_TITLE_BYTES};

/// A task that began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StartedTask {
    /// Its id, by which it is stopped. Requests that are made for it name it in the header `x-hookgate-task`.
    pub task_id: Arc<str>,
    /// The turn of its events.
    pub turn_id: String,
}

/// Why a task did not begin, or was not stopped. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The title is too long.
    #[error("the title has more than {MAX_TASK_TITLE_BYTES} bytes; describe the task in a sentence")]
    Title,
    /// As many tasks of the session run as may.
    #[error("{MAX_SESSION_TASKS} tasks of the session run already; stop those that ended")]
    TooMany,
    /// The session is being deleted.
    #[error("the session is being deleted; begin the task when that is done, and the session begins anew")]
    Deleting,
    /// The session has no such task.
    #[error(
        "the session has no such task: it never began, or it ended long ago, or the session was deleted or forgotten"
    )]
    Unknown,
    /// It ended before, in another way.
    #[error("the task ended before as {}, which stays", .0.name())]
    Ended(TaskStatus),
}

impl Hookgate {
    /// Begins a background task of a session; a session that was never seen begins with it. `TaskStart` handlers are told and
    /// waited for, within their timeouts; what they add is read by the session's model with its next request.
    ///
    /// Dropping the future takes the task back: whoever began it will never learn its id. Handlers are told that it was
    /// interrupted.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// use hookgate::id::SessionKey;
    /// use hookgate::{Hookgate, TaskError, TaskStatus};
    ///
    /// let core = Hookgate::builder().build();
    /// let session = SessionKey { tenant: "default".into(), session: "s1".into() };
    /// let task = core.start_task(&session, Some("the nightly build")).await.unwrap();
    /// core.stop_task(&session, &task.task_id, TaskStatus::Failed).unwrap();
    /// let again = core.stop_task(&session, &task.task_id, TaskStatus::Completed);
    /// assert_eq!(again, Err(TaskError::Ended(TaskStatus::Failed)));
    /// # });
    /// ```
    ///
    /// # Errors
    /// When the title is too long, too many tasks run, or the session is being deleted.
    pub async fn start_task(&self, session: &SessionKey, title: Option<&str>) -> Result<StartedTask, TaskError> {
        self.begin_task(session, random_id().into(), title, &Origin::api()).await
    }

    /// Ends a background task; `TaskStop` handlers are told in the background, with the turn of its start. To end it once more
    /// in the same way changes nothing and tells nobody.
    ///
    /// # Errors
    /// When there is no such task, or it ended before in another way.
    pub fn stop_task(&self, session: &SessionKey, task_id: &str, status: TaskStatus) -> Result<(), TaskError> {
        self.end_task(session, task_id, status, &Origin::api())
    }

    /// Begins a task under an id that is new in its session.
    pub(crate) async fn begin_task(
        &self,
        session: &SessionKey,
        id: Arc<str>,
        title: Option<&str>,
        origin: &Origin,
    ) -> Result<StartedTask, TaskError> {
        let title = title.map(str::trim).filter(|title| !title.is_empty());
        if title.is_some_and(|title| title.len() > MAX_TASK_TITLE_BYTES) {
            return Err(TaskError::Title);
        }
        let turn = Digest::of(random_id().as_bytes());
        let task = Task { id: id.clone(), turn, told: !origin.silent, ended: None };
        match self.inner.ledger.begin_task(session, task, &seen_now()) {
            Beginning::Begun => {}
            Beginning::Full => return Err(TaskError::TooMany),
            Beginning::Closed => return Err(TaskError::Deleting),
        }
        if !origin.silent {
            let mut unknown = Unknown { core: self, session, id: &id, origin, is: true };
            let occasion = origin.occasion(Event::TaskStart, session, Some((&id, turn)));
            let detail = Detail::TaskStart { title: title.map(str::to_owned) };
            let hooks = self.hooks_for(Event::TaskStart);
            let added = self.inner.dispatcher.observe_awaited(&hooks, &occasion, detail).await;
            unknown.is = false;
            self.inner.ledger.leave_context(session, marked(Event::TaskStart, &added), &seen_now());
        }
        Ok(StartedTask { task_id: id, turn_id: turn.to_uuid() })
    }

    /// Ends a task.
    pub(crate) fn end_task(
        &self,
        session: &SessionKey,
        id: &str,
        status: TaskStatus,
        origin: &Origin,
    ) -> Result<(), TaskError> {
        match self.inner.ledger.end_task(session, id, status, &seen_now()) {
            Ending::Unknown => Err(TaskError::Unknown),
            Ending::Before(before) if before == status => Ok(()),
            Ending::Before(before) => Err(TaskError::Ended(before)),
            Ending::Ended(task) => {
                if task.told && !origin.silent {
                    let occasion = origin.occasion(Event::TaskStop, session, Some((&task.id, task.turn)));
                    let hooks = self.hooks_for(Event::TaskStop);
                    self.inner.dispatcher.observe(&hooks, occasion, stopped(status));
                }
                Ok(())
            }
        }
    }
}

/// What handlers are told of a task's end.
pub(super) fn stopped(status: TaskStatus) -> Detail {
    Detail::TaskStop { status: status.name().to_owned() }
}

/// A task whose id nobody has yet: when it is dropped so, it is interrupted.
struct Unknown<'a> {
    core: &'a Hookgate,
    session: &'a SessionKey,
    id: &'a str,
    origin: &'a Origin,
    is: bool,
}

impl Drop for Unknown<'_> {
    fn drop(&mut self) {
        if self.is {
            // It is an error when the session was deleted meanwhile, which interrupted the task.
            let _ = self.core.end_task(self.session, self.id, TaskStatus::Interrupted, self.origin);
        }
    }
}
