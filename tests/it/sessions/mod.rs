//! Sessions and their background tasks over sockets, on both hosts.
//!
//! A test is an async function of a [`Host`]; the list below makes each of them a test for each host.

mod auth;
mod context;
mod delete;
mod events;
mod gone;
mod records;
mod stage;
mod tasks;
mod traffic;

use crate::suite::Host;

on_both_hosts! {
    records:
        sessions_are_listed_as_they_were_seen,
        a_list_has_pages_and_can_be_narrowed,
        only_the_agents_own_conversation_counts,
        a_session_is_put_away_and_taken_out,
        a_session_id_of_several_tenants_has_to_be_narrowed,
        what_is_not_there_or_asked_wrongly_is_explained;
    tasks:
        a_task_begins_and_ends,
        a_stop_can_be_repeated_and_not_changed,
        what_cannot_be_done_is_explained,
        only_so_many_tasks_run;
    events:
        a_task_is_told_from_its_begin_to_its_end,
        a_start_is_waited_for,
        handlers_that_fail_stop_no_task,
        a_task_whose_caller_left_is_interrupted,
        hooks_are_not_told_of_what_hooks_do;
    context:
        what_handlers_add_is_read_with_the_next_request,
        only_the_agent_itself_reads_it,
        what_was_not_answered_is_read_again;
    traffic:
        what_a_task_does_is_told_with_its_turn,
        a_task_that_is_unknown_is_none,
        calls_of_tools_are_of_a_session_and_a_task;
    delete:
        handlers_are_told_before_anything_is_deleted,
        nothing_of_a_session_remains,
        tasks_that_run_are_interrupted_first,
        a_session_that_is_deleted_begins_anew,
        a_session_of_which_there_are_only_records_is_deleted_too,
        it_is_told_once_and_done_whoever_leaves, many_delete_it_and_it_is_told_once,
        handlers_that_fail_stop_no_deletion,
        nothing_begins_while_it_is_deleted;
    gone:
        what_was_refused_stays_refused,
        what_was_replaced_is_decided_anew,
        a_request_under_way_leaves_nothing;
}
