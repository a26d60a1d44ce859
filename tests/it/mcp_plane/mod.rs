//! Scenarios of routes to MCP servers, against both hosts; those of `both` with answers as JSON and as event streams.

mod calls;
mod gone;
mod modern;
mod planes;
mod requests;
mod rewrite;
mod stage;
mod streams;
mod tasks;

use stage::At as Setting;

use crate::suite::Host;

suite! {
    both {
        calls: an_allowed_call_passes_as_it_came, a_denied_call_reaches_no_server, ids_are_echoed_as_they_were_written,
            a_failed_result_is_told_as_a_failure, an_error_is_told_as_a_failure, a_call_without_hooks_passes,
            context_is_added_to_the_result, a_compressed_answer_is_read;
        rewrite: arguments_are_replaced_and_nothing_else, missing_arguments_are_put_in, a_replacement_must_fit_the_schema,
            a_schema_that_a_client_listed_is_not_asked_for, a_schema_is_asked_for_over_pages,
            changed_tools_are_asked_for_again;
        modern: a_denial_says_that_it_is_complete, headers_and_body_must_agree, mirrored_headers_follow_the_arguments,
            rounds_are_one_call, a_round_that_nobody_decided_is_decided;
        planes: one_call_is_one_dispatch, the_models_id_tells_equal_calls_apart, what_was_not_asked_is_asked_at_the_tool,
            who_was_asked_is_not_asked_again, a_denial_at_the_tool_is_no_outcome, a_call_of_nobodys_model_is_decided_at_the_tool;
        tasks: an_experimental_task_is_told_with_its_result, a_modern_task_is_told_once, a_cancelled_task_has_failed;
    }
    streamed {
        calls: a_policy_that_fails_decides_by_its_mode, matchers_know_the_server;
        requests: what_cannot_be_read_is_refused, batches_are_refused_where_there_are_none, a_batch_is_decided_call_by_call,
            notifications_and_answers_pass, statuses_of_sessions_pass, a_session_begins_and_ends_once,
            an_absent_server_is_told_as_a_failure;
        streams: what_comes_before_the_result_is_not_held, a_result_comes_on_another_stream, any_split_gives_the_same,
            a_stream_that_lasts_is_not_buffered, an_answer_too_large_to_look_at_passes,
            an_answer_in_an_unknown_coding_passes, a_digest_does_not_outlive_a_change;
        gone: a_legacy_call_goes_on_without_its_client, a_legacy_call_goes_on_before_its_answer_begins,
            a_modern_call_is_given_up_with_its_client, a_client_that_leaves_while_a_policy_thinks_calls_nothing;
    }
}
