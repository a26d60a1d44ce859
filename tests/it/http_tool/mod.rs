//! Tools behind plain HTTP, against both hosts.

mod decide;
mod find;
mod results;
mod stage;

use crate::suite::Host;

on_both_hosts! {
    decide:
        a_call_is_judged_by_path_query_and_body,
        a_denied_call_is_not_forwarded,
        nothing_but_what_changed_is_written_anew,
        a_replaced_parameter_stays_in_its_segment,
        a_replacement_fits_the_schema,
        bodies_that_cannot_be_told_are_undecidable,
        a_tool_that_is_denied_is_nobodys_to_allow,
        context_has_no_place,
        a_head_request_is_what_its_get_is;
    find:
        what_is_no_tools_call_is_refused,
        what_is_allowed_passes,
        a_path_of_two_readings_is_refused,
        the_most_specific_tool_is_asked_about,
        a_body_over_the_limit_is_refused;
    results:
        what_came_of_a_call_is_told,
        an_answer_is_not_held_up,
        an_answer_that_ends_early_is_a_failure,
        no_answer_is_a_failure;
}
