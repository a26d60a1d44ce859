//! The background tasks of one session.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::id::Digest;
use crate::limits::MAX_SESSION_TASKS;

/// The tasks of one session, in the order in which they began: those that run, and as many ended ones as there is room for,
/// so that a stop whose answer was lost can be repeated.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    tasks: VecDeque<Task>,
    /// The session is being deleted: nothing begins in it.
    closed: bool,
}

/// One task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Its id, unique within its session.
    pub(crate) id: Arc<str>,
    /// The turn that its start and its end are told with.
    pub(crate) turn: Digest,
    /// Whether handlers were told of its start, so that they are to be told of its end.
    pub(crate) told: bool,
    /// How it ended.
    pub(crate) ended: Option<TaskStatus>,
}

/// How a background task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskStatus {
    /// It did what it was to do.
    Completed,
    /// It could not do it.
    Failed,
    /// Somebody called it off.
    Cancelled,
    /// Whatever ran it went away.
    Interrupted,
}

impl TaskStatus {
    /// Every status.
    pub const ALL: [TaskStatus; 4] =
        [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Cancelled, TaskStatus::Interrupted];

    /// The name in envelopes and in the API.
    pub fn name(self) -> &'static str {
        match self {
            TaskStatus::Completed => "completed",
            TaskStatus::Failed => "failed",
            TaskStatus::Cancelled => "cancelled",
            TaskStatus::Interrupted => "interrupted",
        }
    }

    /// The status of a name.
    ///
    /// ```
    /// use hookgate::TaskStatus;
    /// assert_eq!(TaskStatus::parse("failed"), Some(TaskStatus::Failed));
    /// assert_eq!(TaskStatus::parse("Failed"), None);
    /// ```
    pub fn parse(name: &str) -> Option<TaskStatus> {
        TaskStatus::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// What became of the wish to begin a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// It runs.
    Begun,
    /// As many run as may.
    Full,
    /// The session is being deleted.
    Closed,
}

/// What became of the wish to end a task.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    /// It ended now.
    Ended(Task),
    /// It had ended before, in this way.
    Before(TaskStatus),
    /// There is none of that id.
    Unknown,
}

impl Tasks {
    /// Begins a task. The one that began first of those that ended makes room.
    pub(super) fn begin(&mut self, task: Task) -> Beginning {
        if self.closed {
            return Beginning::Closed;
        }
        if self.tasks.len() >= MAX_SESSION_TASKS {
            let Some(ended) = self.tasks.iter().position(|task| task.ended.is_some()) else { return Beginning::Full };
            self.tasks.remove(ended);
        }
        self.tasks.push_back(task);
        Beginning::Begun
    }

    /// Ends a task.
    pub(super) fn end(&mut self, id: &str, status: TaskStatus) -> Ending {
        match self.tasks.iter_mut().find(|task| *task.id == *id) {
            None => Ending::Unknown,
            Some(Task { ended: Some(before), .. }) => Ending::Before(*before),
            Some(task) => {
                task.ended = Some(status);
                Ending::Ended(task.clone())
            }
        }
    }

    /// A task, whether it runs or ended.
    pub(super) fn get(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| *task.id == *id)
    }

    /// Lets nothing begin any more and ends what runs; gives that.
    pub(super) fn close(&mut self) -> Vec<Task> {
        self.closed = true;
        let mut ended = Vec::new();
        for task in self.tasks.iter_mut().filter(|task| task.ended.is_none()) {
            task.ended = Some(TaskStatus::Interrupted);
            ended.push(task.clone());
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(number: usize) -> Task {
        Task { id: number.to_string().into(), turn: Digest::of(b"turn"), told: true, ended: None }
    }

    #[test]
    fn ended_tasks_make_room_and_running_ones_do_not() {
        let mut tasks = Tasks::default();
        for number in 0..MAX_SESSION_TASKS {
            assert_eq!(tasks.begin(task(number)), Beginning::Begun);
        }
        assert_eq!(tasks.begin(task(MAX_SESSION_TASKS)), Beginning::Full);
        assert!(matches!(tasks.end("7", TaskStatus::Failed), Ending::Ended(_)));
        assert!(matches!(tasks.end("7", TaskStatus::Failed), Ending::Before(TaskStatus::Failed)));
        assert_eq!(tasks.begin(task(MAX_SESSION_TASKS)), Beginning::Begun);
        assert!(matches!(tasks.end("7", TaskStatus::Failed), Ending::Unknown), "it made room");
        assert_eq!(tasks.begin(task(MAX_SESSION_TASKS + 1)), Beginning::Full);
    }

    #[test]
    fn nothing_begins_where_all_has_ended() {
        let mut tasks = Tasks::default();
        tasks.begin(task(1));
        tasks.begin(task(2));
        tasks.end("1", TaskStatus::Completed);
        assert_eq!(tasks.close().iter().map(|task| &*task.id).collect::<Vec<_>>(), ["2"]);
        assert!(matches!(tasks.end("2", TaskStatus::Completed), Ending::Before(TaskStatus::Interrupted)));
        assert_eq!(tasks.begin(task(3)), Beginning::Closed);
    }
}
