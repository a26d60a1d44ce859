//! One-time callbacks over sockets, on both hosts.
//!
//! A test is an async function of a [`Host`]; the list below makes each of them a test for each host.

mod body;
mod contract;
mod controller;
mod full;
mod inbox;
mod mcp;
mod payload;
mod proxy;
mod races;
mod rest;
mod secrets;
mod stage;

use crate::suite::Host;

on_both_hosts! {
    contract:
        the_first_post_is_received_and_the_second_is_gone,
        an_unknown_token_is_not_found_before_its_body_is_asked_for,
        an_expired_token_is_gone,
        what_became_of_a_token_is_remembered_for_its_tombstone,
        a_revoked_token_is_unknown_at_once,
        only_post_consumes,
        other_forms_of_the_path_reach_nothing;
    body:
        a_body_declared_too_large_is_refused_before_it_is_asked_for,
        a_client_in_the_middle_of_sending_reads_its_refusal,
        a_body_that_turns_out_too_large_is_refused,
        a_body_of_the_limit_is_received,
        a_client_that_asks_first_is_asked_to_send,
        an_aborted_upload_burns_nothing,
        broken_framing_burns_nothing,
        a_slow_body_is_given_up,
        gzip_is_decoded_within_the_limit,
        other_codings_are_refused_before_the_body;
    payload:
        json_is_pretty_printed,
        a_bare_string_is_its_text,
        an_empty_body_is_said_to_be_empty,
        text_is_delivered_verbatim,
        text_that_is_not_utf_8_says_so,
        a_long_payload_is_cut;
    races:
        fifty_simultaneous_posts_are_one_message,
        a_claim_of_the_dead_lapses,
        the_same_body_is_received_again_within_the_grace;
    controller:
        a_message_is_handed_over,
        a_failed_delivery_burns_nothing,
        an_answer_other_than_success_is_a_failure,
        silence_is_a_failure,
        a_controller_that_is_away_is_a_failure,
        fifty_simultaneous_posts_ask_the_controller_once,
        a_second_post_gets_its_turn_when_the_first_fails,
        a_worker_that_leaves_does_not_undo_its_delivery,
        a_token_in_delivery_is_not_revoked;
    rest:
        a_callback_is_issued_listed_and_revoked,
        lifetimes_are_clamped,
        what_is_asked_wrongly_is_explained,
        without_an_origin_nothing_is_issued,
        the_origin_is_derived_and_never_taken_from_a_request,
        a_list_has_pages;
    inbox:
        reading_changes_nothing_and_taking_consumes,
        an_empty_inbox_is_waited_for,
        of_two_takers_one_gets_the_message,
        a_waiting_taker_that_leaves_takes_nothing,
        a_stream_goes_on_where_it_was_left,
        readers_end_when_the_host_stops;
    mcp:
        a_client_begins_and_finds_two_tools,
        a_callback_is_requested_and_awaited,
        the_callback_that_is_named_is_awaited,
        what_cannot_be_awaited_is_explained,
        a_wait_that_brings_nothing_says_so,
        a_waiting_client_that_leaves_loses_nothing,
        a_call_that_is_given_up_takes_nothing,
        a_page_of_another_origin_is_refused,
        calls_that_wait_end_when_the_host_stops;
}
