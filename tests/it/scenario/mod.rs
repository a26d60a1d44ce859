//! One suite of scenarios, run against both hosts.
//!
//! Each scenario below is a test for each host, called `scenario::<host>::<streamed | whole>::<name>`.

mod callbacks;
mod denied;
mod deny;
mod echo;
mod failure;
mod fidelity;
mod gone;
mod history;
mod joined;
mod mcp;
mod modify;
mod post;
mod prompt;
mod provider;
mod stage;
mod stalled;
mod stop;
mod streaming;
mod subagent;
mod surface;
mod typed;
mod undecidable;

use stage::Setting;

use crate::suite::Host;

suite! {
    both {
        callbacks:
            a_callback_comes_back_as_a_message,
            a_callback_comes_behind_new_results,
            a_held_turn_goes_on_with_the_callback,
            a_hold_ends_when_nothing_comes,
            a_client_that_leaves_a_held_turn_loses_nothing,
            a_callback_is_judged_like_a_prompt,
            a_callback_that_could_not_be_judged_waits,
            a_callback_in_a_failed_request_is_not_lost,
            a_callback_beside_a_call_of_the_client,
            a_call_that_gets_no_callback_says_why,
            a_model_that_asks_for_ever_is_stopped,
            callbacks_are_offered_to_the_agent_itself;
        mcp:
            a_call_that_the_model_made_tells_the_session,
            a_call_of_two_sessions_is_nobodys,
            a_rewritten_call_is_known_as_the_client_makes_it,
            a_denied_call_is_not_known,
            an_awaited_message_is_judged,
            an_awaited_message_that_could_not_be_judged_waits;
        deny:
            deny_first_of_three,
            deny_middle_of_three,
            deny_last_of_three,
            a_denied_call_stays_in_every_later_request,
            deny_all_goes_on_in_the_same_answer,
            a_merged_answer_is_split_again,
            on_deny_end_ends_with_the_reason,
            deny_rounds_are_capped,
            a_continuation_is_free_to_choose_and_bounded,
            a_continuation_that_fails_ends_with_the_reason,
            an_overloaded_upstream_is_asked_again,
            a_repeated_denial_is_told_to_be_final,
            a_policy_that_fails_closed_denies_and_is_named,
            a_policy_that_fails_open_allows,
            the_first_denial_ends_the_dispatch;
        echo:
            an_exact_echo_is_split,
            an_echo_with_moving_cache_marks_is_split,
            an_echo_with_collapsed_texts_is_split,
            an_echo_without_its_thinking_is_split,
            a_changed_echo_is_split_without_its_thinking,
            a_fork_leaves_a_denied_prompt_out,
            the_same_denied_prompt_twice_stays_out_twice;
        failure:
            an_error_status_is_passed_on_and_told,
            an_error_event_is_passed_on_and_told,
            a_cut_is_an_error,
            an_unreachable_upstream_is_a_bad_gateway,
            an_upstream_that_hangs_up_is_a_bad_gateway,
            an_answer_of_the_other_kind_is_inspected,
            an_answer_that_cannot_be_decoded_does_not_pass,
            an_answer_that_cannot_be_decoded_passes_while_nobody_judges;
        fidelity:
            passing_hooks_change_no_byte,
            a_held_end_is_released_as_it_was,
            without_hooks_nothing_is_touched,
            a_chopped_answer_means_the_same,
            an_edit_keeps_all_other_bytes,
            a_compressed_request_is_judged,
            an_unknown_request_coding_is_refused_while_someone_judges,
            a_compressed_answer_is_inspected,
            an_edited_answer_has_its_own_length;
        gone:
            before_the_first_byte,
            while_a_call_is_decided,
            while_a_prompt_is_decided,
            while_an_answer_is_continued;
        history:
            an_exact_echo_is_corrected,
            moving_cache_marks_do_not_matter,
            collapsed_prompts_do_not_matter,
            dropped_thinking_stays_dropped,
            instructions_in_between_do_not_matter,
            a_resumed_session_is_corrected,
            counted_histories_are_corrected,
            a_fork_is_corrected,
            a_compacted_history_is_left_alone,
            an_edited_history_is_a_branch,
            a_history_is_a_session_of_its_own,
            repeated_call_ids_are_judged_each,
            server_side_history_gets_the_missing_result,
            equal_answers_are_told_apart;
        joined:
            a_denied_prompt_is_taken_from_what_it_is_joined_with,
            a_rewritten_prompt_leaves_alone_what_it_is_joined_with,
            a_whole_that_was_denied_does_not_come_back_in_parts,
            results_of_a_denied_prompt_are_joined_with_more,
            an_answer_in_the_words_of_a_refusal_stays;
        modify:
            arguments_are_replaced,
            a_rewrite_leaves_other_blocks_alone,
            a_replacement_must_fit_the_schema,
            a_replacement_that_does_not_fit_is_not_used,
            replacements_are_chained,
            context_stands_after_the_results;
        post:
            each_result_is_told_once,
            a_denied_call_has_no_result_to_tell_of,
            a_rewritten_call_is_told_with_what_ran,
            observers_delay_nothing;
        prompt:
            a_denied_prompt_never_reaches_the_model,
            a_refusal_by_failure_is_not_for_ever,
            results_beside_a_denied_prompt_stay,
            a_rewritten_prompt_is_one_text,
            context_follows_the_prompt_for_ever,
            context_cannot_forge_its_delimiter,
            session_context_comes_with_the_first_prompt,
            a_session_with_a_past_is_told_as_resumed,
            only_a_known_client_has_context_of_its_own,
            a_side_request_starts_no_turn,
            old_prompts_are_judged_when_they_are_new_here,
            the_same_words_twice_are_two_prompts,
            a_retry_is_the_same_prompt,
            concurrent_retries_share_a_decision,
            system_entries_are_not_prompts,
            counted_prompts_are_judged,
            a_rewritten_prompt_is_judged_again_by_the_next;
        provider:
            a_denied_declaration_is_removed,
            an_allowed_declaration_stays_as_it_is,
            only_a_matching_handler_is_asked,
            results_of_the_provider_are_told_once,
            a_failed_search_is_a_failure;
        stop:
            continue_goes_on_in_the_same_answer,
            a_continued_answer_is_split_again,
            a_closed_handler_that_never_agrees_ends_in_an_error,
            an_open_handler_that_never_agrees_is_capped,
            the_cap_holds_over_tools,
            a_stop_handler_that_fails_closed_blocks,
            a_stop_handler_that_fails_open_lets_it_end,
            what_is_no_end_fires_no_stop,
            a_continuation_that_fails_ends_the_answer_as_it_was,
            calls_of_a_continuation_are_judged;
        subagent:
            a_delegation_starts_and_stops_once,
            a_denied_delegation_is_a_denied_call,
            a_delegated_prompt_can_be_replaced,
            a_call_that_is_denied_starts_nothing,
            a_failed_delegation_is_told_as_failed,
            a_subagents_end_is_told_once_and_names_it,
            threads_of_one_session_are_apart,
            a_nested_agent_names_its_parent;
        surface:
            a_surface_that_cannot_be_inspected_is_refused,
            a_surface_that_is_allowed_passes,
            every_surface_passes_where_nobody_judges,
            helpers_pass,
            headers_pass_and_our_own_stay,
            a_trace_goes_on_to_model_and_handlers,
            what_is_no_trace_is_not_told,
            a_handlers_own_traffic_fires_nothing;
        denied:
            a_denied_tool_is_refused_and_stays_declared,
            no_handler_can_allow_it,
            what_cannot_be_judged_is_denied_too,
            a_tool_that_the_provider_runs_is_not_declared;
        typed:
            a_denied_prompt_in_a_result_never_reaches_the_model,
            a_rewritten_prompt_in_a_result_changes_nothing_else,
            context_follows_the_results_with_a_prompt_in_them,
            a_result_of_another_client_is_no_prompt,
            a_forged_prompt_hides_nothing_and_begins_nothing,
            a_prompt_that_fits_into_no_result_stands_beside_it;
        undecidable:
            duplicate_keys_are_not_allowed,
            duplicate_keys_pass_an_open_handler,
            a_truncated_call_is_withheld,
            a_truncated_call_of_no_concern_is_relayed,
            an_input_too_large_to_judge_is_not_allowed,
            a_prompt_too_large_to_judge_is_refused,
            an_unreadable_request_is_refused,
            an_unreadable_request_passes_where_nobody_judges,
            a_body_over_the_limit_is_refused;
    }
    streamed {
        failure:
            a_cut_inside_a_call_releases_nothing_of_it,
            a_cut_while_a_call_is_decided_releases_nothing_of_it,
            an_early_end_is_no_success,
            an_unfinished_event_is_not_passed_on;
        gone:
            in_the_middle_of_a_stream;
        history:
            a_retry_goes_on_after_the_rounds_that_are_done;
        stalled:
            a_client_that_never_reads_holds_up_itself_alone,
            nor_does_one_that_gets_text_alone;
        streaming:
            text_comes_before_the_answer_ends,
            a_call_is_decided_before_its_block,
            calls_are_decided_at_once_and_released_in_order,
            what_follows_a_held_call_waits_behind_it,
            a_held_client_hears_keep_alives,
            keep_alives_do_not_reach_the_model,
            a_stalled_reader_stalls_no_decision,
            a_hold_has_an_end,
            a_slow_handler_has_failed,
            a_burst_is_passed_on_whole;
        undecidable:
            arguments_that_are_not_json_are_not_allowed,
            more_than_can_be_held_is_not_allowed,
            no_arguments_are_an_empty_object,
            fragments_are_joined_before_they_are_read,
            unknown_deltas_in_a_call_are_not_allowed;
    }
}
